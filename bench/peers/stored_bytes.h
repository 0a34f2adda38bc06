// The values as waybill stores them, read out of a store with bare LMDB: what the peers store, too.

#ifndef WAYBILL_BENCH_PEERS_STORED_BYTES_H_
#define WAYBILL_BENCH_PEERS_STORED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace waybill::bench {

class StoredBytes {
 public:
  // Makes a store below `scratch` with so many records and one pull intent, reads it, and removes
  // it.
  StoredBytes(const std::filesystem::path& scratch, std::size_t records);

  // Of the data set's records, in no order; any index.
  const std::string& Record(std::uint64_t index) const { return records_[index % records_.size()]; }
  const std::string& Intent() const { return intent_; }

 private:
  std::vector<std::string> records_;
  std::string intent_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_STORED_BYTES_H_
