// Which LMDB this process has. The walk over raw pages, the commit and the reader slots rely on
// what LMDB does inside, which its API does not promise: so on versions that were tested with.

#ifndef WAYBILL_STORE_LMDB_VERSION_H_
#define WAYBILL_STORE_LMDB_VERSION_H_

#include "waybill/result.h"

namespace waybill::lmdb {

// kInvalidArgument where it is a version that waybill was not tested with, unless AllowUntestedLmdb
// (waybill/maintenance.h) was called.
Result<void> CheckVersion();

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_LMDB_VERSION_H_
