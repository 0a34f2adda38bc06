// The files under the store's names, and whether they are still those that were opened. Somebody
// may remove, replace or truncate them while they are open: what is written then goes to files that
// nobody will find, and LMDB's maps end in SIGBUS behind the new end of a file.

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
  // As they are open: data.mdb and lock.mdb, and owner.lock by an owner (`owner` is not null).
  StoreFiles(const std::filesystem::path& directory, const FileId& data, const FileId& lock,
             const FileId* owner);

  enum class State : std::uint8_t {
    kSame,
    kChanged,  // for good: what is open is not the store any more
    kUnknown,  // they can't be looked at now
  };
  struct Look {
    State state = State::kSame;
    const char* what = "";  // kChanged: "owner.lock was removed", to complete a sentence
    const char* path = "";  // kUnknown: of the file; lives as long as this object
    int error_number = 0;
  };
  // A call of the system a file. Allocates nothing; from any thread.
  Look LookAgain() const;
  // Before LMDB closes: it writes to lock.mdb then, and behind the end of a truncated one that
  // would be SIGBUS. Gives such a file its length back.
  void ExtendLockFile() const;

 private:
  struct File {
    std::string path;
    FileId id;
    // The largest that was seen: LMDB never makes them smaller.
    mutable std::atomic<std::int64_t> bytes{0};
  };

  std::array<File, 3> files_;
  std::size_t count_ = 0;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_STORE_FILES_H_
