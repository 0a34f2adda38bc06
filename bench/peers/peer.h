// A contender: keeps the records of image pulls on a disk and finds them again. All get the same
// data and the same questions. A peer does the bare work only (keys and values of the same bytes as
// waybill's, no checksums of its own, no decision), each set up for durability as its own
// documentation recommends.

#ifndef WAYBILL_BENCH_PEERS_PEER_H_
#define WAYBILL_BENCH_PEERS_PEER_H_

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/data_set.h"
#include "waybill/values.h"

namespace waybill::bench {

// A pull of an image that no store has, with all that is made outside the time that counts.
struct Pull {
  explicit Pull(std::uint64_t index);

  std::uint64_t index;
  std::string image;
  std::string image_ref;
  ImagePullCredentials credentials;
  std::string intent_file;  // as the kubelet writes them
  std::string record_file;
};

// The values as waybill stores them, read out of a store with bare LMDB: what the peers store, too.
struct StoredBytes {
  // Of a store that is made below `scratch`, with so many records and one pull intent.
  StoredBytes(const std::filesystem::path& scratch, std::size_t count);
  // Of the data set's records, in no order; any index.
  const std::string& Record(std::uint64_t index) const { return records[index % records.size()]; }

  std::vector<std::string> records;
  std::string intent;
};

// The functions throw if something fails. Put may be called from any thread; the others
// from one.
class Peer {
 public:
  explicit Peer(std::filesystem::path directory) : directory_(std::move(directory)) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  virtual std::string name() const = 0;

  // Makes the directory, writes the first `records` records of the data set, and closes. `bytes`
  // outlives the peer.
  virtual void Fill(std::size_t records, const StoredBytes& bytes) = 0;
  virtual void Open() = 0;
  virtual void Close() = 0;

  // Whether the record is there. Touches its bytes.
  virtual bool Read(const Question& question) = 0;

  // Writes an intent, then the record, and removes the intent. Each is on the disk before the next.
  virtual void Put(const Pull& pull) = 0;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

// The key of a bare row: 16 bytes, hashed as waybill's keys are.
class BareKey {
 public:
  explicit BareKey(std::string_view identity) {
    XXH128_canonicalFromHash(&key_, XXH3_128bits_withSeed(identity.data(), identity.size(), kSeed));
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(key_.digest)); }

 private:
  XXH128_canonical_t key_{};
};

std::unique_ptr<Peer> MakeWaybill(const std::filesystem::path& directory);
std::unique_ptr<Peer> MakeLmdb(const std::filesystem::path& directory);
std::unique_ptr<Peer> MakeLmdbOfOneFlush(const std::filesystem::path& directory);
std::unique_ptr<Peer> MakeFiles(const std::filesystem::path& directory);
// nullptr: this program was built without the library.
std::unique_ptr<Peer> MakeSqlite(const std::filesystem::path& directory);
std::unique_ptr<Peer> MakeRocksdb(const std::filesystem::path& directory);
// "3.40.1"; empty without the library.
std::string SqliteVersion();
std::string RocksdbVersion();

// All that this program was built with, waybill first, each in a directory of its own below
// `directory`.
std::vector<std::unique_ptr<Peer>> MakePeers(const std::filesystem::path& directory);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_PEER_H_
