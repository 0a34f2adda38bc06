// File system calls that name the path in their errors, follow no symlink and sync what they write.

#ifndef WAYBILL_STORE_BASE_FILES_H_
#define WAYBILL_STORE_BASE_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset();

 private:
  int fd_ = -1;
};

// kDiskFull for ENOSPC and EDQUOT, kNotFound for ENOENT, kUnsafePath for EACCES, EPERM, ELOOP and
// EROFS, else kIo. "cannot <doing> <path>: <reason>".
Error SystemError(int error_number, std::string_view doing, const std::filesystem::path& path);

// What to do if the disk refuses a read (kIo). kSkip treats the part as damaged, and must be
// requested (NodeStoreOptions::skip_unreadable).
enum class OnReadError : std::uint8_t { kFail, kSkip };
// The error, with the hint kSkipUnreadable.
Error CanBeSkipped(Error error);

// The path of an open file, for messages.
std::filesystem::path PathOf(int fd);

// The device and inode of a file; what "the same file" means.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend auto operator<=>(const FileId&, const FileId&) = default;
};
// lstat, but without the times: from Linux 6.13 on, a file whose times were asked for takes new
// ones with its next write, which made a commit a quarter slower on ext4. False: errno says why.
struct FileLook {
  FileId id;
  std::int64_t bytes = 0;
};
bool LookAt(const char* path, FileLook& look);
// A file, or a directory with the names in it, and when it changed last, in nanoseconds since 1970.
struct ChangeLook {
  FileId id;
  std::int64_t changed = 0;
  // Whether the next change will show: within the same tick of the file system's clock it would
  // not.
  bool IsPast() const;
  friend bool operator==(const ChangeLook&, const ChangeLook&) = default;
};
// False: errno says why.
bool LookAtChange(const char* path, ChangeLook& look);
Result<FileId> FileIdOf(const std::filesystem::path& path);
Result<FileId> FileIdOf(const Fd& fd, const std::filesystem::path& path);

// Two spellings of one path, or two names of one file.
bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b);

// Sees through symlinks, relative parts and bind mounts. The paths need not exist.
bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& directory);

// open(2) with O_CLOEXEC and O_NOFOLLOW, and mode 0600 for O_CREAT; the result is a regular file.
Result<Fd> OpenFile(const std::filesystem::path& path, int flags);
// A directory, not through a symlink at its last component.
Result<Fd> OpenDirectory(const std::filesystem::path& path);

// The whole file; kLimitExceeded above max_bytes.
Result<std::string> ReadWholeFile(const std::filesystem::path& path, std::size_t max_bytes);
Result<void> PWriteAll(const Fd& fd, std::string_view bytes, off_t offset,
                       const std::filesystem::path& path);

Result<void> SyncFile(const Fd& fd, const std::filesystem::path& path);
Result<void> SyncDirectory(const std::filesystem::path& path);
// rename(2) within one directory, then sync that directory.
Result<void> RenameDurably(const std::filesystem::path& from, const std::filesystem::path& to);
// Exchanges the files under the two names: renameat2(2), then sync of both directories. If the
// kernel or the file system can't do that, it takes three renames, through `staged` + ".new": a
// crash between them may leave `place` missing, which UndoHalfExchange repairs.
Result<void> ExchangeDurably(const std::filesystem::path& staged,
                             const std::filesystem::path& place);
Result<void> UndoHalfExchange(const std::filesystem::path& staged,
                              const std::filesystem::path& place);
// Replaces the content of `path`, mode 0600, through a synced temporary file beside it.
Result<void> WriteFileDurably(const std::filesystem::path& path, std::string_view content);

// The names in a directory, without "." and "..", unordered.
Result<std::vector<std::string>> ListDirectory(const std::filesystem::path& path);

// Yes, no, or an error. Does not compile as a condition: `if (Exists(path))` would ask only whether
// the look-up worked.
class [[nodiscard]] Answer : public Result<bool> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as in Result.
  Answer(bool yes) : Result(yes) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as in Result.
  Answer(Error error) : Result(std::move(error)) {}
  explicit operator bool() const = delete;
};

// Whether the name exists, dangling symlinks included.
Answer Exists(const std::filesystem::path& path);
// Whether `path` leads to a directory, through symlinks too.
Answer IsDirectory(const std::filesystem::path& path);
// unlink(2); a missing file is not an error.
Result<void> RemoveFile(const std::filesystem::path& path);

// The path without a final "/" or "/.", which would make the kernel follow a symlink.
std::filesystem::path WithoutTrailingSlashes(const std::filesystem::path& path);

// Checks that only its owner can change the directory. kUnsafePath: a symlink, another type,
// another owner, or group or world write permission. kNotFound: missing.
Result<void> CheckPrivateDirectory(const std::filesystem::path& path);
// mkdir(2) 0700, then sync of the parent, which must exist. An existing directory is not an error.
Result<void> MakePrivateDirectory(const std::filesystem::path& path);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_FILES_H_
