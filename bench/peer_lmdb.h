// Bare LMDB on a copy of a store's database: the same records on the same pages, without envelope
// checks, digests or decisions. It is the limit that waybill is measured against.

#ifndef WAYBILL_BENCH_PEER_LMDB_H_
#define WAYBILL_BENCH_PEER_LMDB_H_

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::bench {

class BareLmdb {
 public:
  // Copies the database of `store`, which must be closed, to `directory`, and opens it as the store
  // does.
  BareLmdb(const std::filesystem::path& store, const std::filesystem::path& directory);
  ~BareLmdb();
  BareLmdb(const BareLmdb&) = delete;
  BareLmdb& operator=(const BareLmdb&) = delete;

  // Hashes the image ref, renews a read transaction, calls mdb_get. Returns whether it was found.
  bool Lookup(std::string_view image_ref);

  // Each is one durable commit, with values as large as waybill's for `image`.
  void PutIntent(std::string_view image);
  void DeleteIntent(std::string_view image);

  // Opens the environment again and reads the whole database. Returns the number of entries.
  std::size_t ReopenAndScan();

  // Rewrites every record in one durable commit. Returns how many.
  std::size_t RewriteRecords();

  // As they are stored, in no order.
  std::vector<std::string> Records() { return Values(records_); }
  std::vector<std::string> Intents() { return Values(intents_); }

 private:
  void OpenEnvironment();
  void CloseEnvironment();
  std::vector<std::string> Values(MDB_dbi table);

  std::filesystem::path directory_;
  MDB_env* env_ = nullptr;
  MDB_txn* reader_ = nullptr;  // reset between lookups
  MDB_dbi records_ = 0;
  MDB_dbi intents_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEER_LMDB_H_
