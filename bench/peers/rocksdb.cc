// RocksDB with WriteOptions.sync, which its documentation names as durable, a column family for
// each table, and the options of its page "Setup Options and Basic Tuning".

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

void Check(const rocksdb::Status& status, const char* doing) {
  if (!status.ok()) {
    throw std::runtime_error(std::string("RocksDB: ") + doing + ": " + status.ToString());
  }
}

rocksdb::Slice SliceOf(const XXH128_canonical_t& key) {
  return {reinterpret_cast<const char*>(key.digest), sizeof key.digest};
}

class RocksdbPeer final : public TablePeer {
 public:
  explicit RocksdbPeer(const std::filesystem::path& directory) : TablePeer("RocksDB", directory) {}
  ~RocksdbPeer() override {
    if (db_) CloseHandles();
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
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, directory().string(),
                            {{rocksdb::kDefaultColumnFamilyName, options}, {"intents", options}},
                            &families_, &db),
          "open");
    db_.reset(db);
  }

  void Close() override { Check(CloseHandles(), "close"); }

  bool Read(const Question& question) override {
    const XXH128_canonical_t key = BareKey(question.image_ref);
    value_.Reset();
    return db_->Get(rocksdb::ReadOptions(), families_[0], SliceOf(key), &value_).ok() &&
           Touch(value_.ToStringView());
  }

 private:
  void Write(const std::vector<Change>& changes) override {
    rocksdb::WriteBatch batch;
    for (const Change& change : changes) {
      const XXH128_canonical_t key = BareKey(change.identity);
      rocksdb::ColumnFamilyHandle* const family =
          families_[change.table == Table::kIntents ? 1 : 0];
      Check(change.value.empty() ? batch.Delete(family, SliceOf(key))
                                 : batch.Put(family, SliceOf(key), rocksdb::Slice(change.value)),
            "change");
    }
    rocksdb::WriteOptions options;
    options.sync = true;
    Check(db_->Write(options, &batch), "write");
  }
  // So that reads meet the tables on the disk, as on a node that ran for a while.
  void Settle() override { Check(db_->Flush(rocksdb::FlushOptions(), families_), "flush"); }
  rocksdb::Status CloseHandles() {
    value_.Reset();
    for (rocksdb::ColumnFamilyHandle* const family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    const rocksdb::Status status = db_->Close();
    db_.reset();
    return status;
  }

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // of records, of intents
  rocksdb::PinnableSlice value_;
};

}  // namespace

std::unique_ptr<Peer> MakeRocksdb(const std::filesystem::path& directory) {
  return std::make_unique<RocksdbPeer>(directory);
}

std::string RocksdbVersion() { return rocksdb::GetRocksVersionAsString(); }

}  // namespace waybill::bench
