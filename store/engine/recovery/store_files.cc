#include "store/engine/recovery/store_files.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr const char* kUnfinished = "new.tmp";
constexpr const char* kBackup = "backup";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
// quarantine/<time>/data.mdb
constexpr int kMaxFolders = 3;

enum class FileType { kFile, kFolder, kEither, kSocket };

Error Unsafe(const std::filesystem::path& path, const std::string& what, const char* hint) {
  return {ErrorCode::kUnsafePath, path.string() + " " + what + "; nothing was changed", hint};
}

Result<void> Mend(const std::filesystem::path& path, mode_t mode,
                  std::vector<std::string>& mended) {
  if ((mode & kOthers) == 0) return {};
  // Not a symlink, and no other user can put one there: the directory is private.
  if (chmod(path.c_str(), mode & S_IRWXU) != 0) return SystemError(errno, "chmod", path);
  char modes[64];
  std::snprintf(modes, sizeof(modes), " had mode %04o, and has %04o now", mode & 07777U,
                mode & S_IRWXU);
  mended.push_back(path.string() + modes);
  return {};
}

Result<void> CheckOne(const std::filesystem::path& path, FileType type, int depth,
                      std::vector<std::string>* mended) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return SystemError(errno, "look at", path);
  }
  if (S_ISLNK(st.st_mode)) {
    return Unsafe(path, "is a symlink", "put what it leads to in its place, or remove it");
  }
  const bool folder = S_ISDIR(st.st_mode);
  const bool is_other = type == FileType::kSocket ? !S_ISSOCK(st.st_mode)
                        : folder                  ? type == FileType::kFile
                                 : type == FileType::kFolder || !S_ISREG(st.st_mode);
  if (is_other) {
    return Unsafe(path, folder ? "is a directory" : "is not what it should be",
                  "move it away while nothing has the store open");
  }
  if (st.st_uid != geteuid()) {
    return Unsafe(path,
                  "belongs to user " + std::to_string(st.st_uid) + ", not to user " +
                      std::to_string(geteuid()) + " who runs this",
                  "find out who put it there; chown it only if you trust what is in it");
  }
  if (mended != nullptr) TRY(Mend(path, st.st_mode, *mended));
  if (!folder) return {};
  if (depth == kMaxFolders) return Unsafe(path, "lies too deep for a store", "move it away");
  auto names = ListDirectory(path);
  if (!names) {
    // An owner that prepares a database, or lets go of one, removes folders meanwhile.
    return names.error().code == ErrorCode::kNotFound ? Result<void>() : names.error();
  }
  for (const std::string& name : *names) {
    // An unfinished backup is never opened, and is removed before the next one.
    if (name == kUnfinished && path.filename() == kBackup) continue;
    if (auto r = CheckOne(path / name, FileType::kEither, depth + 1, mended); !r) return r;
  }
  return {};
}

struct CopyOnWrite {
  std::uint32_t magic;
  const char* name;
};

// From statfs(2), and from the sources of the file systems that it leaves out.
constexpr std::array<CopyOnWrite, 4> kCopyOnWrite = {
    {{0x9123683E, "btrfs"}, {0xCA451A4E, "bcachefs"}, {0x2FC12FC1, "ZFS"}, {0x3434, "NILFS"}}};

}  // namespace

Result<void> CheckStoreFiles(const std::filesystem::path& directory,
                             std::vector<std::string>* mended) {
  for (const char* name : {"data.mdb", "lock.mdb", "owner.lock", "commit.mark"}) {
    if (auto r = CheckOne(directory / name, FileType::kFile, 1, mended); !r) return r;
  }
  for (const char* name : {kUnfinished, kBackup, "quarantine"}) {
    if (auto r = CheckOne(directory / name, FileType::kFolder, 1, mended); !r) return r;
  }
  // An owner that serves, or that ended without removing it.
  if (auto r = CheckOne(directory / "owner.sock", FileType::kSocket, 1, mended); !r) return r;
  return {};
}

Result<void> CheckNewDirectory(const std::filesystem::path& directory,
                               const std::filesystem::path& backup) {
  constexpr std::array<std::string_view, 8> kOwn = {"data.mdb",   "lock.mdb",    "owner.lock",
                                                    "owner.sock", "commit.mark", kUnfinished,
                                                    kBackup,      "quarantine"};
  auto names = TRY(ListDirectory(directory));
  std::string foreign;
  for (const std::string& name : names) {
    // What is left of a store: what else lies there may have come since.
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) return {};
    // A file system's own.
    if (name == "lost+found" || name.starts_with(".nfs") || name.starts_with(".snapshot")) continue;
    if (!backup.empty() && IsSameFile(directory / name, backup)) continue;
    if (foreign.empty() || name < foreign) foreign = name;
  }
  if (foreign.empty()) return {};
  return Error{ErrorCode::kUnsafePath,
               directory.string() + " has other files in it (" + QuoteForMessage(foreign) +
                   ") and no store; nothing was changed",
               "name a directory that is empty or does not exist: a store has one of its own"};
}

std::string FileSystemWarning(const std::filesystem::path& directory) {
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0) return {};
  for (const CopyOnWrite& known : kCopyOnWrite) {
    if (static_cast<std::uint32_t>(info.f_type) != known.magic) continue;
    return directory.string() + " lies on " + known.name +
           ", which copies what is written: where it is full, every process that has the store "
           "open may be ended by SIGBUS; keep the store on ext4 or xfs, or never let it fill up";
  }
  return {};
}

namespace {

struct Texts {
  const char* name;
  const char* removed;
  const char* replaced;
  const char* truncated;
};

constexpr std::array<Texts, 3> kTexts = {
    {{"data.mdb", "data.mdb was removed", "data.mdb was replaced", "data.mdb was truncated"},
     {"lock.mdb", "lock.mdb was removed", "lock.mdb was replaced", "lock.mdb was truncated"},
     {"owner.lock", "owner.lock was removed", "owner.lock was replaced", ""}}};
constexpr std::size_t kLockFile = 1;
// Its size is not compared: opening may make its line shorter.
constexpr std::size_t kOwnerLock = 2;

std::int64_t Tick() {
  struct timespec now {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

StoreFiles::StoreFiles(const std::filesystem::path& directory, const FileId& data,
                       const std::optional<FileId>& lock, const std::optional<FileId>& owner)
    : count_(owner  ? 3
             : lock ? 2
                    : 1),
      directory_(directory.string()) {
  const std::array<FileId, 3> ids = {data, lock.value_or(FileId()), owner.value_or(FileId())};
  for (std::size_t i = 0; i < count_; ++i) {
    files_[i].path = (directory / kTexts[i].name).string();
    files_[i].id = ids[i];
  }
}

StoreFiles::Look StoreFiles::LookAgain() const {
  const std::int64_t tick = Tick();
  for (std::size_t i = 0; i < count_; ++i) {
    const File& file = files_[i];
    const Texts& texts = kTexts[i];
    // Loaded before lstat: another thread may see the file grow meanwhile.
    std::int64_t seen = file.bytes.load(std::memory_order_acquire);
    FileLook found;
    if (!LookAt(file.path.c_str(), found)) {
      if (errno == ENOENT || errno == ENOTDIR) return {State::kChanged, texts.removed};
      return {State::kUnknown, "", file.path.c_str(), errno};
    }
    if (found.id != file.id) return {State::kChanged, texts.replaced};
    if (i == kOwnerLock) continue;
    if (found.bytes < seen) return {State::kChanged, texts.truncated};
    while (seen < found.bytes &&
           !file.bytes.compare_exchange_weak(seen, found.bytes, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
  }
  looked_at_.store(tick, std::memory_order_relaxed);
  return {};
}

bool StoreFiles::LookedThisTick() const {
  return looked_at_.load(std::memory_order_relaxed) == Tick();
}

StoreFiles::Look StoreFiles::LookAtNames() const {
  ChangeLook now;
  const bool is_known = LookAtChange(directory_.c_str(), now);
  if (is_known && now.changed != 0 && now == unchanged_since_) return {};
  const Look look = LookAgain();
  const bool is_past = is_known && now.IsPast();
  unchanged_since_ = is_past && look.state == State::kSame ? now : ChangeLook();
  return look;
}

void StoreFiles::ExtendLockFile() const {
  if (count_ <= kLockFile) return;
  const File& file = files_[kLockFile];
  FileLook found;
  if (!LookAt(file.path.c_str(), found) || found.id != file.id) return;
  const std::int64_t bytes = file.bytes.load(std::memory_order_relaxed);
  // By name: a descriptor of our own would drop LMDB's locks when it is closed.
  if (found.bytes < bytes) static_cast<void>(!truncate(file.path.c_str(), bytes));
}

}  // namespace waybill::internal
