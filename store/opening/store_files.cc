#include "store/opening/store_files.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

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

// Whatever a store has in its directory.
struct OwnFile {
  std::string_view name;
  FileType type;
};
constexpr OwnFile kOwn[] = {{"data.mdb", FileType::kFile},
                            {"lock.mdb", FileType::kFile},
                            {"owner.lock", FileType::kFile},
                            {"commit.mark", FileType::kFile},
                            {kUnfinished, FileType::kFolder},
                            {kBackup, FileType::kFolder},
                            {"quarantine", FileType::kFolder},
                            // An owner that serves, or that ended without removing it.
                            {"owner.sock", FileType::kSocket}};

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

struct FileSystem {
  std::uint32_t magic = 0;
  const char* name = "";
  bool writes_in_place = false;
};

// From statfs(2), and from the sources of the file systems that it leaves out. ext2, ext3 and ext4
// have one number.
constexpr std::array<FileSystem, 7> kFileSystems = {{{0xEF53, "ext4", true},
                                                     {0x58465342, "xfs", true},
                                                     {0x01021994, "tmpfs", true},
                                                     {0x9123683E, "btrfs"},
                                                     {0xCA451A4E, "bcachefs"},
                                                     {0x2FC12FC1, "ZFS"},
                                                     {0x3434, "NILFS"}}};

// nullptr: it is none of them, or unknown.
const FileSystem* FileSystemOf(const std::filesystem::path& directory) {
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0) return nullptr;
  const auto at =
      std::ranges::find(kFileSystems, static_cast<std::uint32_t>(info.f_type), &FileSystem::magic);
  return at == kFileSystems.end() ? nullptr : at;
}

}  // namespace

Result<void> CheckStoreFiles(const std::filesystem::path& directory,
                             std::vector<std::string>* mended) {
  for (const auto& [name, type] : kOwn) TRY(CheckOne(directory / name, type, 1, mended));
  return {};
}

Result<void> CheckNewDirectory(const std::filesystem::path& directory,
                               const std::filesystem::path& backup) {
  auto names = TRY(ListDirectory(directory));
  std::string foreign;
  for (const std::string& name : names) {
    // What is left of a store: what else lies there may have come since.
    if (std::ranges::any_of(kOwn, [&](const OwnFile& own) { return name == own.name; })) return {};
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

Error CannotBeAt(std::string_view what, const std::filesystem::path& path, const std::string& why,
                 std::string_view hint) {
  return {ErrorCode::kInvalidArgument,
          std::string(what) + " can't be made at " + path.string() + ": " + why +
              "; nothing was changed",
          std::string(hint)};
}

bool WritesInPlace(const std::filesystem::path& directory) {
  const FileSystem* const known = FileSystemOf(directory);
  return known != nullptr && known->writes_in_place;
}

std::string FileSystemWarning(const std::filesystem::path& directory) {
  const FileSystem* const known = FileSystemOf(directory);
  if (known == nullptr || known->writes_in_place) return {};
  return directory.string() + " lies on " + known->name +
         ", which copies what is written: where it is full, every process that has the store open "
         "may be ended by SIGBUS; keep the store on ext4 or xfs, or never let it fill up";
}

namespace {

// Those that are compared: an owner's; with a slot the first two, else the first.
constexpr std::array kCompared = {"data.mdb", "lock.mdb", "owner.lock"};
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
    files_[i].path = (directory / kCompared[i]).string();
    files_[i].id = ids[i];
  }
}

StoreFiles::Look StoreFiles::LookAgain() const {
  const std::int64_t tick = Tick();
  for (std::size_t i = 0; i < count_; ++i) {
    const File& file = files_[i];
    const char* const path = file.path.c_str();
    // Loaded before lstat: another thread may see the file grow meanwhile.
    std::int64_t seen = file.bytes.load(std::memory_order_acquire);
    FileLook found;
    if (!LookAt(path, found)) {
      if (errno == ENOENT || errno == ENOTDIR) return {State::kChanged, path, "removed"};
      return {State::kUnknown, path, "", errno};
    }
    if (found.id != file.id) return {State::kChanged, path, "replaced"};
    if (i == kOwnerLock) continue;
    if (found.bytes < seen) return {State::kChanged, path, "truncated"};
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
