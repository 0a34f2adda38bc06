// LMDB alone: a contender of its own (peers/), and on a copy of a store's database the limit that
// waybill is measured against: the same records on the same pages, without envelopes, checksums,
// digests or decisions. The functions throw.

#ifndef WAYBILL_BENCH_BARE_LMDB_H_
#define WAYBILL_BENCH_BARE_LMDB_H_

#include <lmdb.h>
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/data_set.h"

namespace waybill::bench {

enum class Table : std::uint8_t { kRecords, kIntents };

struct Change {
  Table table = Table::kRecords;
  std::string_view identity = {};  // its key is 16 bytes, hashed as waybill's are
  std::string_view value = {};     // empty: it is deleted
};

// The key of an identity.
XXH128_canonical_t BareKey(std::string_view identity, std::uint64_t seed = kSeed);

class BareLmdb {
 public:
  // By LMDB: the data by fdatasync, the meta page by O_DSYNC. Once: one fdatasync a commit into
  // room that was written before. That writes the pages that waybill writes, as it writes them, and
  // does nothing else: it is the limit of a store over LMDB. By itself it is not durable: what
  // tells a whole commit from a torn one is waybill's.
  enum class Flushes : std::uint8_t { kByLmdb, kOnce };

  // Makes what is missing.
  explicit BareLmdb(std::filesystem::path directory, Flushes flushes = Flushes::kByLmdb);
  // Copies the database of `store`, which must be closed.
  BareLmdb(const std::filesystem::path& store, const std::filesystem::path& directory);
  ~BareLmdb() { Close(); }
  BareLmdb(const BareLmdb&) = delete;
  BareLmdb& operator=(const BareLmdb&) = delete;

  // Hashes the image ref, renews a read transaction, calls mdb_get. Empty: there is none. From one
  // thread.
  std::string_view Lookup(std::string_view image_ref);
  // One durable commit.
  void Write(const std::vector<Change>& changes);
  // Opens the environment again and reads the whole database. Returns the number of entries.
  std::size_t ReopenAndScan();
  // Rewrites every record in one durable commit. Returns how many.
  std::size_t RewriteRecords();
  // As they are stored, in no order.
  std::vector<std::string> Values(Table table);

 private:
  class Transaction;
  void Open();
  void Close();
  void MakeRoom();
  void Commit(Transaction& write);
  MDB_dbi TableOf(Table table) const { return table == Table::kRecords ? records_ : intents_; }

  std::filesystem::path directory_;
  Flushes flushes_ = Flushes::kByLmdb;
  std::uint64_t seed_ = kSeed;
  MDB_env* env_ = nullptr;
  MDB_txn* reader_ = nullptr;  // reset between lookups
  MDB_dbi records_ = 0;
  MDB_dbi intents_ = 0;  // the main table
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_BARE_LMDB_H_
