// RocksDB with WriteOptions.sync, which its documentation names as durable, a column family for
// each table, and the options of its page "Setup Options and Basic Tuning".

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <climits>
#include <utility>

#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

void CheckRocks(const rocksdb::Status& status, const char* doing) {
  if (!status.ok()) {
    throw std::runtime_error(std::string("RocksDB: ") + doing + ": " + status.ToString());
  }
}

rocksdb::Slice SliceOf(const BareKey& key) {
  return {reinterpret_cast<const char*>(key.span().data()), key.span().size()};
}

class RocksdbPeer final : public Peer {
 public:
  using Peer::Peer;
  ~RocksdbPeer() override {
    if (db_) CloseHandles();
  }

  std::string name() const override { return "RocksDB"; }

  void Fill(std::size_t records, const StoredBytes& bytes) override {
    bytes_ = &bytes;
    Open();
    constexpr std::size_t kTogether = 1000;
    for (std::size_t first = 0; first < records; first += kTogether) {
      rocksdb::WriteBatch batch;
      for (std::size_t i = first; i < std::min(records, first + kTogether); ++i) {
        CheckRocks(batch.Put(records_, SliceOf(BareKey(ImageRefOf(i))), bytes.Record(i)), "put");
      }
      Write(batch);
    }
    // So that reads meet the tables on the disk, as on a node that ran for a while.
    CheckRocks(db_->Flush(rocksdb::FlushOptions(), {records_, intents_}), "flush");
    Close();
  }

  void Open() override {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(std::size_t{64} << 20);
    table.block_size = std::size_t{16} << 10;
    table.cache_index_and_filter_blocks = true;
    table.pin_l0_filter_and_index_blocks_in_cache = true;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.level_compaction_dynamic_level_bytes = true;
    options.max_background_jobs = 6;
    options.bytes_per_sync = std::size_t{1} << 20;
    options.compaction_pri = rocksdb::kMinOverlappingRatio;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    CheckRocks(
        rocksdb::DB::Open(options, directory().string(),
                          {{rocksdb::kDefaultColumnFamilyName, options}, {"intents", options}},
                          &handles, &db),
        "open");
    db_.reset(db);
    records_ = handles[0];
    intents_ = handles[1];
  }

  void Close() override {
    const rocksdb::Status status = CloseHandles();
    CheckRocks(status, "close");
  }

  bool Read(const Question& question) override {
    const BareKey key(question.image_ref);
    value_.Reset();
    return db_->Get(rocksdb::ReadOptions(), records_, SliceOf(key), &value_).ok() &&
           !value_.empty() && *static_cast<volatile const char*>(value_.data()) >= CHAR_MIN;
  }

  void Put(const Pull& pull) override {
    CheckRocks(db_->Put(Synced(), intents_, SliceOf(BareKey(pull.image)), bytes_->intent), "put");
    rocksdb::WriteBatch batch;
    CheckRocks(batch.Put(records_, SliceOf(BareKey(pull.image_ref)), bytes_->Record(pull.index)),
               "put");
    CheckRocks(batch.Delete(intents_, SliceOf(BareKey(pull.image))), "delete");
    Write(batch);
  }

 private:
  static rocksdb::WriteOptions Synced() {
    rocksdb::WriteOptions options;
    options.sync = true;
    return options;
  }
  void Write(rocksdb::WriteBatch& batch) { CheckRocks(db_->Write(Synced(), &batch), "write"); }
  rocksdb::Status CloseHandles() {
    value_.Reset();
    db_->DestroyColumnFamilyHandle(records_).PermitUncheckedError();
    db_->DestroyColumnFamilyHandle(intents_).PermitUncheckedError();
    const rocksdb::Status status = db_->Close();
    db_.reset();
    return status;
  }

  const StoredBytes* bytes_ = nullptr;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* records_ = nullptr;
  rocksdb::ColumnFamilyHandle* intents_ = nullptr;
  rocksdb::PinnableSlice value_;
};

}  // namespace

std::unique_ptr<Peer> MakeRocksdb(const std::filesystem::path& directory) {
  return std::make_unique<RocksdbPeer>(directory);
}

std::string RocksdbVersion() { return rocksdb::GetRocksVersionAsString(); }

}  // namespace waybill::bench
