// LMDB's return codes as Errors.

#ifndef WAYBILL_STORE_LMDB_ERROR_H_
#define WAYBILL_STORE_LMDB_ERROR_H_

#include <filesystem>
#include <string_view>

#include "waybill/result.h"

namespace waybill::lmdb {

// `rc` is not MDB_SUCCESS. `doing` completes "while …". EIO is taken for a full disk where the file
// system of `directory` has next to nothing free: that is how ext4 reports one to LMDB.
Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory);

// An errno of a system call on `path`.
Error MakeSystemError(int error_number, std::string_view doing, const std::filesystem::path& path);

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_LMDB_ERROR_H_
