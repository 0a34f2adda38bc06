#include "store/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kLookAtDisk =
    "try again; if it goes on, look for disk errors in the kernel's log";

// What to do about an error that says nothing about the path.
std::string_view HintFor(int error_number) {
  switch (error_number) {
    case EINTR:
      return "a signal cut the call short: try again";
    case EAGAIN:
      return "try again";
    case EMFILE:
      return "let the process have more open files: ulimit -n, LimitNOFILE= of its unit";
    case ENFILE:
      return "the machine has as many open files as it may: see fs.file-max, and who has them open";
    case ENOMEM:
      return "the machine, or the unit's MemoryMax=, has no memory left: free some, then try again";
    case EIO:
    case EUCLEAN:
    case EBADMSG:
    case EREMOTEIO:
    case ENODATA:
    case EILSEQ:
    case ETIMEDOUT:
      return kLookAtDisk;
    default:
      return "try again; if it goes on, the kernel's log may say more";
  }
}

std::filesystem::path ParentOf(const std::filesystem::path& path) {
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

// Where the new directory is while the old one moves from `place` to `staged`.
std::filesystem::path Between(const std::filesystem::path& staged) {
  std::filesystem::path fresh = staged;
  fresh += ".new";
  return fresh;
}

Result<void> ExchangeByThreeRenames(const std::filesystem::path& staged,
                                    const std::filesystem::path& place) {
  const std::filesystem::path fresh = Between(staged);
  if (auto r = RenameDurably(staged, fresh); !r) return r;
  if (auto r = RenameDurably(place, staged); !r) {
    static_cast<void>(RenameDurably(fresh, staged));
    return r;
  }
  if (auto r = RenameDurably(fresh, place); !r) {
    static_cast<void>(RenameDurably(staged, place));
    static_cast<void>(RenameDurably(fresh, staged));
    return r;
  }
  return SyncDirectory(ParentOf(staged));
}

}  // namespace

void Fd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Error SystemError(int error_number, std::string_view doing, const std::filesystem::path& path) {
  Error error;
  error.message = "cannot " + std::string(doing) + " " + path.string() + ": " +
                  std::generic_category().message(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      error.code = ErrorCode::kDiskFull;
      error.hint = "free space on that file system, then try again";
      break;
    case ENOENT:
      error.code = ErrorCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      error.code = ErrorCode::kUnsafePath;
      error.hint = "run as the owner of that path, on a file system that can be written";
      break;
    case ELOOP:
      error.code = ErrorCode::kUnsafePath;
      error.message = "cannot " + std::string(doing) + " " + path.string() + ": it is a symlink";
      error.hint = "name the real path";
      break;
    default:
      error.code = ErrorCode::kIo;
      error.hint = HintFor(error_number);
      break;
  }
  return error;
}

Error CanBeSkipped(Error error) {
  // Where no file can be opened, or no memory is left, nothing is known about the part.
  if (error.hint != kLookAtDisk) return error;
  error.hint.clear();
  error.hint_code = Hint::kSkipUnreadable;
  return error;
}

std::filesystem::path PathOf(int fd) {
  std::error_code unknown;
  auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), unknown);
  if (unknown) path = "file descriptor " + std::to_string(fd);
  return path;
}

bool LookAt(const char* path, FileLook& look) {
  constexpr unsigned kAsked = STATX_TYPE | STATX_INO | STATX_SIZE;
  struct statx st {};
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, kAsked, &st) != 0) {
    // EPERM: a container's filter of an age before statx.
    struct stat old {};
    if (errno != EPERM || lstat(path, &old) != 0) return false;
    look = {{old.st_dev, old.st_ino}, old.st_size};
    return true;
  }
  look = {{makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino},
          static_cast<std::int64_t>(st.stx_size)};
  return true;
}

bool ChangeLook::IsPast() const {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return changed != 0 && changed < (std::int64_t{now.tv_sec} - 1) * 1'000'000'000 + now.tv_nsec;
}

bool LookAtChange(const char* path, ChangeLook& look) {
  struct stat st {};
  if (lstat(path, &st) != 0) return false;
  look = {{st.st_dev, st.st_ino},
          std::int64_t{st.st_ctim.tv_sec} * 1'000'000'000 + st.st_ctim.tv_nsec};
  return true;
}

Result<FileId> FileIdOf(const std::filesystem::path& path) {
  FileLook look;
  if (!LookAt(path.c_str(), look)) return SystemError(errno, "look at", path);
  return look.id;
}

Result<FileId> FileIdOf(const Fd& fd, const std::filesystem::path& path) {
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return SystemError(errno, "look at", path);
  return FileId{st.st_dev, st.st_ino};
}

bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (a == b) return true;
  const auto id = FileIdOf(a);
  const auto other = FileIdOf(b);
  if (id && other) return *id == *other;
  const auto is_absent = [](const Result<FileId>& file) {
    return !file && file.error().code == ErrorCode::kNotFound;
  };
  if (!is_absent(id) || !is_absent(other)) return false;
  // One that is not there yet is the same in the same directory.
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(a, error);
  return !error && place == std::filesystem::weakly_canonical(b, error) && !error;
}

bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::path at =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  if (error) at = std::filesystem::absolute(path).lexically_normal();
  std::filesystem::path top = std::filesystem::weakly_canonical(
      std::filesystem::absolute(WithoutTrailingSlashes(directory)), error);
  if (error) top = std::filesystem::absolute(directory).lexically_normal();
  while (true) {
    if (at == top) return true;
    std::error_code ignored;
    if (std::filesystem::equivalent(at, top, ignored)) return true;
    const std::filesystem::path parent = at.parent_path();
    if (parent == at || parent.empty()) return false;
    at = parent;
  }
}

Result<Fd> OpenFile(const std::filesystem::path& path, int flags) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  int opened = -1;
  do {
    opened = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  } while (opened < 0 && errno == EINTR);
  Fd fd(opened);
  const Error not_regular{ErrorCode::kUnsafePath,
                          "cannot use " + path.string() + ": not a regular file",
                          "remove it or name another path"};
  if (!fd.valid()) {
    // A directory opened for writing; a socket or a missing device.
    if (errno == EISDIR || errno == ENXIO || errno == ENODEV) return not_regular;
    return SystemError(errno, "open", path);
  }
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return SystemError(errno, "look at", path);
  if (!S_ISREG(st.st_mode)) return not_regular;
  return fd;
}

Result<Fd> OpenDirectory(const std::filesystem::path& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return SystemError(errno, "open directory", path);
  return fd;
}

Result<std::string> ReadWholeFile(const std::filesystem::path& path, std::size_t max_bytes) {
  auto fd = TRY(OpenFile(path, O_RDONLY));
  std::string content;
  char buffer[1 << 14];
  while (true) {
    const ssize_t n = read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "read", path);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > max_bytes) {
      return Error{ErrorCode::kLimitExceeded,
                   path.string() + " is larger than " + std::to_string(max_bytes) + " bytes", ""};
    }
  }
}

Result<void> PWriteAll(const Fd& fd, std::string_view bytes, off_t offset,
                       const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    // 0 bytes written without an error would repeat for ever.
    if (n <= 0) return SystemError(n < 0 ? errno : EIO, "write", path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += n;
  }
  return {};
}

Result<void> SyncFile(const Fd& fd, const std::filesystem::path& path) {
  if (fsync(fd.get()) != 0) return SystemError(errno, "sync", path);
  return {};
}

Result<void> SyncDirectory(const std::filesystem::path& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(errno, "open directory", path);
  return SyncFile(fd, path);
}

Result<void> RenameDurably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return SystemError(errno, "rename a file to", to);
  return SyncDirectory(ParentOf(to));
}

Result<void> ExchangeDurably(const std::filesystem::path& staged,
                             const std::filesystem::path& place) {
  if (renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL || errno == ENOSYS) return ExchangeByThreeRenames(staged, place);
    return SystemError(errno, "exchange a directory with", place);
  }
  if (auto r = SyncDirectory(ParentOf(place)); !r) return r;
  return SyncDirectory(ParentOf(staged));
}

Result<void> UndoHalfExchange(const std::filesystem::path& staged,
                              const std::filesystem::path& place) {
  for (const auto& [path, left_by_crash] :
       {std::pair(place, false), {staged, true}, {Between(staged), true}}) {
    auto there = TRY(Exists(path));
    if (there != left_by_crash) return {};
  }
  return RenameDurably(staged, place);
}

Result<void> WriteFileDurably(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  if (auto removed = RemoveFile(temporary); !removed) return removed;
  const auto write = [&]() -> Result<void> {
    auto fd = TRY(OpenFile(temporary, O_WRONLY | O_CREAT | O_EXCL));
    if (auto r = PWriteAll(fd, content, 0, temporary); !r) return r;
    return SyncFile(fd, temporary);
  };
  auto written = write();
  if (written) written = RenameDurably(temporary, path);
  if (!written) static_cast<void>(RemoveFile(temporary));
  return written;
}

Result<std::vector<std::string>> ListDirectory(const std::filesystem::path& path) {
  auto opened = TRY(OpenDirectory(path));
  struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  // The stream takes over this second descriptor.
  const int own = openat(opened.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return SystemError(errno, "list", path);
  const std::unique_ptr<DIR, CloseDir> dir(fdopendir(own));
  if (dir == nullptr) {
    const int error_number = errno;
    close(own);
    return SystemError(error_number, "list", path);
  }
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = readdir(dir.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return SystemError(errno, "list", path);
  return names;
}

Answer Exists(const std::filesystem::path& path) {
  struct stat st {};
  if (lstat(path.c_str(), &st) == 0) return true;
  if (errno == ENOENT) return false;
  if (errno == ENOTDIR) {
    return Error{ErrorCode::kIo, ParentOf(path).string() + " is not a directory",
                 "name a directory, or a path where one can be made"};
  }
  return SystemError(errno, "look at", path);
}

Answer IsDirectory(const std::filesystem::path& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) == 0) return S_ISDIR(st.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return SystemError(errno, "look at", path);
}

Result<void> RemoveFile(const std::filesystem::path& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError(errno, "remove", path);
  return {};
}

std::filesystem::path WithoutTrailingSlashes(const std::filesystem::path& path) {
  std::string text = path.string();
  while (text.size() > 1 && (text.ends_with('/') || text.ends_with("/."))) text.pop_back();
  return text;
}

Result<void> CheckPrivateDirectory(const std::filesystem::path& given) {
  const std::filesystem::path path = WithoutTrailingSlashes(given);
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return SystemError(errno, "open directory", path);
  if (S_ISLNK(st.st_mode)) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is a symlink; nothing was changed",
                 "name the real directory"};
  }
  if (!S_ISDIR(st.st_mode)) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is not a directory; nothing was changed",
                 "name a directory, or a path where one can be made"};
  }
  if (st.st_uid != geteuid()) {
    return Error{ErrorCode::kUnsafePath,
                 path.string() + " belongs to user " + std::to_string(st.st_uid) +
                     ", not to user " + std::to_string(geteuid()) +
                     " who runs this; nothing was changed",
                 "run as user " + std::to_string(st.st_uid) + (st.st_uid == 0 ? " (root)" : "") +
                     "; chown it only if it is yours and you trust what is in it"};
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{
        ErrorCode::kUnsafePath,
        path.string() + " can be written by its group or by everybody; nothing was changed",
        "chmod 0700 " + path.string()};
  }
  return {};
}

Result<void> MakePrivateDirectory(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return {};
    return SystemError(errno, "make directory", path);
  }
  return SyncDirectory(ParentOf(path));
}

}  // namespace waybill::internal
