#include "bench/peers/stored_bytes.h"

#include <stdexcept>

#include "bench/data_set.h"
#include "bench/peer_lmdb.h"
#include "bench/scratch.h"

namespace waybill::bench {

StoredBytes::StoredBytes(const std::filesystem::path& scratch, std::size_t records) {
  ScratchStore store(scratch / "stored-bytes");
  store.Fill(records);
  Must(store->RecordPullIntent({.image = ImageOf(records)}));
  store.Close();
  BareLmdb bare(store.directory(), store.directory() / "bare");
  records_ = bare.Records();
  const std::vector<std::string> intents = bare.Intents();
  std::filesystem::remove_all(store.directory());
  if (records_.size() != records || intents.size() != 1) {
    throw std::runtime_error("a store does not hold what was written; the figures are void");
  }
  intent_ = intents.front();
}

}  // namespace waybill::bench
