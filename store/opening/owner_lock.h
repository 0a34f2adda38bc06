// owner.lock: only one process writes. Its line tells observers its progress:
//
//   "<pid> opening\n"                          the store may be damaged; do not rely on it
//   "<pid> reopening\n"                        the same, for a store that was recovered before
//   "<pid> recovered <device> <inode>\n"       data.mdb is that file, and it passed the walk
//
// The lock is an open-file-description lock: it dies with the process, and a second opening of the
// file in the same process does not drop it. The owner locks data.mdb, too, so that removing
// owner.lock does not admit a second owner while data.mdb is in place.

#ifndef WAYBILL_STORE_OPENING_OWNER_LOCK_H_
#define WAYBILL_STORE_OPENING_OWNER_LOCK_H_

#include <filesystem>
#include <optional>
#include <string>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

class OwnerLock {
 public:
  // kOwned: another process holds the lock; the error has its process ID if owner.lock is still
  // that owner's. Locks data.mdb if it exists.
  static Result<OwnerLock> Take(const std::filesystem::path& directory);

  // Locks the file that is now named data.mdb, instead of the earlier one.
  Result<void> LockDatabase();
  // The locked data.mdb, for reading.
  const Fd& database() const { return database_; }
  Result<FileId> Id() const { return FileIdOf(file_, path_); }

  // Tells observers that they can rely on `database`.
  Result<void> AnnounceRecovered(const FileId& database);
  // Whether an earlier owner had a database.
  bool owned_before() const { return owned_before_; }

 private:
  OwnerLock(Fd file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<void> Write(const std::string& line);

  Fd file_;
  std::filesystem::path path_;  // of owner.lock
  Fd database_;
  bool owned_before_ = false;
};

// Keeps owners away from the data.mdb `file` for as long as it is open. kOwned: it has one. A file
// system without locks has no owner either.
Result<void> LockOutOwners(const Fd& file, const std::filesystem::path& path);

// What owner.lock says, and which process holds it.
struct OwnerSight {
  std::string line = {};  // empty: there is no file, or it says nothing
  bool is_owned = false;
  bool is_recovered = false;  // and the owner has verified its database

  bool is_opening() const { return is_owned && !is_recovered; }
  // Whether a live owner has verified `database`.
  bool VouchesFor(const FileId& database) const;
};
Result<OwnerSight> LookAtOwner(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_OWNER_LOCK_H_
