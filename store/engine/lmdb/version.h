// Which LMDB this process has. The walk over raw pages, the commit and the reader slots rely on
// what LMDB does inside. Its API does not promise that, so only tested versions may be used.

#ifndef WAYBILL_STORE_ENGINE_LMDB_VERSION_H_
#define WAYBILL_STORE_ENGINE_LMDB_VERSION_H_

#include "waybill/result.h"

namespace waybill::lmdb {

// kInvalidArgument: this version was not tested, and AllowUntestedLmdb (waybill/maintenance.h) was
// not called.
Result<void> CheckVersion();

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_ENGINE_LMDB_VERSION_H_
