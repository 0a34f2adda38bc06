#include "bench/peers/peer.h"

#include "bench/peer_lmdb.h"
#include "bench/scratch.h"
#include "migrations/kubelet/kubelet_records.h"

namespace waybill::bench {

namespace {

// Indices of images that no store has.
constexpr std::uint64_t kFirstPull = 50'000'000;

}  // namespace

Pull::Pull(std::uint64_t offset)
    : index(kFirstPull + offset),
      image(ImageOf(index)),
      image_ref(ImageRefOf(index)),
      credentials(CredentialsOf(index)),
      intent_file(EncodePullIntent({.image = image})),
      record_file(EncodePulledRecord(RecordOf(index))) {}

StoredBytes::StoredBytes(const std::filesystem::path& scratch, std::size_t count) {
  ScratchStore store(scratch / "stored-bytes");
  store.Fill(count);
  Must(store->RecordPullIntent({.image = ImageOf(count)}));
  store.Close();
  BareLmdb bare(store.directory(), store.directory() / "bare");
  records = bare.Records();
  const std::vector<std::string> intents = bare.Intents();
  std::filesystem::remove_all(store.directory());
  if (records.size() != count || intents.size() != 1) {
    throw std::runtime_error("a store does not hold what was written; the figures are void");
  }
  intent = intents.front();
}

std::vector<std::unique_ptr<Peer>> MakePeers(const std::filesystem::path& directory) {
  std::vector<std::unique_ptr<Peer>> peers;
  const auto add = [&peers](std::unique_ptr<Peer> peer) {
    if (peer) peers.push_back(std::move(peer));
  };
  add(MakeWaybill(directory / "waybill"));
  add(MakeLmdb(directory / "lmdb"));
  add(MakeLmdbOfOneFlush(directory / "lmdb-one-flush"));
  add(MakeSqlite(directory / "sqlite"));
  add(MakeRocksdb(directory / "rocksdb"));
  add(MakeFiles(directory / "files"));
  return peers;
}

#ifndef WAYBILL_BENCH_SQLITE
std::unique_ptr<Peer> MakeSqlite(const std::filesystem::path& /*directory*/) { return nullptr; }
std::string SqliteVersion() { return ""; }
#endif

#ifndef WAYBILL_BENCH_ROCKSDB
std::unique_ptr<Peer> MakeRocksdb(const std::filesystem::path& /*directory*/) { return nullptr; }
std::string RocksdbVersion() { return ""; }
#endif

}  // namespace waybill::bench
