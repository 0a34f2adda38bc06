#include "bench/peers/peer.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "bench/kubelet_folder.h"
#include "bench/scratch.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// Indices of images that no store has.
constexpr std::uint64_t kFirstPull = 50'000'000;

// Whole decisions, whole records, digests and a witness.
class WaybillPeer final : public Peer {
 public:
  explicit WaybillPeer(const std::filesystem::path& directory)
      : Peer("waybill", directory), store_(directory) {}

  void Fill(std::size_t records, const StoredBytes& /*bytes*/) override {
    store_.Fill(records);
    store_.Close();
  }
  void Open() override { store_.Open(); }
  void Close() override { store_.Close(); }

  bool Read(const Question& question) override {
    return Decide(*store_, question).reason == Reason::kSecretHashMatches;
  }

  void Put(const Pull& pull) override {
    const std::uint64_t number = Must(store_->Call(BeginPull{.image = pull.image})).pull;
    Must(store_->Call(EndPull{.image = pull.image,
                              .image_ref = pull.image_ref,
                              .pull = number,
                              .outcome = PullOutcome::kPulled,
                              .credentials = pull.credentials}));
  }

 private:
  ScratchStore store_;
};

class LmdbPeer final : public TablePeer {
 public:
  LmdbPeer(const char* name, const std::filesystem::path& directory, BareLmdb::Flushes flushes)
      : TablePeer(name, directory), flushes_(flushes) {}

  void Open() override { lmdb_.emplace(directory(), flushes_); }
  void Close() override { lmdb_.reset(); }
  bool Read(const Question& question) override { return Touch(lmdb_->Lookup(question.image_ref)); }

 private:
  void Write(const std::vector<Change>& changes) override { lmdb_->Write(changes); }

  BareLmdb::Flushes flushes_;
  std::optional<BareLmdb> lmdb_;
};

// Loose files as the kubelet writes them, made durable (kubelet_folder.h).
class FilesPeer final : public Peer {
 public:
  explicit FilesPeer(const std::filesystem::path& directory) : Peer("files, fsync", directory) {}

  void Fill(std::size_t records, const StoredBytes& /*bytes*/) override {
    Open();
    for (std::size_t i = 0; i < records; ++i) {
      pulled_->Write(ImageRefOf(i), EncodePulledRecord(RecordOf(i)), false);
    }
    sync();
    Close();
  }
  void Open() override {
    pulled_.emplace(directory() / "image_manager/pulled");
    pulling_.emplace(directory() / "image_manager/pulling");
  }
  void Close() override {
    pulled_.reset();
    pulling_.reset();
  }

  bool Read(const Question& question) override {
    return pulled_->Read(question.image_ref).has_value();
  }

  // The record and the intent's end are two steps, so a crash may leave both.
  void Put(const Pull& pull) override {
    pulling_->Write(pull.image, pull.intent_file);
    pulled_->Write(pull.image_ref, pull.record_file);
    pulling_->Remove(pull.image);
    pulling_->Sync();
  }

 private:
  std::optional<KubeletFolder> pulled_;
  std::optional<KubeletFolder> pulling_;
};

}  // namespace

Pull::Pull(std::uint64_t offset)
    : index(kFirstPull + offset),
      image(ImageOf(index)),
      image_ref(ImageRefOf(index)),
      credentials(CredentialsOf(index)),
      intent_file(EncodePullIntent({.image = image})),
      record_file(EncodePulledRecord(RecordOf(index))) {}

StoredBytes::StoredBytes(const std::filesystem::path& scratch, std::size_t count) {
  // Its witness stays, and another size is another store.
  ScratchStore store(scratch / ("stored-bytes-" + std::to_string(count)));
  store.Fill(count);
  Must(store->Call(BeginPull{.image = ImageOf(count)}));
  store.Close();
  {
    BareLmdb bare(store.directory(), store.directory() / "bare");
    records = bare.Values(Table::kRecords);
    const std::vector<std::string> intents = bare.Values(Table::kIntents);
    if (records.size() != count || intents.size() != 1) {
      throw std::runtime_error("a store does not hold what was written; the figures are void");
    }
    intent = intents.front();
  }
  std::filesystem::remove_all(store.directory());
}

void TablePeer::Fill(std::size_t records, const StoredBytes& bytes) {
  std::filesystem::create_directory(directory());
  bytes_ = &bytes;
  Open();
  constexpr std::size_t kTogether = 1000;
  for (std::size_t first = 0; first < records; first += kTogether) {
    std::vector<std::string> refs;
    for (std::size_t i = first; i < std::min(records, first + kTogether); ++i) {
      refs.push_back(ImageRefOf(i));
    }
    std::vector<Change> changes;
    for (const std::string& ref : refs) {
      changes.push_back({Table::kRecords, ref, bytes.Record(first + changes.size())});
    }
    Write(changes);
  }
  Settle();
  Close();
}

bool TablePeer::Touch(std::string_view record) {
  return !record.empty() && *static_cast<volatile const char*>(record.data()) >= CHAR_MIN;
}

void TablePeer::Put(const Pull& pull) {
  Write({{Table::kIntents, pull.image, bytes_->intent}});
  Write({{Table::kRecords, pull.image_ref, bytes_->Record(pull.index)},
         {Table::kIntents, pull.image}});
}

std::vector<std::unique_ptr<Peer>> MakePeers(const std::filesystem::path& directory) {
  using enum BareLmdb::Flushes;
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<WaybillPeer>(directory / "waybill"));
  peers.push_back(std::make_unique<LmdbPeer>("bare LMDB", directory / "lmdb", kByLmdb));
  peers.push_back(std::make_unique<LmdbPeer>("bare LMDB, one flush", directory / "once", kOnce));
  peers.push_back(MakeSqlite(directory / "sqlite"));
  peers.push_back(MakeRocksdb(directory / "rocksdb"));
  peers.push_back(std::make_unique<FilesPeer>(directory / "files"));
  std::erase(peers, nullptr);
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
