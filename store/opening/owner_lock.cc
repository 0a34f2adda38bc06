#include "store/opening/owner_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

std::filesystem::path PathIn(const std::filesystem::path& directory) {
  return directory / "owner.lock";
}

// The bytes of the file that are locked. "recovered" in the line counts only while kRecoveredByte
// is locked: a killed owner leaves its line behind, and the next owner locks kOwnedByte before it
// can change the line.
constexpr off_t kOwnedByte = 0;
constexpr off_t kRecoveredByte = 1;

struct flock LockOf(off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

Result<std::string> ReadLine(const Fd& file, const std::filesystem::path& path) {
  char buffer[128];
  const ssize_t n = pread(file.get(), buffer, sizeof(buffer), 0);
  if (n < 0) return SystemError(errno, "read", path);
  const std::string line(buffer, static_cast<std::size_t>(n));
  return line.substr(0, line.find('\n'));
}

constexpr const char* kReopening = " reopening";

std::string Recovered(const FileId& id) {
  return " recovered " + std::to_string(id.device) + " " + std::to_string(id.inode);
}

}  // namespace

Result<OwnerLock> OwnerLock::Take(const std::filesystem::path& directory) {
  const std::filesystem::path path = PathIn(directory);
  auto file = TRY(OpenFile(path, O_RDWR | O_CREAT));
  struct flock lock = LockOf(kOwnedByte, F_WRLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return SystemError(errno, "lock", path);
    const auto line = ReadLine(file, path);
    return Error{
        ErrorCode::kOwned,
        directory.string() + " is owned by process " +
            (line ? line->substr(0, line->find(' ')) : "?") + "; nothing was changed",
        "stop that process, or use a command that only observes (check, list, show, stats)"};
  }
  OwnerLock owner(std::move(file), path);
  // If the file was removed between the two calls, another process may hold the one there now.
  auto locked = TRY(owner.Id());
  const auto named = FileIdOf(path);
  if (!named && named.error().code != ErrorCode::kNotFound) return named.error();
  if (!named || *named != locked) {
    return Error{ErrorCode::kOwned,
                 path.string() +
                     " was removed or replaced while this process locked it; nothing "
                     "was changed",
                 "find out who removes it, then try again"};
  }
  if (TRY(Exists(directory / "data.mdb"))) TRY(owner.LockDatabase());
  const auto line = TRY(ReadLine(owner.file_, path));
  owner.owned_before_ = line.find(" recovered ") != std::string::npos || line.ends_with(kReopening);
  TRY(owner.Write(owner.owned_before_ ? kReopening : " opening"));
  return owner;
}

Result<void> OwnerLock::LockDatabase() {
  const std::filesystem::path path = path_.parent_path() / "data.mdb";
  auto file = TRY(OpenFile(path, O_RDWR));
  if (database_.valid()) {
    auto locked = TRY(FileIdOf(database_, path));
    auto named = TRY(FileIdOf(file, path));
    if (named == locked) return {};
  }
  struct flock lock = LockOf(kOwnedByte, F_WRLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return SystemError(errno, "lock", path);
    if (fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK) {
      return Error{ErrorCode::kOwned,
                   path.string() +
                       " is read by a process that keeps owners out meanwhile; nothing was changed",
                   "wait until that process ends (fuser " + path.string() + " names it)"};
    }
    return Error{ErrorCode::kOwned,
                 path.string() + " is locked by a process that owns the store, although " +
                     path_.filename().string() + " was removed or replaced; nothing was changed",
                 "stop that process, then try again (fuser " + path.string() + " names it)"};
  }
  database_ = std::move(file);
  return {};
}

Result<void> OwnerLock::Write(const std::string& state) {
  const std::string line = std::to_string(getpid()) + state + "\n";
  if (auto r = PWriteAll(file_, line, 0, path_); !r) return r;
  if (ftruncate(file_.get(), static_cast<off_t>(line.size())) != 0) {
    return SystemError(errno, "write", path_);
  }
  return {};
}

Result<void> OwnerLock::AnnounceRecovered(const FileId& database) {
  if (auto r = Write(Recovered(database)); !r) return r;
  struct flock lock = LockOf(kRecoveredByte, F_WRLCK);
  if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) return SystemError(errno, "lock", path_);
  return {};
}

Result<void> LockOutOwners(const Fd& file, const std::filesystem::path& path) {
  struct flock lock = LockOf(kOwnedByte, F_RDLCK);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) == 0 || errno == ENOLCK) return {};
  if (errno != EAGAIN && errno != EACCES) return SystemError(errno, "lock", path);
  return Error{ErrorCode::kOwned,
               path.string() + " is in use by a process that owns its store; nothing was changed",
               "make a backup of that store, which needs no copy of its files"};
}

bool OwnerSight::VouchesFor(const FileId& database) const {
  return is_recovered && line.ends_with(Recovered(database));
}

Result<OwnerSight> LookAtOwner(const std::filesystem::path& directory) {
  const std::filesystem::path path = PathIn(directory);
  const auto file = OpenFile(path, O_RDONLY);
  if (!file && file.error().code == ErrorCode::kNotFound) return OwnerSight();
  if (!file) return file.error();
  // Before the line is read: an owner that comes in between changes it.
  struct flock recovered = LockOf(kRecoveredByte, F_RDLCK);
  struct flock owned = LockOf(kOwnedByte, F_RDLCK);
  if (fcntl(file->get(), F_OFD_GETLK, &recovered) != 0 ||
      fcntl(file->get(), F_OFD_GETLK, &owned) != 0) {
    return SystemError(errno, "look at", path);
  }
  return OwnerSight{.line = TRY(ReadLine(*file, path)),
                    .is_owned = owned.l_type != F_UNLCK,
                    .is_recovered = recovered.l_type != F_UNLCK};
}

}  // namespace waybill::internal
