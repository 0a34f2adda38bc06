#include "store/lmdb/error.h"

#include <lmdb.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <string>

#include "store/base/files.h"

namespace waybill::lmdb {

namespace {
bool NearlyFull(const std::filesystem::path& directory) {
  struct statvfs st {};
  if (statvfs(directory.c_str(), &st) != 0) return false;
  constexpr unsigned long kFewBytes = 256UL << 10;
  return st.f_bavail * st.f_frsize < kFewBytes;
}
}  // namespace

Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory) {
  const std::string where = "while " + std::string(doing) + " in " + directory.string();
  switch (rc) {
    case MDB_MAP_FULL:
      return {ErrorCode::kStoreFull,
              "the memory map is full " + where + "; nothing was changed",
              {},
              Hint::kPruneOrEnlarge};
    case MDB_READERS_FULL:
      return {ErrorCode::kLimitExceeded, "all reader slots are taken " + where,
              "stop observers that are not needed"};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
      return {ErrorCode::kDamaged, std::string(mdb_strerror(rc)) + " " + where, {}, Hint::kRecover};
    case MDB_PANIC:
      return {ErrorCode::kOutcomeUnknown, "an earlier write failed half way " + where,
              "close the store and open it again"};
    case EIO:
      if (NearlyFull(directory)) {
        return {ErrorCode::kDiskFull, "the file system is full " + where,
                "free space on that file system, then try again"};
      }
      return {ErrorCode::kIo, std::string(mdb_strerror(rc)) + " " + where,
              "try again; if it goes on, look for disk errors in the kernel's log"};
    default:
      if (rc > 0) return MakeSystemError(rc, doing, directory);
      return {ErrorCode::kIo, std::string(mdb_strerror(rc)) + " " + where, ""};
  }
}

Error MakeSystemError(int error_number, std::string_view doing, const std::filesystem::path& path) {
  Error error = internal::SystemError(error_number, "use", path);
  error.message += " (while " + std::string(doing) + ")";
  return error;
}

}  // namespace waybill::lmdb
