// RAII over LMDB's environment and transactions; LMDB's codes as Errors. Keeps LMDB's rules: one
// environment for each store in a process, close-on-exec. Uses no MDB_WRITEMAP and no duplicate
// keys, and MDB_NOSYNC only by the protocol of disk/committer.h.

#ifndef WAYBILL_STORE_DISK_LMDB_ENV_H_
#define WAYBILL_STORE_DISK_LMDB_ENV_H_

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "store/base/files.h"
#include "store/base/function_ref.h"
#include "waybill/result.h"

namespace waybill::lmdb {

using Bytes = std::span<const std::byte>;

// `rc` is not MDB_SUCCESS. `doing` completes "while …". EIO means a full disk if the file system of
// `directory` has almost nothing free: so ext4 reports it to LMDB.
Error MakeError(int rc, std::string_view doing, const std::filesystem::path& directory);

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
  // Returns an LMDB code; on MDB_SUCCESS this holds the transaction.
  int BeginRead(const Env& env) { return Begin(env, MDB_RDONLY); }
  int BeginWrite(const Env& env) { return Begin(env, 0); }
  int Commit() { return mdb_txn_commit(txn_.release()); }
  void Abort() { txn_.reset(); }
  // For read transactions. Reset gives up the snapshot and keeps the slot; Renew takes the newest
  // snapshot.
  void Reset() { mdb_txn_reset(get()); }
  int Renew() { return mdb_txn_renew(get()); }

  MDB_txn* get() const { return txn_.get(); }
  std::uint64_t id() const { return mdb_txn_id(get()); }
  explicit operator bool() const { return txn_ != nullptr; }

 private:
  struct Aborts {
    void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
  };
  int Begin(const Env& env, unsigned flags);

  std::unique_ptr<MDB_txn, Aborts> txn_;
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

// Each entry of a table from the key `first` on (empty: from the beginning), in key order, until
// `visit` returns false. Returns an LMDB code; MDB_SUCCESS also at the end.
int ForEach(MDB_txn* txn, MDB_dbi dbi, Bytes first,
            internal::FunctionRef<bool(Bytes key, Bytes value)> visit);

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_DISK_LMDB_ENV_H_
