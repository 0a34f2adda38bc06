#include "store/disk/store_txn.h"

#include <algorithm>
#include <cstring>

#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// Takes a value that is replaced or deleted out of its table's digest. False: it is damaged, so it
// is unknown which checksum went into the sum, and the table must be counted anew.
bool TakeOut(const Key16& key, Value value, TableDigest& digest) {
  if (value.size() < kEnvelopeBytes || StoredChecksum(value) != ComputedChecksum(key, value)) {
    return false;
  }
  digest.Remove(StoredChecksum(value));
  return true;
}

std::uint64_t BigEndian(const void* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap64(value);
}

}  // namespace

int CompareKeys(const MDB_val* a, const MDB_val* b) {
  constexpr std::size_t kBytes = sizeof(Key16::bytes);
  if (a->mv_size != kBytes || b->mv_size != kBytes) {
    const int order = std::memcmp(a->mv_data, b->mv_data, std::min(a->mv_size, b->mv_size));
    return order != 0 ? order : (a->mv_size > b->mv_size) - (a->mv_size < b->mv_size);
  }
  const char* const left = static_cast<const char*>(a->mv_data);
  const char* const right = static_cast<const char*>(b->mv_data);
  std::uint64_t x = BigEndian(left);
  std::uint64_t y = BigEndian(right);
  if (x == y) {
    x = BigEndian(left + 8);
    y = BigEndian(right + 8);
  }
  return (x > y) - (x < y);
}

int OpenTables(MDB_txn* txn, std::uint32_t schema_version, bool create, TableHandles& handles) {
  int rc = mdb_dbi_open(txn, nullptr, 0, &handles.main);
  for (const TableSpec& spec : kTables) {
    if (rc != MDB_SUCCESS) return rc;
    if (!SchemaOf(schema_version).has(spec)) continue;
    MDB_dbi& handle = handles.tables[Index(spec.table)];
    if (LiesInMain(spec.table)) {
      handle = handles.main;
      continue;
    }
    rc = mdb_dbi_open(txn, spec.name, create ? unsigned{MDB_CREATE} : 0U, &handle);
    if (rc == MDB_SUCCESS) rc = mdb_set_compare(txn, handle, CompareKeys);
  }
  return rc;
}

Error StoreTxn::LmdbError(int rc, std::string_view doing) const {
  return lmdb::MakeError(rc, doing, *context_.directory);
}

Result<void> StoreTxn::CheckSize(Payload payload) const {
  if (payload.size() <= kMaxValueBytes) return {};
  return Error{ErrorCode::kLimitExceeded,
               "a record for " + context_.directory->string() + " has " +
                   std::to_string(payload.size()) + " bytes, and " +
                   std::to_string(kMaxValueBytes) + " are allowed; nothing was changed",
               ""};
}

Result<std::optional<Payload>> StoreTxn::Get(Table table, const Key16& key) const {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  const int rc = mdb_get(context_.txn, context_.handles->of(table), &k, &v);
  if (rc == MDB_NOTFOUND) return std::optional<Payload>();
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a record");
  const TableSpec& spec = SpecOf(table);
  const Opened opened = OpenEnvelope(key, lmdb::FromVal(v), spec.kind, schema().version(spec));
  if (opened.state != EnvelopeState::kSound) {
    return Error{ErrorCode::kDamaged,
                 std::string("a value of table ") + spec.name + " in " +
                     context_.directory->string() + " does not verify",
                 {},
                 Hint::kVerify};
  }
  return std::optional<Payload>(opened.payload);
}

Result<void> StoreTxn::Recount(std::optional<Table> table, TableDigest& digest) const {
  digest = {};
  const MDB_dbi dbi = table ? context_.handles->of(*table) : context_.handles->main;
  const Key16 first = table ? FirstKeyOf(*table) : Key16();
  const int rc = lmdb::ForEach(context_.txn, dbi, first.span(), [&](lmdb::Bytes, Value value) {
    // Damaged values count with the checksum that they carry.
    if (value.size() >= kEnvelopeBytes) digest.Add(StoredChecksum(value));
    return true;
  });
  if (rc != MDB_SUCCESS) return LmdbError(rc, "counting a table");
  return {};
}

Result<void> StoreTxn::TakeRoom(MDB_dbi dbi, std::size_t bytes) {
  MDB_stat stat{};
  const int rc = mdb_stat(context_.txn, dbi, &stat);
  if (rc != MDB_SUCCESS) return LmdbError(rc, "looking at a table");
  // LMDB copies the path to the leaf, and may split each page of it. A large value has pages of its
  // own.
  const std::uint64_t pages = 2 * (std::uint64_t{stat.ms_depth} + 1) + bytes / stat.ms_psize + 1;
  // Many values of one change share the pages that they copy.
  if (context_.growth_pages - pages_taken_ < pages) {
    pages_taken_ = std::min(pages_taken_, PagesCopied());
  }
  if (context_.growth_pages - pages_taken_ < pages) {
    return LmdbError(MDB_MAP_FULL, "adding a record");
  }
  pages_taken_ += pages;
  return {};
}

namespace {

std::uint64_t PagesOf(const MDB_stat& stat) {
  return stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
}

}  // namespace

void StoreTxn::Touch(Table table, std::size_t bytes) {
  Touched& touched = touched_[Index(table)];
  if (touched.changes == 0) {
    MDB_stat stat{};
    if (mdb_stat(context_.txn, context_.handles->of(table), &stat) == MDB_SUCCESS) {
      touched.depth = stat.ms_depth + std::uint64_t{1};
      touched.branch_pages = stat.ms_branch_pages;
      touched.pages = PagesOf(stat);
      touched.page_bytes = stat.ms_psize;
    }
  }
  touched.changes += 1 + bytes / touched.page_bytes;
}

std::uint64_t StoreTxn::PagesCopied() const {
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const Touched& one = touched_[i];
    MDB_stat now{};
    if (one.changes == 0 ||
        mdb_stat(context_.txn, context_.handles->of(kTables[i].table), &now) != MDB_SUCCESS) {
      continue;
    }
    // A change copies a leaf and the path to it, and a deletion may merge the leaf with another.
    const std::uint64_t paths = std::min(one.changes * one.depth, one.branch_pages + 2);
    pages += std::min(2 * one.changes + paths, one.pages);
    if (const std::uint64_t all = PagesOf(now); all > one.pages) pages += all - one.pages;
  }
  // The free list takes 8 bytes for each page that is free now, and may be copied, too.
  return pages + pages / 256;
}

Result<bool> StoreTxn::Store(std::optional<Table> table, TableDigest& digest, const Key16& key,
                             Value value, How how) {
  const MDB_dbi dbi = table ? context_.handles->of(*table) : context_.handles->main;
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val old{};
  const int found = how == How::kNew ? MDB_NOTFOUND : mdb_get(context_.txn, dbi, &k, &old);
  if (found != MDB_SUCCESS && found != MDB_NOTFOUND) return LmdbError(found, "reading a record");
  const bool exists = found == MDB_SUCCESS;
  if (exists && old.mv_size == value.size() &&
      std::memcmp(old.mv_data, value.data(), value.size()) == 0) {
    dirty_ = true;
    return true;
  }
  if (table) Touch(*table, value.size());
  // The header's records always find room: they are small, and one says what was lost.
  const bool needs_room = table && how != How::kReplaceFromReserve;
  if (needs_room && (!exists || old.mv_size < value.size())) TRY(TakeRoom(dbi, value.size()));
  const bool recount = exists && !TakeOut(key, lmdb::FromVal(old), digest);
  MDB_val v = lmdb::ToVal(value);
  const int rc =
      mdb_put(context_.txn, dbi, &k, &v, how == How::kNew ? unsigned{MDB_NOOVERWRITE} : 0U);
  if (how == How::kNew && rc == MDB_KEYEXIST) return false;
  dirty_ = true;
  if (rc != MDB_SUCCESS) return LmdbError(rc, "writing a record");
  if (recount) {
    TRY(Recount(table, digest));
  } else {
    digest.Add(StoredChecksum(value));
  }
  return true;
}

Result<bool> StoreTxn::Write(const Schema& schema, Table table, const Key16& key, Payload payload,
                             How how) {
  TRY(CheckSize(payload));
  const TableSpec& spec = SpecOf(table);
  return Store(table, state_.digest(table), key,
               Seal(key, spec.kind, schema.version(spec), payload), how);
}

Result<void> StoreTxn::PutAs(const Schema& schema, Table table, const Key16& key, Payload payload) {
  TRY(Write(schema, table, key, payload, How::kReplace));
  return {};
}

Result<void> StoreTxn::PutFromReserve(Table table, const Key16& key, Payload payload) {
  TRY(Write(schema(), table, key, payload, How::kReplaceFromReserve));
  return {};
}

Result<bool> StoreTxn::PutNew(Table table, const Key16& key, Payload payload) {
  return Write(schema(), table, key, payload, How::kNew);
}

Result<bool> StoreTxn::Delete(Table table, const Key16& key) {
  const MDB_dbi dbi = context_.handles->of(table);
  TableDigest& digest = state_.digest(table);
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val old{};
  int rc = mdb_get(context_.txn, dbi, &k, &old);
  if (rc == MDB_NOTFOUND) return false;
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a record");
  const bool recount = !TakeOut(key, lmdb::FromVal(old), digest);
  dirty_ = true;
  Touch(table, 0);
  rc = mdb_del(context_.txn, dbi, &k, nullptr);
  if (rc != MDB_SUCCESS) return LmdbError(rc, "deleting a record");
  if (recount) TRY(Recount(table, digest));
  return true;
}

Result<void> StoreTxn::ForEachWithPrefix(Table table, const Key16& first, std::size_t bytes,
                                         Visitor visit) const {
  const auto wanted = [&](const Key16& key) {
    const bool has_prefix = std::memcmp(key.bytes.data(), first.bytes.data(), bytes) == 0;
    return has_prefix ? Wanted::kYes : Wanted::kEnd;
  };
  return Visit(table, std::max(first, FirstKeyOf(table)), wanted, visit);
}

Result<void> StoreTxn::ForEachPull(const Key16& of_image, Visitor visit) const {
  const auto wanted = [&](const Key16& key) {
    return AreOfOneImage(key, of_image) ? Wanted::kYes : Wanted::kNo;
  };
  return Visit(kInMain, FirstKeyOf(kInMain), wanted, visit);
}

Result<void> StoreTxn::Visit(Table table, const Key16& first,
                             FunctionRef<Wanted(const Key16&)> wanted, Visitor visit) const {
  if (!schema().has(table)) return {};
  const TableSpec& spec = SpecOf(table);
  Result<bool> goes_on = true;
  const auto see = [&](lmdb::Bytes key, Value value) {
    if (key.size() != sizeof(Key16)) return true;
    const Key16 k = Key16::From(key.first<16>());
    const Wanted is_wanted = wanted(k);
    if (is_wanted != Wanted::kYes) return is_wanted == Wanted::kNo;
    const Opened opened = OpenEnvelope(k, value, spec.kind, schema().version(spec));
    goes_on = visit(k, opened.payload);
    return goes_on && *goes_on;
  };
  const int rc = lmdb::ForEach(context_.txn, context_.handles->of(table), first.span(), see);
  if (!goes_on) return goes_on.error();
  if (rc != MDB_SUCCESS) return LmdbError(rc, "reading a table");
  return {};
}

Result<void> StoreTxn::PutHeaderRecord(const Key16& key, RecordKind kind, Payload payload) {
  if (auto r = CheckSize(payload); !r) return r;
  // No digest covers the state record, which holds the digests.
  TableDigest ignored;
  TRY(Store(std::nullopt, key == kStateKey ? ignored : state_.header, key,
            Seal(key, kind, schema().header, payload), How::kReplace));
  return {};
}

Result<Payload> StoreTxn::GetHeaderRecord(const Key16& key, RecordKind kind) const {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  const int rc = mdb_get(context_.txn, context_.handles->main, &k, &v);
  if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND) return LmdbError(rc, "reading the header");
  Opened opened;
  if (rc == MDB_SUCCESS) opened = OpenEnvelope(key, lmdb::FromVal(v), kind, schema().header);
  if (opened.state != EnvelopeState::kSound) {
    return Error{ErrorCode::kDamaged,
                 "the header of " + context_.directory->string() + " does not verify",
                 {},
                 Hint::kRecover};
  }
  return opened.payload;
}

Result<void> StoreTxn::PutSettings(const std::string& settings) {
  Identity identity = *context_.identity;
  identity.settings = settings;
  state_.settings_hash = HashOfSettings(settings);
  return PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(identity));
}

Result<void> StoreTxn::WriteState() {
  ++state_.commit_sequence;
  state_.lmdb_txn_id = mdb_txn_id(context_.txn);
  state_.clocks = clocks();
  return PutHeaderRecord(kStateKey, RecordKind::kState, EncodeState(state_, schema()));
}

Error KeyIsTaken(const std::string& whose) {
  return {ErrorCode::kConflict,
          "the key of " + whose + " is taken by another one; nothing was changed",
          "rebuild the store under a new hash seed: set it aside and import again"};
}

}  // namespace waybill::internal
