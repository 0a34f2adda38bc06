// A contender: keeps the records of image pulls on a disk and finds them again. All get the same
// data and the same questions. A peer does the bare work only (keys and values of the same bytes as
// waybill's, no checksums of its own, no decision), each set up for durability as its own
// documentation recommends.

#ifndef WAYBILL_BENCH_PEERS_PEER_H_
#define WAYBILL_BENCH_PEERS_PEER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bare_lmdb.h"
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
  Peer(std::string name, std::filesystem::path directory)
      : name_(std::move(name)), directory_(std::move(directory)) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Makes the directory, writes the first `records` records of the data set, and closes. `bytes`
  // outlives the peer.
  virtual void Fill(std::size_t records, const StoredBytes& bytes) = 0;
  virtual void Open() = 0;
  virtual void Close() = 0;

  // Whether the record is there. Touches its bytes.
  virtual bool Read(const Question& question) = 0;

  // Writes an intent, then the record, and removes the intent. Each is on the disk before the next.
  virtual void Put(const Pull& pull) = 0;

  const std::string& name() const { return name_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::string name_;
  std::filesystem::path directory_;
};

// One that keeps keys and values in tables.
class TablePeer : public Peer {
 public:
  using Peer::Peer;
  void Fill(std::size_t records, const StoredBytes& bytes) final;
  void Put(const Pull& pull) final;

 protected:
  // Whether a record is there. Touches it.
  static bool Touch(std::string_view record);

 private:
  // One durable commit.
  virtual void Write(const std::vector<Change>& changes) = 0;
  // After all were filled in.
  virtual void Settle() {}

  const StoredBytes* bytes_ = nullptr;
};

// All that this program was built with, waybill first, each in a directory of its own below
// `directory`.
std::vector<std::unique_ptr<Peer>> MakePeers(const std::filesystem::path& directory);

// Each of a library that may be missing: nullptr, and no version, without it.
std::unique_ptr<Peer> MakeSqlite(const std::filesystem::path& directory);
std::unique_ptr<Peer> MakeRocksdb(const std::filesystem::path& directory);
std::string SqliteVersion();  // "3.40.1"
std::string RocksdbVersion();

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_PEER_H_
