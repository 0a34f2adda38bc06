#include "bench/bare_lmdb.h"

#include <unistd.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "store/disk/header.h"
#include "store/disk/lmdb/env.h"
#include "waybill/limits.h"

namespace waybill::bench {

namespace {

namespace fs = std::filesystem;

void Check(int rc, const char* doing) {
  if (rc != MDB_SUCCESS) {
    throw std::runtime_error(std::string("bare LMDB: ") + doing + ": " + mdb_strerror(rc));
  }
}

MDB_val ToVal(std::string_view text) { return lmdb::ToVal(std::as_bytes(std::span(text))); }

std::string_view TextOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Intents lie in the main table, behind the names, as waybill's do.
internal::Key16 FirstKeyOf(Table table) {
  return table == Table::kIntents ? internal::FirstKeyOf(internal::kInMain) : internal::Key16();
}

// Calls `take(cursor, key, value)` for each entry from `first` on.
template <typename Take>
void ForEach(MDB_txn* txn, MDB_dbi table, const internal::Key16& first, const Take& take) {
  MDB_cursor* cursor = nullptr;
  Check(mdb_cursor_open(txn, table, &cursor), "open a cursor");
  MDB_val key = lmdb::ToVal(first.span());
  MDB_val value{};
  int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  for (; rc == MDB_SUCCESS; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    take(cursor, key, TextOf(value));
  }
  mdb_cursor_close(cursor);
}

}  // namespace

XXH128_canonical_t BareKey(std::string_view identity, std::uint64_t seed) {
  XXH128_canonical_t key;
  XXH128_canonicalFromHash(&key, XXH3_128bits_withSeed(identity.data(), identity.size(), seed));
  return key;
}

class BareLmdb::Transaction {
 public:
  explicit Transaction(MDB_env* env, unsigned flags = 0) {
    Check(mdb_txn_begin(env, nullptr, flags, &txn_), "begin");
  }
  ~Transaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit() { Check(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }
  MDB_txn* get() { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

BareLmdb::BareLmdb(fs::path directory, Flushes flushes)
    : directory_(std::move(directory)), flushes_(flushes) {
  Open();
}

BareLmdb::BareLmdb(const fs::path& store, const fs::path& directory) : directory_(directory) {
  fs::create_directory(directory);
  fs::copy_file(store / "data.mdb", directory / "data.mdb");
  Open();
  Transaction read(env_, MDB_RDONLY);
  MDB_dbi main = 0;
  MDB_val key = lmdb::ToVal(internal::kIdentityKey.span());
  MDB_val value{};
  Check(mdb_dbi_open(read.get(), nullptr, 0, &main), "open");
  Check(mdb_get(read.get(), main, &key, &value), "get the identity");
  const internal::Opened opened =
      internal::OpenEnvelope(internal::kIdentityKey, lmdb::FromVal(value),
                             internal::RecordKind::kIdentity, internal::Newest().header);
  const auto identity = internal::DecodeIdentity(opened.payload);
  if (!identity) throw std::runtime_error("bare LMDB: the store has no identity");
  seed_ = identity->hash_seed;
}

void BareLmdb::Open() {
  constexpr MDB_dbi kTables = 16;
  const bool is_new = !fs::exists(directory_ / "data.mdb");
  Check(mdb_env_create(&env_), "create");
  Check(mdb_env_set_maxreaders(env_, kMaxReaders), "set readers");
  Check(mdb_env_set_maxdbs(env_, kTables), "set tables");
  Check(mdb_env_set_mapsize(env_, kDefaultMapBytes), "set the map's size");
  const unsigned flags = MDB_NOTLS | (flushes_ == Flushes::kOnce ? unsigned{MDB_NOSYNC} : 0U);
  Check(mdb_env_open(env_, directory_.c_str(), flags, 0600), "open");
  Transaction tables(env_, is_new ? 0 : MDB_RDONLY);
  const char* const images = SpecOf(internal::Table::kImages).name;
  Check(mdb_dbi_open(tables.get(), images, is_new ? MDB_CREATE : 0, &records_), "open a table");
  Check(mdb_dbi_open(tables.get(), nullptr, 0, &intents_), "open a table");
  tables.Commit();
  if (flushes_ == Flushes::kOnce && !is_new) MakeRoom();
  Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
  mdb_txn_reset(reader_);
}

void BareLmdb::Close() {
  if (reader_ != nullptr) mdb_txn_abort(std::exchange(reader_, nullptr));
  if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
}

// Behind the last page, once, for all that a run writes.
void BareLmdb::MakeRoom() {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  mdb_filehandle_t file = -1;
  Check(mdb_env_get_fd(env_, &file), "get the file");
  const std::string zeros(kBytes, '\0');
  const off_t end = lseek(file, 0, SEEK_END);
  if (end < 0 || pwrite(file, zeros.data(), zeros.size(), end) != static_cast<ssize_t>(kBytes) ||
      fsync(file) != 0) {
    throw std::runtime_error("bare LMDB: no room for " + directory_.string());
  }
}

void BareLmdb::Commit(Transaction& write) {
  write.Commit();
  if (flushes_ == Flushes::kOnce) Check(mdb_env_sync(env_, 1), "flush");
}

std::string_view BareLmdb::Lookup(std::string_view image_ref) {
  XXH128_canonical_t hash = BareKey(image_ref, seed_);
  if (mdb_txn_renew(reader_) != MDB_SUCCESS) return {};
  MDB_val key{sizeof hash.digest, hash.digest};
  MDB_val value{};
  const int rc = mdb_get(reader_, records_, &key, &value);
  mdb_txn_reset(reader_);
  return rc == MDB_SUCCESS ? TextOf(value) : std::string_view();
}

void BareLmdb::Write(const std::vector<Change>& changes) {
  Transaction write(env_);
  for (const Change& change : changes) {
    XXH128_canonical_t hash = BareKey(change.identity, seed_);
    hash.digest[0] |= static_cast<unsigned char>(FirstKeyOf(change.table).bytes[0]);
    MDB_val key{sizeof hash.digest, hash.digest};
    MDB_val value = ToVal(change.value);
    const MDB_dbi table = TableOf(change.table);
    Check(change.value.empty() ? mdb_del(write.get(), table, &key, nullptr)
                               : mdb_put(write.get(), table, &key, &value, 0),
          change.value.empty() ? "delete" : "put");
  }
  Commit(write);
}

std::size_t BareLmdb::ReopenAndScan() {
  Close();
  Open();
  std::size_t entries = 0;
  std::size_t sum = 0;
  Transaction read(env_, MDB_RDONLY);
  for (const Table table : {Table::kRecords, Table::kIntents}) {
    ForEach(read.get(), TableOf(table), FirstKeyOf(table),
            [&](MDB_cursor*, MDB_val&, std::string_view value) {
              ++entries;
              sum += static_cast<unsigned char>(value.front());
            });
  }
  return sum == 0 ? 0 : entries;
}

std::size_t BareLmdb::RewriteRecords() {
  Transaction write(env_);
  std::size_t values = 0;
  std::string copy;
  ForEach(write.get(), records_, {}, [&](MDB_cursor* cursor, MDB_val& key, std::string_view value) {
    copy = value;
    MDB_val same = ToVal(copy);
    Check(mdb_cursor_put(cursor, &key, &same, MDB_CURRENT), "put");
    ++values;
  });
  Commit(write);
  return values;
}

std::vector<std::string> BareLmdb::Values(Table table) {
  std::vector<std::string> values;
  Transaction read(env_, MDB_RDONLY);
  ForEach(read.get(), TableOf(table), FirstKeyOf(table),
          [&](MDB_cursor*, MDB_val&, std::string_view value) { values.emplace_back(value); });
  return values;
}

}  // namespace waybill::bench
