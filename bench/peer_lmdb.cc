#include "bench/peer_lmdb.h"

#include <xxhash.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/engine/database/header.h"
#include "store/engine/lmdb/env.h"
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

void Check(int rc, const char* doing) {
  if (rc != MDB_SUCCESS) {
    throw std::runtime_error(std::string("bare LMDB: ") + doing + ": " + mdb_strerror(rc));
  }
}

class Write {
 public:
  explicit Write(MDB_env* env) { Check(mdb_txn_begin(env, nullptr, 0, &txn_), "begin"); }
  ~Write() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  Write(const Write&) = delete;
  Write& operator=(const Write&) = delete;

  void Put(MDB_dbi dbi, const Key16& key, std::size_t bytes) {
    const std::vector<std::byte> value(bytes, std::byte{0x5a});
    MDB_val k = lmdb::ToVal(key.span());
    MDB_val v = lmdb::ToVal(value);
    Check(mdb_put(txn_, dbi, &k, &v, 0), "put");
  }
  void Delete(MDB_dbi dbi, const Key16& key) {
    MDB_val k = lmdb::ToVal(key.span());
    Check(mdb_del(txn_, dbi, &k, nullptr), "delete");
  }
  std::size_t Rewrite(MDB_dbi dbi) {
    MDB_cursor* cursor = nullptr;
    Check(mdb_cursor_open(txn_, dbi, &cursor), "open a cursor");
    std::size_t values = 0;
    std::vector<std::byte> copy;
    MDB_val k{};
    MDB_val v{};
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
      const lmdb::Bytes value = lmdb::FromVal(v);
      copy.assign(value.begin(), value.end());
      v = lmdb::ToVal(copy);
      Check(mdb_cursor_put(cursor, &k, &v, MDB_CURRENT), "put");
      ++values;
    }
    mdb_cursor_close(cursor);
    return values;
  }
  void Commit() { Check(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }

 private:
  MDB_txn* txn_ = nullptr;
};

std::size_t IntentBytes(std::string_view image) {
  const auto payload = internal::EncodeOpenPull(
      {.id = kPull, .image = std::string(image), .began = {1'770'000'000, 0}, .stamp = 1});
  return internal::kEnvelopeBytes + (payload.size() + 7) / 8 * 8;
}

}  // namespace

BareLmdb::BareLmdb(const std::filesystem::path& store, const std::filesystem::path& directory)
    : directory_(directory) {
  std::filesystem::create_directory(directory);
  std::filesystem::copy_file(store / "data.mdb", directory / "data.mdb");
  OpenEnvironment();

  MDB_dbi main = 0;
  MDB_val v{};
  Check(mdb_txn_renew(reader_), "renew");
  Check(mdb_dbi_open(reader_, nullptr, 0, &main), "open");
  MDB_val k = lmdb::ToVal(kIdentityKey.span());
  Check(mdb_get(reader_, main, &k, &v), "get the identity");
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
  Check(mdb_env_create(&env_), "create");
  Check(mdb_env_set_maxreaders(env_, kMaxReaders), "set readers");
  Check(mdb_env_set_maxdbs(env_, kTables), "set tables");
  Check(mdb_env_set_mapsize(env_, kDefaultMapBytes), "set the map's size");
  Check(mdb_env_open(env_, directory_.c_str(), MDB_NOTLS, 0600), "open");
  MDB_txn* txn = nullptr;
  Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
  Check(mdb_dbi_open(txn, SpecOf(Table::kPulled).name, 0, &records_), "open a table");
  Check(mdb_dbi_open(txn, SpecOf(Table::kIntents).name, 0, &intents_), "open a table");
  Check(mdb_txn_commit(txn), "keep the tables");
  Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
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
  Write write(env_);
  write.Put(intents_, internal::IntentKey(image, kPull, seed_), IntentBytes(image));
  write.Commit();
}

void BareLmdb::DeleteIntent(std::string_view image) {
  Write write(env_);
  write.Delete(intents_, internal::IntentKey(image, kPull, seed_));
  write.Commit();
}

std::size_t BareLmdb::ReopenAndScan() {
  CloseEnvironment();
  OpenEnvironment();
  std::size_t entries = 0;
  std::size_t sum = 0;
  Check(mdb_txn_renew(reader_), "renew");
  for (const MDB_dbi dbi : {records_, intents_}) {
    MDB_cursor* cursor = nullptr;
    Check(mdb_cursor_open(reader_, dbi, &cursor), "open a cursor");
    MDB_val k{};
    MDB_val v{};
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
      ++entries;
      sum += *static_cast<const unsigned char*>(v.mv_data);
    }
    mdb_cursor_close(cursor);
  }
  mdb_txn_reset(reader_);
  return sum == 0 ? 0 : entries;
}

std::size_t BareLmdb::RewriteRecords() {
  Write write(env_);
  const std::size_t values = write.Rewrite(records_);
  write.Commit();
  return values;
}

}  // namespace waybill::bench
