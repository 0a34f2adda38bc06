#include "store/disk/lmdb/env.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "store/base/try.h"
#include "store/disk/lmdb/version.h"
#include "store/disk/page_walk/page_format.h"
#include "waybill/limits.h"

namespace waybill::lmdb {

namespace {

constexpr MDB_dbi kMaxTables = 16;
constexpr mdb_mode_t kFileMode = 0600;
constexpr int kOpenAgain = 20;
// A cache line for each reader, and two for LMDB.
constexpr off_t kLockFileBytes = (off_t{kMaxReaders} + 2) * 64;

Error MakeSystemError(int error_number, std::string_view doing, const std::filesystem::path& path) {
  Error error = internal::SystemError(error_number, "use", path);
  error.message += " (while " + std::string(doing) + ")";
  return error;
}

std::mutex registry_mutex;
std::set<internal::FileId>& Registry() {
  static std::set<internal::FileId> open;
  return open;
}

// btrfs writes each block to a new place, so even written blocks need room again, unless the file
// was marked while it was empty. Does nothing on other file systems, or if it fails.
void WriteInPlace(const internal::Fd& file) {
  constexpr std::uint32_t kBtrfs = 0x9123683E;
  struct statfs fs {};
  if (fstatfs(file.get(), &fs) != 0 || static_cast<std::uint32_t>(fs.f_type) != kBtrfs) return;
  int flags = 0;
  if (ioctl(file.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  static_cast<void>(!ioctl(file.get(), FS_IOC_SETFLAGS, &flags));
}

// LMDB maps lock.mdb. Its pages get their room on disk when they are first written; on a full disk
// that is SIGBUS. LMDB reports all other errors itself. Only call this before LMDB has the file
// open in this process: closing it drops locks.
Result<void> MakeRoomForLocks(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "lock.mdb";
  auto file = internal::OpenFile(path, O_RDWR | O_CREAT);
  if (!file) return {};
  // Not if it already has its room: a full xfs would refuse it again.
  struct stat st {};
  constexpr off_t kBlockBytes = 512;  // of st_blocks, always
  if (fstat(file->get(), &st) == 0 && st.st_blocks * kBlockBytes >= kLockFileBytes) return {};
  if (st.st_size == 0 && st.st_blocks == 0) WriteInPlace(*file);
  if (fallocate(file->get(), FALLOC_FL_KEEP_SIZE, 0, kLockFileBytes) == 0) return {};
  if (errno != ENOSPC && errno != EDQUOT) return {};
  return MakeSystemError(errno, "making room for its locks", directory);
}

bool NearlyFull(const std::filesystem::path& directory) {
  struct statvfs st {};
  if (statvfs(directory.c_str(), &st) != 0) return false;
  constexpr unsigned long kFewBytes = 256UL << 10;
  return st.f_bavail * st.f_frsize < kFewBytes;
}

// EINVAL: the mutexes in lock.mdb are destroyed. LMDB 0.9.26 to 0.9.31 do that at closing, if
// nobody else has the file open (ITS#10095); who was opening it just then finds them so.
int OpenLmdb(const EnvOptions& options, MDB_env** env) {
  int rc = mdb_env_create(env);
  if (rc == MDB_SUCCESS) rc = mdb_env_set_maxreaders(*env, kMaxReaders);
  if (rc == MDB_SUCCESS) rc = mdb_env_set_maxdbs(*env, kMaxTables);
  if (rc == MDB_SUCCESS && options.map_bytes != 0) {
    rc = mdb_env_set_mapsize(*env, options.map_bytes);
  }
  const unsigned flags = MDB_NOTLS | (options.read_only ? unsigned{MDB_RDONLY} : 0U) |
                         (options.locks ? 0U : unsigned{MDB_NOLOCK});
  if (rc == MDB_SUCCESS) rc = mdb_env_open(*env, options.directory.c_str(), flags, kFileMode);
  if (rc != MDB_SUCCESS) return rc;
  MDB_txn* txn = nullptr;
  const int locks = mdb_txn_begin(*env, nullptr, MDB_RDONLY, &txn);
  if (locks == MDB_SUCCESS) mdb_txn_abort(txn);
  return locks == EINVAL ? EINVAL : MDB_SUCCESS;
}

Result<std::string> ReadMetaPages(int fd, std::size_t page_bytes) {
  std::string pages(2 * page_bytes, '\0');
  const ssize_t n = pread(fd, pages.data(), pages.size(), 0);
  if (n == static_cast<ssize_t>(pages.size())) return pages;
  return MakeSystemError(n < 0 ? errno : EIO, "reading the meta pages", internal::PathOf(fd));
}

// Puts back meta page `which`, the one that the commit writes. False: it could not, or the other
// page changed, so another process wrote.
bool PutBack(int fd, const std::string& before, std::size_t page_bytes, std::size_t which) {
  const auto now = ReadMetaPages(fd, page_bytes);
  if (now && *now == before) return true;
  const std::size_t other = (1 - which) * page_bytes;
  if (now && now->compare(other, page_bytes, before, other, page_bytes) != 0) return false;
  const std::size_t at = which * page_bytes;
  const ssize_t written = pwrite(fd, before.data() + at, page_bytes, static_cast<off_t>(at));
  return written == static_cast<ssize_t>(page_bytes) && fsync(fd) == 0;
}

}  // namespace

Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory) {
  const std::string where = "while " + std::string(doing) + " in " + directory.string();
  switch (rc) {
    case MDB_MAP_FULL:
      return {ErrorCode::kStoreFull,
              "the memory map is full " + where + "; nothing was changed",
              {},
              Hint::kPruneOrEnlarge};
    case MDB_READERS_FULL:
      return {ErrorCode::kLimitExceeded, "all reader slots are taken " + where,
              "stop observers that are not needed"};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
      return {ErrorCode::kDamaged, std::string(mdb_strerror(rc)) + " " + where, {}, Hint::kRecover};
    case MDB_PANIC:
      return {ErrorCode::kOutcomeUnknown, "an earlier write failed half way " + where,
              "close the store and open it again"};
    case EIO:
      if (NearlyFull(directory)) {
        return {ErrorCode::kDiskFull, "the file system is full " + where,
                "free space on that file system, then try again"};
      }
      return {ErrorCode::kIo, std::string(mdb_strerror(rc)) + " " + where,
              "try again; if it goes on, look for disk errors in the kernel's log"};
    default:
      if (rc > 0) return MakeSystemError(rc, doing, directory);
      return {ErrorCode::kIo, std::string(mdb_strerror(rc)) + " " + where, ""};
  }
}

Error WasWrittenOver(const std::filesystem::path& directory) {
  return {ErrorCode::kOwned,
          "data.mdb in " + directory.string() +
              " was written over under the process that owns the store",
          "find out who did that, then close the store and open it again"};
}

Result<std::unique_ptr<Env>> Env::Open(const EnvOptions& options) {
  TRY(CheckVersion());
  std::unique_ptr<Env> env(new Env);
  env->directory_ = options.directory;
  env->id_ = TRY(internal::FileIdOf(options.directory));
  {
    const std::lock_guard lock(registry_mutex);
    env->registered_ = Registry().insert(env->id_).second;
  }
  if (!env->registered_) {
    return Error{ErrorCode::kOwned,
                 "this process has " + options.directory.string() + " open already",
                 "use the handle that is open"};
  }
  if (options.locks) TRY(MakeRoomForLocks(options.directory));

  int rc = OpenLmdb(options, &env->env_);
  // LMDB makes them anew once all such processes have closed it.
  for (int again = 1; rc == EINVAL && again <= kOpenAgain; ++again) {
    if (env->env_ != nullptr) mdb_env_close(std::exchange(env->env_, nullptr));
    // Not all at the same time.
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + getpid() % (4 * again)));
    rc = OpenLmdb(options, &env->env_);
  }
  if (rc == EINVAL) {
    return Error{ErrorCode::kIo,
                 "the locks in " + (options.directory / "lock.mdb").string() +
                     " are not usable, and a process that has the file open keeps them so; "
                     "nothing was changed",
                 "stop everything that has the store open, then try again"};
  }
  if (rc != MDB_SUCCESS) return MakeError(rc, "opening the database", options.directory);

  mdb_filehandle_t fd = -1;
  rc = mdb_env_get_fd(env->env_, &fd);
  if (rc != MDB_SUCCESS) return MakeError(rc, "opening the database", options.directory);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return MakeSystemError(errno, "setting close-on-exec", options.directory);
  }
  const std::size_t meta_bytes = 2 * env->GetInfo().page_size;
  void* const meta = mmap(nullptr, meta_bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (meta == MAP_FAILED) {
    return MakeSystemError(errno, "mapping the meta pages", options.directory);
  }
  env->meta_ = meta;
  env->meta_bytes_ = meta_bytes;
  return env;
}

Env::~Env() {
  if (meta_ != nullptr) munmap(meta_, meta_bytes_);
  if (env_ != nullptr) mdb_env_close(env_);
  const std::lock_guard lock(registry_mutex);
  if (registered_) Registry().erase(id_);
}

Result<internal::FileId> Env::DataFileId() const {
  mdb_filehandle_t fd = -1;
  struct stat st {};
  if (mdb_env_get_fd(env_, &fd) != MDB_SUCCESS || fstat(fd, &st) != 0) {
    return MakeSystemError(errno, "opening the database", directory_);
  }
  return internal::FileId{st.st_dev, st.st_ino};
}

Result<void> Env::Flush() const {
  int rc = MDB_SUCCESS;
  unsigned flags = 0;
  mdb_filehandle_t fd = -1;
  if (mdb_env_get_flags(env_, &flags) == MDB_SUCCESS && (flags & MDB_RDONLY) != 0) {
    // mdb_env_sync would refuse.
    if (mdb_env_get_fd(env_, &fd) != MDB_SUCCESS || fdatasync(fd) != 0) rc = errno;
  } else {
    rc = mdb_env_sync(env_, 1);
  }
  if (rc == MDB_SUCCESS) return {};
  return MakeError(rc, "flushing data.mdb", directory_);
}

unsigned Env::ClearDeadReaders() const {
  int dead = 0;
  if (mdb_reader_check(env_, &dead) != MDB_SUCCESS || dead < 0) return 0;
  return static_cast<unsigned>(dead);
}

Env::Info Env::GetInfo() const {
  MDB_envinfo info{};
  MDB_stat stat{};
  if (mdb_env_info(env_, &info) != MDB_SUCCESS || mdb_env_stat(env_, &stat) != MDB_SUCCESS) {
    return {};
  }
  return {info.me_mapsize, info.me_last_pgno,  info.me_last_txnid,
          stat.ms_psize,   info.me_numreaders, info.me_maxreaders};
}

int Txn::Begin(const Env& env, unsigned flags) {
  Abort();
  MDB_txn* begun = nullptr;
  const int rc = mdb_txn_begin(env.get(), nullptr, flags, &begun);
  txn_.reset(begun);
  return rc;
}

Result<void> CommitOrPutBack(Txn& txn, const Env& env, Flushes flushes) {
  mdb_filehandle_t fd = -1;
  mdb_env_get_fd(env.get(), &fd);  // fails without an environment only
  const std::string before(env.MetaPages());
  const std::size_t page_bytes = before.size() / 2;
  const std::size_t which = txn.id() % 2;
  internal::MetaRecord follows;
  std::memcpy(&follows, before.data() + (1 - which) * page_bytes + internal::kPageHeaderBytes,
              sizeof(follows));
  if (follows.txn_id + 1 != txn.id()) {
    txn.Abort();
    return WasWrittenOver(env.directory());
  }
  // LMDB 0.9 knows this flag of the environment only, and of no single transaction. There is one
  // writer, so nobody else commits meanwhile.
  const bool by_caller = flushes == Flushes::kByCaller;
  if (by_caller) mdb_env_set_flags(env.get(), MDB_NOSYNC, 1);
  int rc = txn.Commit();
  if (by_caller) mdb_env_set_flags(env.get(), MDB_NOSYNC, 0);
  if (rc == MDB_SUCCESS) return {};
  // A file takes a page at any place but a negative one, which LMDB has from a damaged free list.
  if (rc == EINVAL) rc = MDB_CORRUPTED;
  if (PutBack(fd, before, page_bytes, which)) return MakeError(rc, "committing", env.directory());
  return Error{ErrorCode::kOutcomeUnknown,
               "a commit in " + env.directory().string() +
                   " failed half way, and the state on disk is unknown",
               "look for disk errors in the kernel's log, then open the store to find out"};
}

std::optional<std::uint64_t> EntriesOf(MDB_txn* txn, MDB_dbi main, std::string_view table) {
  // The value under a table's name is LMDB's struct MDB_db.
  constexpr std::size_t kTableRecordBytes = 48;
  constexpr std::size_t kEntriesAt = 32;
  MDB_val k = ToVal(std::as_bytes(std::span(table)));
  MDB_val v{};
  if (mdb_get(txn, main, &k, &v) != MDB_SUCCESS || v.mv_size != kTableRecordBytes) {
    return std::nullopt;
  }
  std::uint64_t entries = 0;
  std::memcpy(&entries, static_cast<const std::byte*>(v.mv_data) + kEntriesAt, sizeof(entries));
  return entries;
}

int CursorGet(MDB_cursor* cursor, Bytes* key, Bytes* value, MDB_cursor_op op) {
  MDB_val k = ToVal(*key);
  MDB_val v{};
  const int rc = mdb_cursor_get(cursor, &k, &v, op);
  if (rc == MDB_SUCCESS) {
    *key = FromVal(k);
    *value = FromVal(v);
  }
  return rc;
}

int ForEach(MDB_txn* txn, MDB_dbi dbi, Bytes first,
            internal::FunctionRef<bool(Bytes key, Bytes value)> visit) {
  MDB_cursor* opened = nullptr;
  if (const int rc = mdb_cursor_open(txn, dbi, &opened); rc != MDB_SUCCESS) return rc;
  const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> cursor(opened, mdb_cursor_close);
  Bytes key = first;
  Bytes value;
  int rc = CursorGet(opened, &key, &value, first.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (rc == MDB_SUCCESS && visit(key, value)) rc = CursorGet(opened, &key, &value, MDB_NEXT);
  return rc == MDB_NOTFOUND ? MDB_SUCCESS : rc;
}

}  // namespace waybill::lmdb
