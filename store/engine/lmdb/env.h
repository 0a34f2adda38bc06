// RAII over LMDB's environment and transactions; LMDB's codes as Errors. Keeps LMDB's rules: one
// environment for each store in a process, close-on-exec. Uses no MDB_WRITEMAP and no duplicate
// keys, and MDB_NOSYNC only by the protocol of database/committer.h.

#ifndef WAYBILL_STORE_ENGINE_LMDB_ENV_H_
#define WAYBILL_STORE_ENGINE_LMDB_ENV_H_

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::lmdb {

using Bytes = std::span<const std::byte>;

// `rc` is not MDB_SUCCESS. `doing` completes "while …". EIO means a full disk if the file system of
// `directory` has almost nothing free: so ext4 reports it to LMDB.
Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory);

// The errno of a system call on `path`.
Error MakeSystemError(int error_number, std::string_view doing, const std::filesystem::path& path);

struct EnvOptions {
  std::filesystem::path directory;
  bool read_only = false;
  std::uint64_t map_bytes = 0;  // 0: what the file says
  // False: lock.mdb is not touched. Only while nobody commits: a writer would not know of readers.
  bool locks = true;
};

class Env {
 public:
  // kOwned: this process already has the directory open. A second environment on one store would
  // drop the first one's locks.
  static Result<std::unique_ptr<Env>> Open(const EnvOptions& options);
  ~Env();
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  MDB_env* get() const { return env_; }
  const std::filesystem::path& directory() const { return directory_; }

  // Both meta pages as they are now, also if something else wrote them: looked at in the kernel's
  // cache, without a call. For a file that is not truncated.
  std::string_view MetaPages() const { return {static_cast<const char*>(meta_), meta_bytes_}; }

  // The open file's, even if data.mdb is another file by now.
  Result<internal::FileId> DataFileId() const;

  // fdatasync of data.mdb. After an error nobody knows what is on the disk, not even if a later
  // call succeeds. Also what another process wrote.
  Result<void> Flush() const;

  // Frees the slots of dead readers and returns how many.
  unsigned ClearDeadReaders() const;

  struct Info {
    std::uint64_t map_bytes = 0;
    std::uint64_t last_page = 0;
    std::uint64_t last_txn_id = 0;
    std::size_t page_size = 0;
    unsigned readers = 0;
    unsigned max_readers = 0;
  };
  Info GetInfo() const;

 private:
  Env() = default;

  MDB_env* env_ = nullptr;
  void* meta_ = nullptr;  // a mapping
  std::size_t meta_bytes_ = 0;
  std::filesystem::path directory_;
  internal::FileId id_;
  bool registered_ = false;
};

// Aborts if it goes out of scope without a commit.
class Txn {
 public:
  Txn() = default;
  ~Txn() { Abort(); }
  Txn(Txn&& other) noexcept : txn_(std::exchange(other.txn_, nullptr)) {}
  Txn& operator=(Txn&& other) noexcept {
    if (this != &other) {
      Abort();
      txn_ = std::exchange(other.txn_, nullptr);
    }
    return *this;
  }
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  // Returns an LMDB code; on MDB_SUCCESS this holds the transaction.
  int BeginRead(const Env& env);
  int BeginWrite(const Env& env);
  int Commit() { return mdb_txn_commit(std::exchange(txn_, nullptr)); }
  void Abort() {
    if (txn_ != nullptr) mdb_txn_abort(std::exchange(txn_, nullptr));
  }
  // For read transactions. Reset gives up the snapshot and keeps the slot; Renew takes the newest
  // snapshot.
  void Reset() { mdb_txn_reset(txn_); }
  int Renew() { return mdb_txn_renew(txn_); }

  MDB_txn* get() const { return txn_; }
  std::uint64_t id() const { return mdb_txn_id(txn_); }
  explicit operator bool() const { return txn_ != nullptr; }

 private:
  MDB_txn* txn_ = nullptr;
};

enum class Flushes : std::uint8_t {
  kByCommit,  // LMDB's own two: the pages, then the meta page
  kByCaller,  // none: what is committed is on the disk after Env::Flush
};

// kOwned: the open data.mdb has other meta pages than this owner wrote last.
Error WasWrittenOver(const std::filesystem::path& directory);

// Commits. If that fails, puts the meta page back as it was; the transaction ends either way.
// kOutcomeUnknown: it could not be put back. kOwned: WasWrittenOver, before anything was written.
// LMDB would end the process where an older tree contradicts what it remembers of this one.
//
// If LMDB can't write its meta page, it writes the old transaction ID back but leaves the new
// roots: the page then names another commit's tree, which the next opening would take for damage.
// LMDB also refuses every later write (MDB_PANIC): open the environment anew. Putting the page back
// is safe, since readers use the other page, with the higher transaction ID, until the commit is
// done.
Result<void> CommitOrPutBack(Txn& txn, const Env& env, Flushes flushes = Flushes::kByCommit);

inline MDB_val ToVal(Bytes bytes) {
  // MDB_val is not const-correct, but LMDB does not write through the keys and values it is given.
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}
inline Bytes FromVal(const MDB_val& val) {
  return {static_cast<const std::byte*>(val.mv_data), val.mv_size};
}

// How many entries a named table has in `txn`'s snapshot. nullopt: the main table does not name it.
// Not by mdb_stat: if a renewed transaction lacks the table, that says what an earlier snapshot
// had.
std::optional<std::uint64_t> EntriesOf(MDB_txn* txn, MDB_dbi main, std::string_view table);

// mdb_cursor_get. MDB_SET_RANGE and the like read `key`; MDB_SUCCESS sets both.
int CursorGet(MDB_cursor* cursor, Bytes* key, Bytes* value, MDB_cursor_op op);

// Walks one table in key order.
class Cursor {
 public:
  Cursor() = default;
  ~Cursor() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  int Open(MDB_txn* txn, MDB_dbi dbi) { return mdb_cursor_open(txn, dbi, &cursor_); }
  int Get(Bytes* key, Bytes* value, MDB_cursor_op op) { return CursorGet(cursor_, key, value, op); }

 private:
  MDB_cursor* cursor_ = nullptr;
};

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_ENGINE_LMDB_ENV_H_
