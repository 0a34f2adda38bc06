// Bare LMDB, with its default durability (the data by fdatasync, the meta page by O_DSYNC), and
// with one fdatasync a commit into room that was written before. The latter writes the pages that
// waybill writes, as it writes them, and does nothing else: it is the limit of a store over LMDB.
// By itself it is not durable: what tells a whole commit from a torn one is waybill's.

#include <lmdb.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <utility>

#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

void CheckLmdb(int rc, const char* doing) {
  if (rc != MDB_SUCCESS) {
    throw std::runtime_error(std::string("LMDB: ") + doing + ": " + mdb_strerror(rc));
  }
}

class LmdbWrite {
 public:
  explicit LmdbWrite(MDB_env* env) { CheckLmdb(mdb_txn_begin(env, nullptr, 0, &txn_), "begin"); }
  ~LmdbWrite() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  LmdbWrite(const LmdbWrite&) = delete;
  LmdbWrite& operator=(const LmdbWrite&) = delete;

  void Put(MDB_dbi dbi, const BareKey& key, const std::string& value) {
    MDB_val k{BareKey::kBytes, const_cast<void*>(key.data())};
    MDB_val v{value.size(), const_cast<char*>(value.data())};
    CheckLmdb(mdb_put(txn_, dbi, &k, &v, 0), "put");
  }
  void Delete(MDB_dbi dbi, const BareKey& key) {
    MDB_val k{BareKey::kBytes, const_cast<void*>(key.data())};
    CheckLmdb(mdb_del(txn_, dbi, &k, nullptr), "delete");
  }
  void Commit() { CheckLmdb(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }
  MDB_txn* get() { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

enum class Flush : std::uint8_t { kByLmdb, kOnce };

class LmdbPeer final : public Peer {
 public:
  LmdbPeer(std::filesystem::path directory, Flush flush)
      : Peer(std::move(directory)), flush_(flush) {}
  ~LmdbPeer() override { Close(); }

  std::string name() const override {
    return flush_ == Flush::kOnce ? "bare LMDB, one flush" : "bare LMDB";
  }
  std::string how_it_writes() const override {
    return std::string("put; put and delete in one transaction; ") +
           (flush_ == Flush::kOnce
                ? "MDB_NOSYNC and one fdatasync, into written room: the limit of waybill's commits"
                : "default durability");
  }
  std::string how_it_reads() const override {
    return "hash the image ref, renew a read transaction, mdb_get";
  }
  std::string how_callers_write() const override { return "LMDB's own lock, a commit each"; }
  std::string how_it_checks() const override { return "mdb_env_open, a cursor over every entry"; }

  void Fill(std::size_t records, const StoredBytes& bytes) override {
    std::filesystem::create_directory(directory());
    bytes_ = &bytes;
    Open();
    constexpr std::size_t kTogether = 1000;
    for (std::size_t first = 0; first < records; first += kTogether) {
      LmdbWrite write(env_);
      for (std::size_t i = first; i < std::min(records, first + kTogether); ++i) {
        write.Put(records_, BareKey(ImageRefOf(i)), bytes.Record(i));
      }
      write.Commit();
    }
    Close();
  }

  void Open() override {
    CheckLmdb(mdb_env_create(&env_), "create");
    CheckLmdb(mdb_env_set_maxdbs(env_, 4), "set tables");
    CheckLmdb(mdb_env_set_mapsize(env_, std::size_t{1} << 32), "set the map's size");
    const unsigned flags = MDB_NOTLS | (flush_ == Flush::kOnce ? unsigned{MDB_NOSYNC} : 0U);
    CheckLmdb(mdb_env_open(env_, directory().c_str(), flags, 0600), "open");
    MDB_txn* txn = nullptr;
    const int rc = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
    CheckLmdb(rc, "begin");
    const bool is_new = mdb_dbi_open(txn, "records", 0, &records_) == MDB_NOTFOUND;
    if (is_new) {
      mdb_txn_abort(txn);
      LmdbWrite write(env_);
      CheckLmdb(mdb_dbi_open(write.get(), "records", MDB_CREATE, &records_), "make a table");
      CheckLmdb(mdb_dbi_open(write.get(), "intents", MDB_CREATE, &intents_), "make a table");
      write.Commit();
    } else {
      CheckLmdb(mdb_dbi_open(txn, "intents", 0, &intents_), "open a table");
      CheckLmdb(mdb_txn_commit(txn), "keep the tables");
    }
    CheckLmdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
    mdb_txn_reset(reader_);
  }

  void Close() override {
    if (reader_ != nullptr) mdb_txn_abort(std::exchange(reader_, nullptr));
    if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
  }

  void OpenAndCheck(std::size_t records) override {
    Open();
    CheckLmdb(mdb_txn_renew(reader_), "renew");
    std::size_t entries = 0;
    unsigned sum = 0;
    for (const MDB_dbi dbi : {records_, intents_}) {
      MDB_cursor* cursor = nullptr;
      CheckLmdb(mdb_cursor_open(reader_, dbi, &cursor), "open a cursor");
      MDB_val k{};
      MDB_val v{};
      while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
        ++entries;
        sum += *static_cast<const unsigned char*>(v.mv_data);
      }
      mdb_cursor_close(cursor);
    }
    mdb_txn_reset(reader_);
    if (entries < records || sum == 0) throw std::runtime_error("LMDB: records are missing");
  }

  bool Read(const Question& question) override {
    const BareKey key(question.image_ref);
    if (mdb_txn_renew(reader_) != MDB_SUCCESS) return false;
    MDB_val k{BareKey::kBytes, const_cast<void*>(key.data())};
    MDB_val v{};
    const bool found = mdb_get(reader_, records_, &k, &v) == MDB_SUCCESS && v.mv_size > 0 &&
                       *static_cast<volatile const char*>(v.mv_data) >= CHAR_MIN;
    mdb_txn_reset(reader_);
    return found;
  }

  void PutIntent(Pull& pull) override {
    MakeRoom();
    LmdbWrite write(env_);
    write.Put(intents_, BareKey(pull.image), bytes_->Intent());
    Commit(write);
  }
  void DropIntent(Pull& pull) override {
    LmdbWrite write(env_);
    write.Delete(intents_, BareKey(pull.image));
    Commit(write);
  }
  void PutRecord(Pull& pull) override {
    LmdbWrite write(env_);
    write.Put(records_, BareKey(pull.image_ref), bytes_->Record(pull.index));
    write.Delete(intents_, BareKey(pull.image));
    Commit(write);
  }

 private:
  void Commit(LmdbWrite& write) {
    write.Commit();
    if (flush_ == Flush::kOnce) CheckLmdb(mdb_env_sync(env_, 1), "flush");
  }

  // Behind the last page, once, for all that a run writes.
  void MakeRoom() {
    if (flush_ != Flush::kOnce) return;
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_room_, true)) return;
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    mdb_filehandle_t file = -1;
    CheckLmdb(mdb_env_get_fd(env_, &file), "get the file");
    const std::string zeros(kBytes, '\0');
    const off_t end = lseek(file, 0, SEEK_END);
    if (end < 0 || pwrite(file, zeros.data(), zeros.size(), end) != static_cast<ssize_t>(kBytes) ||
        fsync(file) != 0) {
      throw std::runtime_error("LMDB: no room for " + directory().string());
    }
  }

  const Flush flush_;
  std::mutex mutex_;
  bool has_room_ = false;  // guarded by mutex_
  const StoredBytes* bytes_ = nullptr;
  MDB_env* env_ = nullptr;
  MDB_txn* reader_ = nullptr;  // reset between reads
  MDB_dbi records_ = 0;
  MDB_dbi intents_ = 0;
};

}  // namespace

std::unique_ptr<Peer> MakeLmdb(const std::filesystem::path& directory) {
  return std::make_unique<LmdbPeer>(directory, Flush::kByLmdb);
}
std::unique_ptr<Peer> MakeLmdbOfOneFlush(const std::filesystem::path& directory) {
  return std::make_unique<LmdbPeer>(directory, Flush::kOnce);
}

}  // namespace waybill::bench
