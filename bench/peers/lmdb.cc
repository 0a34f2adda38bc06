// Bare LMDB, with its default durability (the data by fdatasync, the meta page by O_DSYNC), and
// with one fdatasync a commit into room that was written before. The latter writes the pages that
// waybill writes, as it writes them, and does nothing else: it is the limit of a store over LMDB.
// By itself it is not durable: what tells a whole commit from a torn one is waybill's.

#include <lmdb.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <span>
#include <utility>

#include "bench/lmdb_calls.h"
#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

lmdb::Bytes BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

enum class Flush : std::uint8_t { kByLmdb, kOnce };

class LmdbPeer final : public Peer {
 public:
  LmdbPeer(std::filesystem::path directory, Flush flush)
      : Peer(std::move(directory)), flush_(flush) {}
  ~LmdbPeer() override { Close(); }

  std::string name() const override {
    return flush_ == Flush::kOnce ? "bare LMDB, one flush" : "bare LMDB";
  }

  void Fill(std::size_t records, const StoredBytes& bytes) override {
    std::filesystem::create_directory(directory());
    bytes_ = &bytes;
    Open();
    constexpr std::size_t kTogether = 1000;
    for (std::size_t first = 0; first < records; first += kTogether) {
      LmdbWrite write(env_);
      for (std::size_t i = first; i < std::min(records, first + kTogether); ++i) {
        write.Put(records_, BareKey(ImageRefOf(i)).span(), BytesOf(bytes.Record(i)));
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
    LmdbWrite write(env_);
    CheckLmdb(mdb_dbi_open(write.get(), "records", MDB_CREATE, &records_), "open a table");
    CheckLmdb(mdb_dbi_open(write.get(), "intents", MDB_CREATE, &intents_), "open a table");
    write.Commit();
    CheckLmdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
    mdb_txn_reset(reader_);
  }

  void Close() override {
    if (reader_ != nullptr) mdb_txn_abort(std::exchange(reader_, nullptr));
    if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
  }

  bool Read(const Question& question) override {
    const BareKey key(question.image_ref);
    if (mdb_txn_renew(reader_) != MDB_SUCCESS) return false;
    MDB_val k = lmdb::ToVal(key.span());
    MDB_val v{};
    const bool found = mdb_get(reader_, records_, &k, &v) == MDB_SUCCESS && v.mv_size > 0 &&
                       *static_cast<volatile const char*>(v.mv_data) >= CHAR_MIN;
    mdb_txn_reset(reader_);
    return found;
  }

  void Put(const Pull& pull) override {
    MakeRoom();
    LmdbWrite intent(env_);
    intent.Put(intents_, BareKey(pull.image).span(), BytesOf(bytes_->intent));
    Commit(intent);
    LmdbWrite record(env_);
    record.Put(records_, BareKey(pull.image_ref).span(), BytesOf(bytes_->Record(pull.index)));
    record.Delete(intents_, BareKey(pull.image).span());
    Commit(record);
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
