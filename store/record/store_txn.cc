#include "store/record/store_txn.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "store/base/repository.h"
#include "store/lmdb/error.h"
#include "store/record/small_records.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool Verifies(const Key16& key, Value value) {
  return value.size() >= kEnvelopeBytes && StoredChecksum(value) == ComputedChecksum(key, value);
}

// Whether the table at `digest` is one that a digest covers: the state record itself is not.
bool Covered(const Key16& key) { return key != kStateKey; }

}  // namespace

int OpenTables(MDB_txn* txn, bool create, TableHandles& handles) {
  int rc = mdb_dbi_open(txn, nullptr, 0, &handles.main);
  for (const Table table : kAllTables) {
    if (rc != MDB_SUCCESS) return rc;
    rc = mdb_dbi_open(txn, InfoOf(table).name, create ? unsigned{MDB_CREATE} : 0U,
                      &handles.tables[Index(table)]);
  }
  return rc;
}

Error StoreTxn::LmdbError(int rc, std::string_view doing) const {
  return lmdb::MakeError(rc, doing, *context_.directory);
}

Result<std::optional<Payload>> StoreTxn::Get(Table table, const Key16& key) const {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  const int rc = mdb_get(context_.txn, context_.handles->of(table), &k, &v);
  if (rc == MDB_NOTFOUND) return std::optional<Payload>();
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a record");
  const TableInfo& info = InfoOf(table);
  const Opened opened = OpenEnvelope(key, lmdb::FromVal(v), info.kind, info.newest_version);
  if (opened.state != EnvelopeState::kSound) {
    return Error{ErrorCode::kDamaged,
                 std::string("a value of table ") + info.name + " in " +
                     context_.directory->string() + " does not verify",
                 "run `waybill verify`, then `waybill start` to recover the store"};
  }
  return std::optional<Payload>(opened.payload);
}

Result<void> StoreTxn::Recount(MDB_dbi dbi, TableDigest& digest) const {
  digest = {};
  lmdb::Cursor cursor;
  int rc = cursor.Open(context_.txn, dbi);
  lmdb::Bytes key;
  lmdb::Bytes value;
  while (rc == MDB_SUCCESS) {
    rc = cursor.Get(&key, &value, MDB_NEXT);
    if (rc == MDB_SUCCESS && value.size() >= kEnvelopeBytes) digest.Add(StoredChecksum(value));
  }
  if (rc != MDB_NOTFOUND) return LmdbError(rc, "counting a table");
  return {};
}

Result<void> StoreTxn::Store(MDB_dbi dbi, TableDigest& digest, const Key16& key,
                             std::span<const std::byte> value) {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val old{};
  bool recount = false;
  const int found = mdb_get(context_.txn, dbi, &k, &old);
  if (found != MDB_SUCCESS && found != MDB_NOTFOUND) return LmdbError(found, "reading a record");
  const bool exists = found == MDB_SUCCESS;
  if (!context_.growth_allowed && (!exists || old.mv_size < value.size())) {
    return LmdbError(MDB_MAP_FULL, "adding a record");
  }
  if (exists) {
    const Value old_value = lmdb::FromVal(old);
    // Of a damaged value nobody knows which checksum went into the sum.
    recount = !Verifies(key, old_value);
    if (!recount) digest.Remove(StoredChecksum(old_value));
  }
  MDB_val v = lmdb::ToVal(value);
  const int rc = mdb_put(context_.txn, dbi, &k, &v, 0);
  if (rc != MDB_SUCCESS) return LmdbError(rc, "writing a record");
  dirty_ = true;
  if (recount) return Recount(dbi, digest);
  digest.Add(StoredChecksum(value));
  return {};
}

Result<void> StoreTxn::Put(Table table, const Key16& key, Payload payload) {
  const TableInfo& info = InfoOf(table);
  return Store(context_.handles->of(table), state_.digest(table), key,
               Seal(key, info.kind, info.newest_version, payload));
}

Result<bool> StoreTxn::Delete(Table table, const Key16& key) {
  const MDB_dbi dbi = context_.handles->of(table);
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val old{};
  int rc = mdb_get(context_.txn, dbi, &k, &old);
  if (rc == MDB_NOTFOUND) return false;
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a record");
  const Value old_value = lmdb::FromVal(old);
  const bool recount = !Verifies(key, old_value);
  if (!recount) state_.digest(table).Remove(StoredChecksum(old_value));
  rc = mdb_del(context_.txn, dbi, &k, nullptr);
  if (rc != MDB_SUCCESS) return LmdbError(rc, "deleting a record");
  dirty_ = true;
  if (recount) {
    if (auto r = Recount(dbi, state_.digest(table)); !r) return r.error();
  }
  return true;
}

Result<void> StoreTxn::ForEach(Table table, const Visitor& visit) const {
  const TableInfo& info = InfoOf(table);
  lmdb::Cursor cursor;
  int rc = cursor.Open(context_.txn, context_.handles->of(table));
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a table");
  lmdb::Bytes key;
  lmdb::Bytes value;
  while ((rc = cursor.Get(&key, &value, MDB_NEXT)) == MDB_SUCCESS) {
    if (key.size() != 16) continue;
    const Key16 k = Key16::From(key);
    const Opened opened = OpenEnvelope(k, value, info.kind, info.newest_version);
    auto go_on = visit(k, opened.payload);
    if (!go_on) return go_on.error();
    if (!*go_on) return {};
  }
  if (rc != MDB_NOTFOUND) return LmdbError(rc, "reading a table");
  return {};
}

Result<bool> StoreTxn::HasIntentOfRepository(std::string_view image) const {
  if (state_.digest(Table::kIntents).count == 0) return false;
  const TableInfo& info = InfoOf(Table::kIntents);
  const Key16 first = FirstIntentKeyOfRepository(image, seed());
  lmdb::Cursor cursor;
  int rc = cursor.Open(context_.txn, context_.handles->of(Table::kIntents));
  lmdb::Bytes key = first.span();
  lmdb::Bytes value;
  if (rc == MDB_SUCCESS) rc = cursor.Get(&key, &value, MDB_SET_RANGE);
  while (rc == MDB_SUCCESS && SameRepositoryPrefix(key, first)) {
    const Opened opened = OpenEnvelope(Key16::From(key), value, info.kind, info.newest_version);
    if (opened.state != EnvelopeState::kSound) return true;
    if (SameRepository(IntentImage(opened.payload), image)) return true;
    rc = cursor.Get(&key, &value, MDB_NEXT);
  }
  if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND) return LmdbError(rc, "reading the intents");
  return false;
}

Result<void> StoreTxn::PutHeaderRecord(const Key16& key, RecordKind kind, Payload payload) {
  TableDigest ignored;
  return Store(context_.handles->main, Covered(key) ? state_.header : ignored, key,
               Seal(key, kind, kHeaderVersion, payload));
}

Result<Payload> StoreTxn::GetHeaderRecord(const Key16& key, RecordKind kind) const {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  const int rc = mdb_get(context_.txn, context_.handles->main, &k, &v);
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading the header");
  const Opened opened = OpenEnvelope(key, lmdb::FromVal(v), kind, kHeaderVersion);
  if (opened.state != EnvelopeState::kSound) {
    return Error{ErrorCode::kDamaged,
                 "the header of " + context_.directory->string() + " does not verify",
                 "run `waybill start` to recover the store"};
  }
  return opened.payload;
}

Result<void> StoreTxn::WriteState() {
  context_.growth_allowed = true;
  ++state_.commit_sequence;
  state_.lmdb_txn_id = mdb_txn_id(context_.txn);
  state_.latest_time = std::max(state_.latest_time, context_.now);
  return PutHeaderRecord(kStateKey, RecordKind::kState, EncodeState(state_));
}

namespace {

Result<std::vector<TrustEvent>> ReadJournal(const StoreTxn& txn) {
  auto payload = txn.GetHeaderRecord(kTrustKey, RecordKind::kTrustJournal);
  if (!payload) return payload.error();
  auto events = DecodeTrustJournal(*payload);
  return events ? std::move(*events) : std::vector<TrustEvent>();
}

constexpr std::string_view kImportOf = "the import of ";

}  // namespace

Result<void> SetTrust(StoreTxn& txn, bool distrustful, std::string_view reason) {
  auto events = ReadJournal(txn);
  if (!events) return events.error();
  if (distrustful && txn.state().distrustful && !events->empty() &&
      events->back().reason == reason) {
    return {};
  }
  events->push_back({txn.now(), distrustful, std::string(reason)});
  if (events->size() > kMaxTrustEvents) events->erase(events->begin());
  txn.state().distrustful = distrustful;
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeTrustJournal(*events));
}

std::string ImportUnfinished(const std::filesystem::path& kubelet_directory) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(kubelet_directory, error);
  return std::string(kImportOf) + (error ? kubelet_directory : absolute).string() +
         " is not finished; run `waybill start --kubelet-dir` on it again";
}

Result<bool> DistrustIsOfImport(const StoreTxn& txn) {
  const auto events = ReadJournal(txn);
  if (!events) return events.error();
  return !events->empty() && events->back().distrustful &&
         events->back().reason.starts_with(kImportOf);
}

Result<void> FinishImport(StoreTxn& txn, std::string_view reason) {
  auto events = ReadJournal(txn);
  if (!events) return events.error();
  if (events->empty() || !events->back().distrustful || events->back().reason != reason) return {};
  events->pop_back();
  txn.state().distrustful = !events->empty() && events->back().distrustful;
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeTrustJournal(*events));
}

}  // namespace waybill::internal
