// Which LMDB this process has. The walk over raw pages, the commit and the reader slots rely on
// what LMDB does inside. Its API does not promise that, so only tested versions may be used.

#ifndef WAYBILL_STORE_DISK_LMDB_VERSION_H_
#define WAYBILL_STORE_DISK_LMDB_VERSION_H_

#include "waybill/result.h"

namespace waybill {

// Uses an untested version anyway, in the whole process, from now on.
void AllowUntestedLmdb(bool allow);

}  // namespace waybill

namespace waybill::lmdb {

// kInvalidArgument: this version was not tested, and AllowUntestedLmdb was not called.
Result<void> CheckVersion();

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_DISK_LMDB_VERSION_H_
