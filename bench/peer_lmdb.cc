#include "bench/peer_lmdb.h"

#include <xxhash.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/lmdb_calls.h"
#include "store/engine/database/header.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "waybill/limits.h"

namespace waybill::bench {

namespace {

using internal::Key16;
using internal::kIdentityKey;
using internal::RecordKind;
using internal::Table;

// One for each image string.
constexpr PullId kPull{1};

std::vector<std::byte> IntentOf(std::string_view image) {
  const auto payload = internal::EncodeUnresolvedPull(
      {.id = kPull, .image = std::string(image), .began = {1'770'000'000, 0}, .stamp = 1});
  return std::vector<std::byte>(internal::kEnvelopeBytes + (payload.size() + 7) / 8 * 8,
                                std::byte{0x5a});
}

}  // namespace

BareLmdb::BareLmdb(const std::filesystem::path& store, const std::filesystem::path& directory)
    : directory_(directory) {
  std::filesystem::create_directory(directory);
  std::filesystem::copy_file(store / "data.mdb", directory / "data.mdb");
  OpenEnvironment();

  MDB_dbi main = 0;
  MDB_val v{};
  CheckLmdb(mdb_txn_renew(reader_), "renew");
  CheckLmdb(mdb_dbi_open(reader_, nullptr, 0, &main), "open");
  MDB_val k = lmdb::ToVal(kIdentityKey.span());
  CheckLmdb(mdb_get(reader_, main, &k, &v), "get the identity");
  const internal::Opened opened = internal::OpenEnvelope(
      kIdentityKey, lmdb::FromVal(v), RecordKind::kIdentity, internal::kNewest.header);
  const auto identity = internal::DecodeIdentity(opened.payload);
  if (!identity) throw std::runtime_error("bare LMDB: the store has no identity");
  seed_ = identity->hash_seed;
  mdb_txn_reset(reader_);
}

BareLmdb::~BareLmdb() { CloseEnvironment(); }

void BareLmdb::OpenEnvironment() {
  constexpr MDB_dbi kTables = 16;
  CheckLmdb(mdb_env_create(&env_), "create");
  CheckLmdb(mdb_env_set_maxreaders(env_, kMaxReaders), "set readers");
  CheckLmdb(mdb_env_set_maxdbs(env_, kTables), "set tables");
  CheckLmdb(mdb_env_set_mapsize(env_, kDefaultMapBytes), "set the map's size");
  CheckLmdb(mdb_env_open(env_, directory_.c_str(), MDB_NOTLS, 0600), "open");
  MDB_txn* txn = nullptr;
  CheckLmdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
  CheckLmdb(mdb_dbi_open(txn, SpecOf(Table::kPulled).name, 0, &records_), "open a table");
  CheckLmdb(mdb_dbi_open(txn, SpecOf(Table::kIntents).name, 0, &intents_), "open a table");
  CheckLmdb(mdb_txn_commit(txn), "keep the tables");
  CheckLmdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
  mdb_txn_reset(reader_);
}

void BareLmdb::CloseEnvironment() {
  if (reader_ != nullptr) mdb_txn_abort(std::exchange(reader_, nullptr));
  if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
}

bool BareLmdb::Lookup(std::string_view image_ref) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(image_ref.data(), image_ref.size(), seed_);
  XXH128_canonical_t key;
  XXH128_canonicalFromHash(&key, hash);
  if (mdb_txn_renew(reader_) != MDB_SUCCESS) return false;
  MDB_val k{sizeof(key.digest), key.digest};
  MDB_val v{};
  const int rc = mdb_get(reader_, records_, &k, &v);
  mdb_txn_reset(reader_);
  return rc == MDB_SUCCESS;
}

void BareLmdb::PutIntent(std::string_view image) {
  LmdbWrite write(env_);
  write.Put(intents_, internal::IntentKey(image, kPull, seed_).span(), IntentOf(image));
  write.Commit();
}

void BareLmdb::DeleteIntent(std::string_view image) {
  LmdbWrite write(env_);
  write.Delete(intents_, internal::IntentKey(image, kPull, seed_).span());
  write.Commit();
}

std::size_t BareLmdb::ReopenAndScan() {
  CloseEnvironment();
  OpenEnvironment();
  std::size_t entries = 0;
  std::size_t sum = 0;
  CheckLmdb(mdb_txn_renew(reader_), "renew");
  for (const MDB_dbi dbi : {records_, intents_}) {
    ForEachEntry(reader_, dbi, [&](MDB_cursor*, MDB_val&, lmdb::Bytes value) {
      ++entries;
      sum += static_cast<std::size_t>(value.front());
    });
  }
  mdb_txn_reset(reader_);
  return sum == 0 ? 0 : entries;
}

std::size_t BareLmdb::RewriteRecords() {
  LmdbWrite write(env_);
  std::size_t values = 0;
  std::vector<std::byte> copy;
  ForEachEntry(write.get(), records_, [&](MDB_cursor* cursor, MDB_val& key, lmdb::Bytes value) {
    copy.assign(value.begin(), value.end());
    MDB_val v = lmdb::ToVal(copy);
    CheckLmdb(mdb_cursor_put(cursor, &key, &v, MDB_CURRENT), "put");
    ++values;
  });
  write.Commit();
  return values;
}

std::vector<std::string> BareLmdb::Values(MDB_dbi table) {
  std::vector<std::string> values;
  CheckLmdb(mdb_txn_renew(reader_), "renew");
  ForEachEntry(reader_, table, [&](MDB_cursor*, MDB_val&, lmdb::Bytes value) {
    values.emplace_back(reinterpret_cast<const char*>(value.data()), value.size());
  });
  mdb_txn_reset(reader_);
  return values;
}

}  // namespace waybill::bench
