// The files of a store: whether they are safe to open, and whether they are still the open ones.

#ifndef WAYBILL_STORE_OPENING_STORE_FILES_H_
#define WAYBILL_STORE_OPENING_STORE_FILES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

// Symlinks are not followed, and files that another user owns or can change are not trusted.
// kUnsafePath, and nothing was changed: a file or folder of the store is a symlink, has the wrong
// type, or belongs to another user. `directory` passed CheckPrivateDirectory. Files that the store
// does not use are ignored.
// With `mended`, removes other users' modes, and adds a line to it for each change.
Result<void> CheckStoreFiles(const std::filesystem::path& directory,
                             std::vector<std::string>* mended = nullptr);

// Whether a store may be made in `directory`, which exists, and has no data.mdb. kUnsafePath, and
// nothing was changed: it has other files, and nothing that is left of a store. The lost+found of a
// file system, `.nfs…` and `.snapshot…` do not count, nor does `backup`, which is put back.
Result<void> CheckNewDirectory(const std::filesystem::path& directory,
                               const std::filesystem::path& backup = {});

// kInvalidArgument: `what` would lie elsewhere, but not there.
Error CannotBeAt(std::string_view what, const std::filesystem::path& path, const std::string& why,
                 std::string_view hint);

// Whether the file system of `directory` is known to write in place, or not at all, and whole
// sectors (ext2 to ext4, xfs and tmpfs).
bool WritesInPlace(const std::filesystem::path& directory);
// What it does not guarantee: one line for the operator; empty: no concern, or
// unknown.
std::string FileSystemWarning(const std::filesystem::path& directory);

// Checks that the store's names still lead to the files that were opened. If a file is removed,
// replaced or truncated while it is open, writes go to a file without a name, or LMDB's map raises
// SIGBUS beyond the new end.
class StoreFiles {
 public:
  // The open files: data.mdb, with a slot lock.mdb, and for an owner owner.lock, too.
  StoreFiles(const std::filesystem::path& directory, const FileId& data,
             const std::optional<FileId>& lock, const std::optional<FileId>& owner);

  enum class State : std::uint8_t {
    kSame,
    kChanged,  // for good: the open files are no longer the store
    kUnknown,  // they can't be checked now
  };
  struct Look {
    State state = State::kSame;
    const char* path = "";    // of the file that is not as it was; lives as long as this object
    const char* change = "";  // kChanged: what happened to it, a participle
    int error_number = 0;     // kUnknown
  };
  // One system call for each file. Allocates nothing; from any thread.
  Look LookAgain() const;
  // Whether LookAgain found all as it was, in this tick of the kernel's coarse clock (1 to 10 ms).
  bool LookedThisTick() const;
  // Whether the names still lead to the files; a truncated one counts as the same. One call as long
  // as the directory's time of change shows that no entry of it changed. By one thread at a time.
  Look LookAtNames() const;
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
  std::string directory_;
  mutable std::atomic<std::int64_t> looked_at_{-1};  // LookAgain's tick
  mutable ChangeLook unchanged_since_;               // LookAtNames; no time: not known
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_STORE_FILES_H_
