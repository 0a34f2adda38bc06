#include "tests/crash/recorder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace waybill::testing {

namespace {

using Kind = DiskEvent::Kind;
using FileKey = std::pair<dev_t, ino_t>;

class Log {
 public:
  Log(std::string root, const KnownFiles& known)
      : root_(std::move(root)), next_file_(known.next_file) {
    directories_[KeyOf(root_)] = "";
    for (const std::string& path : known.directories) directories_[KeyOf(root_ + path)] = path;
    for (const auto& [path, file] : known.files) files_[KeyOf(root_ + path)] = file;
  }

  // Below the root, without it; "/" in front. Nothing for other paths.
  bool Below(const char* path, std::string& relative) const {
    const std::string text = path;
    if (!text.starts_with(root_ + "/")) return false;
    relative = text.substr(root_.size());
    return true;
  }
  static std::string Parent(const std::string& relative) {
    return relative.substr(0, relative.rfind('/'));
  }

  void Created(int fd, const std::string& relative) {
    const std::lock_guard lock(mutex_);
    files_[KeyOf(fd)] = next_file_;
    Add({.kind = Kind::kCreate,
         .file = next_file_,
         .directory = Parent(relative),
         .path = relative});
    ++next_file_;
  }
  void MadeDirectory(const char* path) {
    std::string relative;
    if (!Below(path, relative)) return;
    const std::lock_guard lock(mutex_);
    directories_[KeyOf(root_ + relative)] = relative;
    Add({.kind = Kind::kMakeDirectory, .directory = Parent(relative), .path = relative});
  }
  void Named(Kind kind, const char* from_path, const char* to_path) {
    std::string from;
    std::string to;
    if (!Below(from_path, from) || !Below(to_path, to)) return;
    const std::lock_guard lock(mutex_);
    Add({.kind = kind,
         .file = FileOf(KeyOf(root_ + to)),
         .directory = Parent(to),
         .path = from,
         .other_path = to});
  }
  void Removed(const char* path) {
    std::string relative;
    if (!Below(path, relative)) return;
    const std::lock_guard lock(mutex_);
    Add({.kind = Kind::kRemove, .directory = Parent(relative), .path = relative});
  }
  // The index of the event, or none where the file is not one of ours.
  std::size_t Writing(int fd, std::uint64_t offset, std::string bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t file = FileOf(KeyOf(fd));
    if (file == 0) return kNone;
    Add({.kind = Kind::kWrite, .file = file, .offset = offset, .bytes = std::move(bytes)});
    return events_.size() - 1;
  }
  void Written(std::size_t index) {
    const std::lock_guard lock(mutex_);
    Add({.kind = Kind::kWritten, .index = index});
  }
  void Truncated(int fd, std::uint64_t length) {
    const std::lock_guard lock(mutex_);
    const std::size_t file = FileOf(KeyOf(fd));
    if (file != 0) Add({.kind = Kind::kTruncate, .file = file, .offset = length});
  }
  void Synced(int fd) {
    const std::lock_guard lock(mutex_);
    const FileKey key = KeyOf(fd);
    if (const std::size_t file = FileOf(key); file != 0) {
      Add({.kind = Kind::kSynced, .file = file});
    } else if (const auto at = directories_.find(key); at != directories_.end()) {
      Add({.kind = Kind::kDirectorySynced, .directory = at->second});
    }
  }
  void SyncFailed(int fd) {
    const std::lock_guard lock(mutex_);
    if (const std::size_t file = FileOf(KeyOf(fd)); file != 0) {
      Add({.kind = Kind::kSyncFailed, .file = file});
    }
  }
  void Mark(std::size_t meaning) {
    const std::lock_guard lock(mutex_);
    Add({.kind = Kind::kMark, .index = meaning});
  }
  std::vector<DiskEvent> Take() {
    const std::lock_guard lock(mutex_);
    return std::move(events_);
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

 private:
  static FileKey KeyOf(const std::string& path) {
    struct stat st {};
    if (lstat(path.c_str(), &st) != 0) return {};
    return {st.st_dev, st.st_ino};
  }
  static FileKey KeyOf(int fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) return {};
    return {st.st_dev, st.st_ino};
  }
  std::size_t FileOf(const FileKey& key) const {
    const auto at = files_.find(key);
    return at == files_.end() ? 0 : at->second;
  }
  void Add(DiskEvent event) { events_.push_back(std::move(event)); }

  std::mutex mutex_;
  const std::string root_;
  std::map<FileKey, std::size_t> files_;
  std::map<FileKey, std::string> directories_;
  std::size_t next_file_;
  std::vector<DiskEvent> events_;
};

std::unique_ptr<Log> the_log;
std::atomic<Log*> recording{nullptr};

std::atomic<std::uint64_t> calls_to_live{0};
std::atomic<bool> exchange_refused{false};
std::atomic<bool> full_disk_shown{false};

Fault fault;
std::atomic<std::uint64_t> calls_made{0};  // since the fault was set
std::string faulted_call;

std::mutex before_sync_mutex;
std::shared_ptr<const std::function<int(const std::string&)>> before_sync;

ino_t spoilt_file = 0;
std::vector<off_t> spoilt_offsets;

bool IsSpoilt(int fd, off_t offset, std::size_t size) {
  struct stat st {};
  if (spoilt_offsets.empty() || fstat(fd, &st) != 0 || st.st_ino != spoilt_file) return false;
  return std::any_of(spoilt_offsets.begin(), spoilt_offsets.end(), [&](off_t at) {
    return at >= offset && at < offset + static_cast<off_t>(size);
  });
}

constexpr std::size_t kFaultySector = 512;

// What a call is about.
struct Target {
  Target(int at_fd) : fd(at_fd) {}                // NOLINT(google-explicit-constructor)
  Target(const char* at_path) : path(at_path) {}  // NOLINT(google-explicit-constructor)
  Target(int at_fd, const char* at_path) : fd(at_fd), path(at_path) {}

  std::string Path() const {
    const std::string name = path == nullptr ? "" : path;
    if (fd < 0 || name.starts_with('/')) return name;
    char text[PATH_MAX];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = readlink(link.c_str(), text, sizeof(text));
    const std::string at(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    return name.empty() ? at : at + "/" + name;
  }

  int fd = -1;
  const char* path = nullptr;
};

// What is to become of a call: kNone, all is well.
Fault::Kind Count(const char* function, const Target& target) {
  if (calls_to_live.load() != 0 && calls_to_live.fetch_sub(1) == 1) kill(getpid(), SIGKILL);
  std::string path;
  if (!fault.below.empty()) {
    path = target.Path();
    if (!path.starts_with(fault.below)) return Fault::Kind::kNone;
  }
  const std::uint64_t call = calls_made.fetch_add(1) + 1;
  if (!fault.below.empty() && call == fault.call) faulted_call = function + (" " + path);
  const bool now = fault.lasting ? call >= fault.call : call == fault.call;
  return now ? fault.kind : Fault::Kind::kNone;
}

// Whether a call that writes nothing fails.
bool Refused(const char* function, const Target& target) {
  const Fault::Kind kind = Count(function, target);
  const bool goes_on = kind == Fault::Kind::kNone || kind == Fault::Kind::kGarble ||
                       kind == Fault::Kind::kGarbleSectors;
  if (goes_on) return false;
  errno = fault.error_number;
  return true;
}

// The same of one that changes nothing.
bool ReadRefused(const char* function, const Target& target) {
  return !fault.below.empty() && Refused(function, target);
}

template <typename F>
F* Real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// A call that changes or syncs something: fails, or is done and noted.
int Change(const char* function, const Target& target, const auto& real, const auto& note) {
  if (Refused(function, target)) return -1;
  const int result = real();
  if (Log* const log = recording.load(); log != nullptr && result == 0) note(*log);
  return result;
}

// What SetBeforeSync's function says of that file.
bool SyncRefused(int fd) {
  std::unique_lock lock(before_sync_mutex);
  const auto ask = before_sync;
  lock.unlock();
  if (!ask) return false;
  const int error_number = (*ask)(Target(fd).Path());
  if (error_number != 0) errno = error_number;
  return error_number != 0;
}

int Sync(const char* function, int fd, const auto& real) {
  Log* const log = recording.load();
  const int result = SyncRefused(fd) || Refused(function, fd) ? -1 : real();
  if (log != nullptr && result == 0) log->Synced(fd);
  if (log != nullptr && result != 0) log->SyncFailed(fd);
  return result;
}

ssize_t WriteLogged(int fd, std::uint64_t offset, const void* bytes, std::size_t size,
                    const auto& real) {
  Log* const log = recording.load();
  if (log == nullptr) return real();
  const std::size_t index =
      log->Writing(fd, offset, std::string(static_cast<const char*>(bytes), size));
  const ssize_t result = real();
  const int flags = index == Log::kNone ? 0 : fcntl(fd, F_GETFL);
  if (flags > 0 && (flags & O_DSYNC) != 0) log->Written(index);
  return result;
}

// With one bit changed in the middle of each `piece` bytes.
std::string Garbled(const void* bytes, std::size_t size, std::size_t piece) {
  std::string garbled(static_cast<const char*>(bytes), size);
  for (std::size_t begin = 0; begin < size; begin += piece) {
    char& byte = garbled[begin + std::min(piece, size - begin) / 2];
    byte = static_cast<char>(byte ^ 1);
  }
  return garbled;
}

// A write of `size` bytes, by `real`, which is told which bytes and how many.
template <typename Write>
ssize_t WriteOrFail(const char* function, int fd, const void* bytes, std::size_t size,
                    const Write& real) {
  switch (Count(function, fd)) {
    case Fault::Kind::kNone:
      return real(bytes, size);
    case Fault::Kind::kFail:
      errno = fault.error_number;
      return -1;
    case Fault::Kind::kShort:
      return real(bytes, size / 2);
    case Fault::Kind::kShortBySectors:
      if (size / 2 >= kFaultySector) return real(bytes, size / 2 / kFaultySector * kFaultySector);
      errno = fault.error_number;
      return -1;
    case Fault::Kind::kFailDone:
      static_cast<void>(real(bytes, size));
      errno = fault.error_number;
      return -1;
    case Fault::Kind::kGarble:
      return real(Garbled(bytes, size, size).data(), size);
    case Fault::Kind::kGarbleSectors:
      return real(Garbled(bytes, size, kFaultySector).data(), size);
  }
  return -1;
}

std::uint64_t PositionOf(int fd) {
  return recording.load() == nullptr ? 0 : static_cast<std::uint64_t>(lseek(fd, 0, SEEK_CUR));
}

}  // namespace

Recorder::Recorder(const std::filesystem::path& root, const KnownFiles& known) {
  the_log = std::make_unique<Log>(root.string(), known);
  recording.store(the_log.get());
}

Recorder::~Recorder() { recording.store(nullptr); }

void Recorder::Mark(std::size_t meaning) {
  if (Log* const log = recording.load()) log->Mark(meaning);
}

void KillBeforeCall(std::uint64_t calls) { calls_to_live.store(calls); }

void InjectFault(const Fault& injected) {
  fault = injected;
  calls_made.store(0);
  faulted_call.clear();
}

void StopFaults() { fault.kind = Fault::Kind::kNone; }

void SpoilSectors(ino_t file, std::vector<off_t> offsets) {
  spoilt_file = file;
  spoilt_offsets = std::move(offsets);
}

std::function<void(std::size_t)> before_read;

void SetBeforeSync(std::function<int(const std::string&)> ask) {
  const std::lock_guard lock(before_sync_mutex);
  before_sync = ask ? std::make_shared<const std::function<int(const std::string&)>>(std::move(ask))
                    : nullptr;
}

std::string FaultedCall() { return faulted_call; }

bool FaultHappened() { return fault.call != 0 && calls_made.load() >= fault.call; }

void ShowFullDisk(bool full) { full_disk_shown.store(full); }

void RefuseExchange(bool refuse) { exchange_refused.store(refuse); }

std::vector<DiskEvent> Recorder::Take() {
  recording.store(nullptr);
  return the_log->Take();
}

}  // namespace waybill::testing

using waybill::testing::Change;
using waybill::testing::DiskEvent;
using waybill::testing::exchange_refused;
using waybill::testing::full_disk_shown;
using waybill::testing::IsSpoilt;
using waybill::testing::PositionOf;
using waybill::testing::ReadRefused;
using waybill::testing::Real;
using waybill::testing::recording;
using waybill::testing::Refused;
using waybill::testing::Sync;
using waybill::testing::WriteLogged;
using waybill::testing::WriteOrFail;

// What stands before the system's own functions of these names.
#define WAYBILL_INTERPOSED extern "C" __attribute__((visibility("default")))

WAYBILL_INTERPOSED int open(const char* path, int flags, ...) {
  static auto* const real = Real<int(const char*, int, ...)>("open");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (Refused("open", path)) return -1;
  } else if (ReadRefused("open", path)) {
    return -1;
  }
  auto* const log = recording.load();
  std::string relative;
  const bool ours = log != nullptr && log->Below(path, relative);
  struct stat st {};
  const bool is_new = ours && (flags & O_CREAT) != 0 && lstat(path, &st) != 0;
  const int fd = real(path, flags, mode);
  if (fd >= 0 && is_new) log->Created(fd, relative);
  return fd;
}

WAYBILL_INTERPOSED ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static auto* const real = Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return WriteOrFail("pwrite", fd, bytes, size, [&](const void* some, size_t count) {
    return WriteLogged(fd, static_cast<std::uint64_t>(offset), some, count,
                       [&] { return real(fd, some, count, offset); });
  });
}

WAYBILL_INTERPOSED ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  return WriteOrFail("write", fd, bytes, size, [&](const void* some, size_t count) {
    return WriteLogged(fd, PositionOf(fd), some, count, [&] { return real(fd, some, count); });
  });
}

WAYBILL_INTERPOSED ssize_t writev(int fd, const struct iovec* parts, int count) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  std::string all;
  for (int i = 0; i < count; ++i) {
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  return WriteOrFail("writev", fd, all.data(), all.size(), [&](const void* some, size_t size) {
    return WriteLogged(fd, PositionOf(fd), some, size, [&] { return real(fd, some, size); });
  });
}

WAYBILL_INTERPOSED int ftruncate(int fd, off_t length) {
  static auto* const real = Real<int(int, off_t)>("ftruncate");
  return Change(
      "ftruncate", fd, [&] { return real(fd, length); },
      [&](auto& log) { log.Truncated(fd, static_cast<std::uint64_t>(length)); });
}

WAYBILL_INTERPOSED int fsync(int fd) {
  static auto* const real = Real<int(int)>("fsync");
  return Sync("fsync", fd, [&] { return real(fd); });
}

WAYBILL_INTERPOSED int fdatasync(int fd) {
  static auto* const real = Real<int(int)>("fdatasync");
  return Sync("fdatasync", fd, [&] { return real(fd); });
}

WAYBILL_INTERPOSED int fchmod(int fd, mode_t mode) {
  static auto* const real = Real<int(int, mode_t)>("fchmod");
  return Refused("fchmod", fd) ? -1 : real(fd, mode);
}

WAYBILL_INTERPOSED int mkdir(const char* path, mode_t mode) {
  static auto* const real = Real<int(const char*, mode_t)>("mkdir");
  return Change(
      "mkdir", path, [&] { return real(path, mode); }, [&](auto& log) { log.MadeDirectory(path); });
}

WAYBILL_INTERPOSED int rename(const char* from, const char* to) {
  static auto* const real = Real<int(const char*, const char*)>("rename");
  return Change(
      "rename", to, [&] { return real(from, to); },
      [&](auto& log) { log.Named(DiskEvent::Kind::kRename, from, to); });
}

// Not logged: what exchanges is killed, but no power cut of it is played.
WAYBILL_INTERPOSED int renameat2(int from_directory, const char* from, int to_directory,
                                 const char* to, unsigned int flags) {
  if (Refused("renameat2", to)) return -1;
  if (exchange_refused.load()) {
    errno = EINVAL;
    return -1;
  }
  static auto* const real =
      Real<int(int, const char*, int, const char*, unsigned int)>("renameat2");
  return real(from_directory, from, to_directory, to, flags);
}

WAYBILL_INTERPOSED int link(const char* from, const char* to) {
  static auto* const real = Real<int(const char*, const char*)>("link");
  return Change(
      "link", from, [&] { return real(from, to); },
      [&](auto& log) { log.Named(DiskEvent::Kind::kLink, from, to); });
}

WAYBILL_INTERPOSED int unlink(const char* path) {
  static auto* const real = Real<int(const char*)>("unlink");
  return Change(
      "unlink", path, [&] { return real(path); }, [&](auto& log) { log.Removed(path); });
}

WAYBILL_INTERPOSED int rmdir(const char* path) {
  static auto* const real = Real<int(const char*)>("rmdir");
  return Change(
      "rmdir", path, [&] { return real(path); }, [&](auto& log) { log.Removed(path); });
}

// What changes nothing. An error of them is injected only below a directory (Fault::below).

WAYBILL_INTERPOSED int openat(int directory, const char* path, int flags, ...) {
  static auto* const real = Real<int(int, const char*, int, ...)>("openat");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return ReadRefused("openat", {directory, path}) ? -1 : real(directory, path, flags, mode);
}

#define WAYBILL_READING(result, name, parameters, arguments, ...)         \
  WAYBILL_INTERPOSED result name parameters {                             \
    static auto* const real = Real<result parameters>(#name);             \
    return ReadRefused(#name, __VA_ARGS__) ? result(-1) : real arguments; \
  }

WAYBILL_READING(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), fd)
WAYBILL_INTERPOSED ssize_t pread(int fd, void* to, size_t size, off_t offset) {
  static auto* const real = Real<ssize_t(int, void*, size_t, off_t)>("pread");
  if (waybill::testing::before_read) waybill::testing::before_read(size);
  if (ReadRefused("pread", fd)) return -1;
  if (!IsSpoilt(fd, offset, size)) return real(fd, to, size, offset);
  errno = EIO;
  return -1;
}
WAYBILL_READING(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence), fd)
WAYBILL_READING(int, stat, (const char* path, struct stat* st), (path, st), path)
WAYBILL_READING(int, lstat, (const char* path, struct stat* st), (path, st), path)
WAYBILL_READING(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* st),
                (at, path, flags, mask, st), {at, path})
WAYBILL_READING(int, fstat, (int fd, struct stat* st), (fd, st), fd)
WAYBILL_READING(int, fstatat, (int at, const char* path, struct stat* st, int flags),
                (at, path, st, flags), {at, path})
WAYBILL_READING(int, statvfs, (const char* path, struct statvfs* st), (path, st), path)
WAYBILL_INTERPOSED int fstatvfs(int fd, struct statvfs* st) {
  static auto* const real = Real<int(int, struct statvfs*)>("fstatvfs");
  if (ReadRefused("fstatvfs", fd)) return -1;
  const int result = real(fd, st);
  if (full_disk_shown.load()) st->f_bavail = 0;
  return result;
}
WAYBILL_READING(int, access, (const char* path, int mode), (path, mode), path)

WAYBILL_INTERPOSED struct dirent* readdir(DIR* dir) {
  static auto* const real = Real<struct dirent*(DIR*)>("readdir");
  return ReadRefused("readdir", dirfd(dir)) ? nullptr : real(dir);
}
