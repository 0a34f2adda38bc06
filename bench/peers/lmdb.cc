// Bare LMDB with its default durability: the data by fdatasync, the meta page by O_DSYNC.

#include <lmdb.h>

#include <algorithm>
#include <climits>
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

class LmdbPeer final : public Peer {
 public:
  using Peer::Peer;
  ~LmdbPeer() override { Close(); }

  std::string name() const override { return "bare LMDB"; }
  std::string how_it_writes() const override {
    return "put; put and delete in one transaction; default durability";
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
    CheckLmdb(mdb_env_open(env_, directory().c_str(), MDB_NOTLS, 0600), "open");
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
    LmdbWrite write(env_);
    write.Put(intents_, BareKey(pull.image), bytes_->Intent());
    write.Commit();
  }
  void DropIntent(Pull& pull) override {
    LmdbWrite write(env_);
    write.Delete(intents_, BareKey(pull.image));
    write.Commit();
  }
  void PutRecord(Pull& pull) override {
    LmdbWrite write(env_);
    write.Put(records_, BareKey(pull.image_ref), bytes_->Record(pull.index));
    write.Delete(intents_, BareKey(pull.image));
    write.Commit();
  }

 private:
  const StoredBytes* bytes_ = nullptr;
  MDB_env* env_ = nullptr;
  MDB_txn* reader_ = nullptr;  // reset between reads
  MDB_dbi records_ = 0;
  MDB_dbi intents_ = 0;
};

}  // namespace

std::unique_ptr<Peer> MakeLmdb(const std::filesystem::path& directory) {
  return std::make_unique<LmdbPeer>(directory);
}

}  // namespace waybill::bench
