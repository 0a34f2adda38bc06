// Checks that the store's names still lead to the files that were opened. If a file is removed,
// replaced or truncated while it is open, writes go to a file without a name, or LMDB's map raises
// SIGBUS beyond the new end.

#ifndef WAYBILL_STORE_RECOVERY_STORE_FILES_H_
#define WAYBILL_STORE_RECOVERY_STORE_FILES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "store/base/files.h"

namespace waybill::internal {

class StoreFiles {
 public:
  // The open files: data.mdb and lock.mdb, and for an owner (`owner` is not null) owner.lock.
  StoreFiles(const std::filesystem::path& directory, const FileId& data, const FileId& lock,
             const FileId* owner);

  enum class State : std::uint8_t {
    kSame,
    kChanged,  // for good: the open files are no longer the store
    kUnknown,  // they can't be checked now
  };
  struct Look {
    State state = State::kSame;
    const char* what = "";  // kChanged: "owner.lock was removed", to complete a sentence
    const char* path = "";  // kUnknown: of the file; lives as long as this object
    int error_number = 0;
  };
  // One system call for each file. Allocates nothing; from any thread.
  Look LookAgain() const;
  // To be called before LMDB closes and writes to lock.mdb: restores the length of a truncated
  // file, since the write would raise SIGBUS.
  void ExtendLockFile() const;

 private:
  struct File {
    std::string path;
    FileId id;
    // The largest size seen: LMDB never shrinks its files.
    mutable std::atomic<std::int64_t> bytes{0};
  };

  std::array<File, 3> files_;
  std::size_t count_ = 0;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_STORE_FILES_H_
