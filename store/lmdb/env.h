// RAII over LMDB's environment and transactions; LMDB's codes as Errors. The rules that LMDB needs
// kept (one environment a store and process, close-on-exec, no MDB_NOSYNC, no MDB_WRITEMAP, no
// duplicate keys) are kept here.

#ifndef WAYBILL_STORE_LMDB_ENV_H_
#define WAYBILL_STORE_LMDB_ENV_H_

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

// `rc` is not MDB_SUCCESS. `doing` completes "while …". EIO is taken for a full disk where the file
// system of `directory` has next to nothing free: that is how ext4 reports one to LMDB.
Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory);

// An errno of a system call on `path`.
Error MakeSystemError(int error_number, std::string_view doing, const std::filesystem::path& path);

struct EnvOptions {
  std::filesystem::path directory;
  bool read_only = false;
  std::uint64_t map_bytes = 0;  // 0: as the file says
};

class Env {
 public:
  // kOwned where this process has the directory open already: a second environment on one store
  // would drop the locks of the first.
  static Result<std::unique_ptr<Env>> Open(const EnvOptions& options);
  ~Env();
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  MDB_env* get() const { return env_; }
  const std::filesystem::path& directory() const { return directory_; }

  // Of the file that is open, whatever is under the name data.mdb by now.
  Result<internal::FileId> DataFileId() const;

  // Frees the slots of readers that died; how many.
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
  std::filesystem::path directory_;
  internal::FileId id_;
  bool registered_ = false;
};

// A transaction. Aborted when it goes out of scope uncommitted.
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
  // For read transactions: give up the snapshot, keep the slot; take the newest snapshot.
  void Reset() { mdb_txn_reset(txn_); }
  int Renew() { return mdb_txn_renew(txn_); }

  MDB_txn* get() const { return txn_; }
  std::uint64_t id() const { return mdb_txn_id(txn_); }
  explicit operator bool() const { return txn_ != nullptr; }

 private:
  MDB_txn* txn_ = nullptr;
};

// A commit that leaves nothing behind where it fails. Where LMDB can't write its meta page it
// writes the old transaction ID back, and leaves the new roots: a page whose tree is of another
// commit than it says, which the next opening takes for damage. And it refuses every later write
// (MDB_PANIC): the environment has to be opened anew.
//
// Ends the transaction, whatever comes. Commits; on failure the meta page is put back as it was.
// Nobody reads by it: the other one has the higher transaction ID until the commit is done.
// kOutcomeUnknown: it could not be put back.
Result<void> CommitOrPutBack(Txn& txn, const Env& env);

inline MDB_val ToVal(Bytes bytes) {
  // LMDB's type is not const-correct; it does not write through keys or values given to it.
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}
inline Bytes FromVal(const MDB_val& val) {
  return {static_cast<const std::byte*>(val.mv_data), val.mv_size};
}

// How many entries a named table has in `txn`'s snapshot; nullopt where the main table does not
// name it. mdb_stat must not be asked: in a transaction that was renewed it says what an earlier
// snapshot held where the table is missing now.
std::optional<std::uint64_t> EntriesOf(MDB_txn* txn, MDB_dbi main, std::string_view table);

// mdb_cursor_get: `key` is read by MDB_SET_RANGE and the like; both are set on MDB_SUCCESS.
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

#endif  // WAYBILL_STORE_LMDB_ENV_H_
