// owner.lock: one process writes. Its content, one line, tells observers how far that one is:
//
//   "<pid> opening\n"                          the store may be damaged; do not rely on it
//   "<pid> reopening\n"                        the same, of a store that was recovered before
//   "<pid> recovered <device> <inode>\n"       data.mdb is that file, and passed the walk
//
// The lock is an open-file-description lock, so it dies with the process, and a second opening of
// the file in the same process does not drop it. The owner locks data.mdb, too: whoever removes
// owner.lock lets nobody in while that file is in place.

#ifndef WAYBILL_STORE_RECOVERY_OWNER_LOCK_H_
#define WAYBILL_STORE_RECOVERY_OWNER_LOCK_H_

#include <filesystem>
#include <optional>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

class OwnerLock {
 public:
  // kOwned where another one holds it, with its process ID where owner.lock is still its own. Locks
  // data.mdb where there is one.
  static Result<OwnerLock> Take(const std::filesystem::path& directory);

  // Locks what is under the name data.mdb now, in place of what was there before.
  Result<void> LockDatabase();
  // data.mdb as it is locked, to read.
  const Fd& database() const { return database_; }
  Result<FileId> Id() const { return FileIdOf(file_, path_); }

  // Tells observers that they can rely on `database`.
  Result<void> AnnounceRecovered(const FileId& database);
  // Whether an earlier owner came as far as having a database: then there was one.
  bool owned_before() const { return owned_before_; }

 private:
  OwnerLock(Fd file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<void> Write(const std::string& line);

  Fd file_;
  std::filesystem::path path_;  // of owner.lock
  Fd database_;
  bool owned_before_ = false;
};

// Whether a live owner vouches for `database`.
Result<bool> OwnerVouchesFor(const std::filesystem::path& directory, const FileId& database);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_OWNER_LOCK_H_
