#include "store/engine/recovery/backup_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr mode_t kMode = 0600;

Error CannotBe(const std::filesystem::path& path, const std::string& why, const char* hint) {
  return {ErrorCode::kInvalidArgument,
          "the backup can't be made at " + path.string() + ": " + why + "; nothing was changed",
          hint};
}

Error IsThere(const std::filesystem::path& path) {
  return CannotBe(path, "there is something of that name, which was left as it is",
                  "name a file that is not there yet");
}

Result<void> CheckPlace(const std::filesystem::path& path, const std::filesystem::path& store) {
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") {
    return CannotBe(path, "it does not name a file", "name a file in that directory");
  }
  auto there = TRY(Exists(path));
  if (there) return IsThere(path);
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  if (!TRY(IsDirectory(parent))) {
    return CannotBe(path, parent.string() + " is not a directory",
                    "name a file in a directory that is there");
  }
  if (!IsBelow(path, store)) return {};
  return CannotBe(path, "it lies in the store " + store.string() + ", and would be lost with it",
                  "name a file elsewhere, best on another disk; the store keeps its own "
                  "backups where none is named");
}

// linkat(2) from a file without a name.
int LinkOpen(const Fd& file, const Fd& directory, const std::string& name) {
  const std::string open = "/proc/self/fd/" + std::to_string(file.get());
  return linkat(AT_FDCWD, open.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW);
}

// Where a file system has no hard links, as vfat.
int MoveWithoutReplacing(const Fd& directory, const std::string& from, const std::string& to) {
  if (linkat(directory.get(), from.c_str(), directory.get(), to.c_str(), 0) == 0) return 0;
  if (errno == EEXIST) return -1;
  return renameat2(directory.get(), from.c_str(), directory.get(), to.c_str(), RENAME_NOREPLACE);
}

}  // namespace

Result<BackupFile> BackupFile::Make(const std::filesystem::path& path,
                                    const std::filesystem::path& store) {
  TRY(CheckPlace(path, store));
  BackupFile made(path);
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  made.directory_ = Fd(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made.directory_.valid()) return SystemError(errno, "open directory", parent);
  made.file_ = Fd(openat(made.directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
  const bool is_nameless = made.file_.valid() && access("/proc/self/fd", X_OK) == 0;
  if (!is_nameless) {
    std::string name = "." + path.filename().string() + "." + std::to_string(getpid()) + ".tmp";
    made.file_ = Fd(openat(made.directory_.get(), name.c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!made.file_.valid()) return SystemError(errno, "make", path);
    made.temporary_ = std::move(name);
  }
  // Whatever the umask is. vfat has no modes.
  static_cast<void>(fchmod(made.file_.get(), kMode));
  return made;
}

BackupFile::~BackupFile() {
  if (!file_.valid() || temporary_.empty()) return;
  static_cast<void>(unlinkat(directory_.get(), temporary_.c_str(), 0));
}

Result<void> BackupFile::Publish() {
  const std::string name = path_.filename().string();
  const int published = temporary_.empty() ? LinkOpen(file_, directory_, name)
                                           : MoveWithoutReplacing(directory_, temporary_, name);
  if (published != 0) return errno == EEXIST ? IsThere(path_) : SystemError(errno, "make", path_);
  if (fsync(directory_.get()) == 0) return {};
  Error error = SystemError(errno, "sync", path_.parent_path());
  error.message += "; the backup is whole, but a power cut may take its name";
  return error;
}

}  // namespace waybill::internal
