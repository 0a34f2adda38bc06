#include "store/opening/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/disk/lmdb/env.h"
#include "store/opening/inspect.h"
#include "store/opening/store_files.h"

namespace waybill::internal {

// ---- A file of its own, wherever an operator wants a backup

namespace {

constexpr mode_t kMode = 0600;

Error IsThere(const std::filesystem::path& path) {
  return CannotBeAt("the backup", path, "there is something of that name, which was left as it is",
                    "name a file that is not there yet");
}

Result<void> CheckPlace(const std::filesystem::path& path, const std::filesystem::path& store) {
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") {
    return CannotBeAt("the backup", path, "it does not name a file",
                      "name a file in that directory");
  }
  auto there = TRY(Exists(path));
  if (there) return IsThere(path);
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  if (!TRY(IsDirectory(parent))) {
    return CannotBeAt("the backup", path, parent.string() + " is not a directory",
                      "name a file in a directory that is there");
  }
  if (!IsBelow(path, store)) return {};
  return CannotBeAt("the backup", path,
                    "it lies in the store " + store.string() + ", and would be lost with it",
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

// Nobody sees it before it is whole, and it replaces nothing.
class BackupFile {
 public:
  // Empty, mode 0600, in the directory of `path`, without a name where the file system allows that.
  // kInvalidArgument: `path` exists, lies in the store `store`, or is not the name of a file in a
  // directory that exists.
  static Result<BackupFile> Make(const std::filesystem::path& path,
                                 const std::filesystem::path& store);
  // Removes what was not published.
  ~BackupFile();
  BackupFile(BackupFile&&) = default;
  BackupFile& operator=(BackupFile&&) = delete;
  BackupFile(const BackupFile&) = delete;
  BackupFile& operator=(const BackupFile&) = delete;

  const Fd& file() const { return file_; }
  const std::filesystem::path& path() const { return path_; }

  // Gives the file, which is synced, its name, and syncs the directory. kInvalidArgument: the name
  // was taken meanwhile, and is left as it is.
  Result<void> Publish();

 private:
  explicit BackupFile(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
  Fd directory_;
  Fd file_;
  std::string temporary_;  // its name until it is published; empty: it has none
};

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

// ---- The copy

constexpr std::string_view kEnding = ".mdb";
constexpr std::size_t kSequenceDigits = 20;

std::string NameOf(const Backup& backup, Timestamp now) {
  std::string digits = std::to_string(backup.commit_sequence);
  digits.insert(0, kSequenceDigits - digits.size(), '0');
  return "v" + std::to_string(backup.schema_version) + "-" + digits + "-" +
         TimeInNames(static_cast<std::time_t>(now.seconds)) + std::string(kEnding);
}

// False: not the name of a backup.
bool ParseName(const std::string& name, Backup& backup) {
  if (!name.starts_with('v') || !name.ends_with(kEnding)) return false;
  const char* const end = name.data() + name.size();
  const auto version = std::from_chars(name.data() + 1, end, backup.schema_version);
  if (version.ec != std::errc() || version.ptr == end || *version.ptr != '-') return false;
  const auto sequence = std::from_chars(version.ptr + 1, end, backup.commit_sequence);
  return sequence.ec == std::errc() && sequence.ptr - version.ptr - 1 == kSequenceDigits &&
         sequence.ptr != end && *sequence.ptr == '-';
}

// Checked before the first byte: a copy that fails half way fills the store's own disk.
Result<void> CheckRoom(const std::filesystem::path& directory, std::uint64_t bytes) {
  struct statvfs fs {};
  if (statvfs(directory.c_str(), &fs) != 0) return SystemError(errno, "look at", directory);
  const std::uint64_t free = std::uint64_t{fs.f_bavail} * fs.f_frsize;
  if (free >= bytes) return {};
  return Error{ErrorCode::kDiskFull,
               "no room for a backup in " + directory.string() + ": it may need " +
                   std::to_string(bytes) + " bytes, and " + std::to_string(free) +
                   " are free; nothing was changed",
               "free space there, then try again"};
}

// Writes what comes out of `pipe` until its other end is closed.
Result<void> Drain(const Fd& pipe, const Fd& file, const std::filesystem::path& path,
                   std::uint64_t total, const Progress& progress) {
  std::vector<char> buffer(std::size_t{1} << 16);
  std::uint64_t done = 0;
  while (true) {
    const ssize_t n = read(pipe.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "copy to", path);
    if (n == 0) return {};
    const auto bytes = static_cast<std::size_t>(n);
    TRY(PWriteAll(file, {buffer.data(), bytes}, static_cast<off_t>(done), path));
    done += bytes;
    if (progress && !progress(done, std::max(done, total))) {
      return Error{ErrorCode::kInterrupted,
                   "the backup was stopped; " + path.string() + " was not made", ""};
    }
  }
}

// LMDB writes to a pipe, on a thread of its own: so that errors of the file are not taken for the
// store's, and it can be stopped.
Result<void> CopyInto(const lmdb::Env& env, const Fd& file, const std::filesystem::path& path,
                      std::uint64_t total, const Progress& progress) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError(errno, "copy to", path);
  Fd to(ends[1]);
  int rc = MDB_SUCCESS;
  Result<void> drained;
  {
    const std::jthread copying([&] {
      rc = mdb_env_copyfd2(env.get(), to.get(), MDB_CP_COMPACT);
      to.Reset();
    });
    // Closed first, so that LMDB stops where this does.
    const Fd from(ends[0]);
    drained = Drain(from, file, path, total, progress);
  }
  if (!drained) return drained;
  return rc == MDB_SUCCESS ? Result<void>()
                           : lmdb::MakeError(rc, "making a backup", env.directory());
}

std::uint64_t BytesOf(const lmdb::Env& env) {
  const lmdb::Env::Info info = env.GetInfo();
  return (info.last_page + 1) * info.page_size;
}

using IsKept = FunctionRef<Result<void>(std::uint64_t sequence)>;

// Copies the last commit into `file`, syncs and checks the copy.
Result<Backup> Copy(const OpenedDatabase& database, const Fd& file,
                    const std::filesystem::path& path, const Progress& progress, IsKept is_kept) {
  const lmdb::Env& env = *database.env;
  TRY(CopyInto(env, file, path, BytesOf(env), progress));
  TRY(SyncFile(file, path));
  const auto inspection = TRY(InspectFile(file, FileIs::kCompactCopy));
  if (!inspection.sound || inspection.identity->uuid != database.identity.uuid) {
    return Error{ErrorCode::kDamaged,
                 "the backup of " + env.directory().string() + " fails its check" +
                     inspection.Why() + "; nothing was changed",
                 "look for disk and memory errors in the kernel's log"};
  }
  TRY(is_kept(inspection.state->commit_sequence));
  return Backup{.path = path,
                .schema_version = database.identity.schema_version,
                .commit_sequence = inspection.state->commit_sequence,
                .bytes = static_cast<std::uint64_t>(inspection.file.bytes)};
}

// What goes once `made` is there: the oldest backups, and earlier ones of the same state, so that a
// migration that keeps failing does not push out the others. Never the one just made: backups of a
// store that was here before may have higher sequences.
Result<std::vector<Backup>> NotKeptBeside(const Backup& made,
                                          const std::filesystem::path& directory) {
  auto backups = FindBackups(directory);
  if (!backups) return backups.error();
  std::size_t kept = 1;
  std::erase_if(*backups, [&](const Backup& backup) {
    if (backup.path.filename() == made.path.filename()) return true;
    const bool same_state = backup.schema_version == made.schema_version &&
                            backup.commit_sequence == made.commit_sequence;
    return !same_state && ++kept <= kBackupsKept;
  });
  return backups;
}

}  // namespace

std::string TimeInNames(std::time_t time) {
  struct tm utc {};
  gmtime_r(&time, &utc);
  char text[32];
  strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

Result<std::vector<Backup>> FindBackups(const std::filesystem::path& directory) {
  TRY(CheckPrivateDirectory(directory));
  const std::filesystem::path folder = directory / "backup";
  std::vector<Backup> backups;
  if (!TRY(Exists(folder))) return backups;
  TRY(CheckPrivateDirectory(folder));
  const auto names = TRY(ListDirectory(folder));
  for (const std::string& name : names) {
    Backup backup;
    if (!ParseName(name, backup)) continue;
    backup.path = folder / name;
    struct stat st {};
    // Symlinks do not count as backups: what they lead to is not the store's.
    if (lstat(backup.path.c_str(), &st) != 0) {
      if (errno == ENOENT) continue;
      return SystemError(errno, "look at", backup.path);
    }
    if (!S_ISREG(st.st_mode)) continue;
    backup.bytes = static_cast<std::uint64_t>(st.st_size);
    backups.push_back(std::move(backup));
  }
  std::sort(backups.begin(), backups.end(), [](const Backup& a, const Backup& b) {
    if (a.commit_sequence != b.commit_sequence) return a.commit_sequence > b.commit_sequence;
    return a.path.filename() > b.path.filename();
  });
  return backups;
}

Result<Backup> MakeBackup(const OwnedStore& store, Timestamp now) {
  return MakeBackupOfLive(store.database, now, [&](std::uint64_t sequence) -> Result<void> {
    if (sequence == store.state.commit_sequence) return {};
    return Error{ErrorCode::kDamaged,
                 "the backup of " + store.database.env->directory().string() + " is of commit " +
                     std::to_string(sequence) + ", not of commit " +
                     std::to_string(store.state.commit_sequence) + "; nothing was changed",
                 "look for disk and memory errors in the kernel's log"};
  });
}

Result<Backup> WriteBackupOfLive(const OpenedDatabase& database, const std::filesystem::path& path,
                                 const Progress& progress,
                                 FunctionRef<Result<void>(std::uint64_t sequence)> is_kept) {
  const lmdb::Env& env = *database.env;
  auto file = BackupFile::Make(path, env.directory());
  if (!file) return file.error();
  TRY(CheckRoom(std::filesystem::absolute(path).parent_path(), BytesOf(env)));
  auto made = TRY(Copy(database, file->file(), path, progress, is_kept));
  TRY(file->Publish());
  return made;
}

Result<Backup> MakeBackupOfLive(const OpenedDatabase& database, Timestamp now,
                                FunctionRef<Result<void>(std::uint64_t sequence)> is_kept) {
  const lmdb::Env& env = *database.env;
  const std::filesystem::path folder = env.directory() / "backup";
  auto is_there = TRY(Exists(folder));
  if (is_there) TRY(CheckPrivateDirectory(folder));
  TRY(CheckRoom(is_there ? folder : env.directory(), BytesOf(env)));
  TRY(MakePrivateDirectory(folder));

  const std::filesystem::path unfinished = folder / "new.tmp";
  TRY(RemoveFile(unfinished));
  auto file = TRY(OpenFile(unfinished, O_RDWR | O_CREAT | O_EXCL));
  auto made = Copy(database, file, unfinished, {}, is_kept);
  if (made) made->path = folder / NameOf(*made, now);
  // Before the new one counts, so that only the disk can fail afterwards, not memory: what is left
  // over at each failure would add up.
  auto too_many = made ? NotKeptBeside(*made, env.directory()) : made.error();
  auto opened = OpenDirectory(folder);
  if (!too_many || !opened) {
    static_cast<void>(RemoveFile(unfinished));  // best effort: the next one removes it, too
    return too_many ? opened.error() : too_many.error();
  }
  if (rename(unfinished.c_str(), made->path.c_str()) != 0) {
    return SystemError(errno, "make", made->path);
  }
  if (fsync(opened->get()) != 0) return SystemError(errno, "sync", folder);
  for (const Backup& backup : *too_many) TRY(RemoveFile(backup.path));
  return made;
}

}  // namespace waybill::internal
