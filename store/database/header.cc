#include "store/database/header.h"

#include <flatbuffers/flatbuffers.h>

#include <cstring>

#include "schema/v3/header_generated.h"
#include "store/database/flatbuffer.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v3 = schema::v3;

namespace {

v1::TableDigest ToDigest(const TableDigest& d) { return {d.count, d.checksum_sum}; }
TableDigest FromDigest(const v1::TableDigest& d) { return {d.count(), d.checksum_sum()}; }

// Where versions 1 to 3 have the digest of a table.
constexpr auto kDigestFields = std::to_array<flatbuffers::voffset_t>(
    {v3::State::VT_PULLED_RECORDS, v3::State::VT_PULL_INTENTS, v3::State::VT_QUARANTINE,
     v3::State::VT_PRELOADED_RECORDS, v3::State::VT_IMPORTED_FILES, v3::State::VT_RUNTIME_HANDLERS,
     v3::State::VT_USERNS_MAPPINGS, v3::State::VT_USERNS_BLOCKS, v3::State::VT_USERNS_HELD});
static_assert(kDigestFields.size() == kTableCount);
flatbuffers::voffset_t DigestField(Table table) { return kDigestFields[Index(table)]; }

const v1::TableDigest* DigestIn(const v3::State& state, Table table) {
  return reinterpret_cast<const flatbuffers::Table&>(state).GetStruct<const v1::TableDigest*>(
      DigestField(table));
}

}  // namespace

std::vector<std::uint8_t> EncodeIdentity(const Identity& identity) {
  flatbuffers::FlatBufferBuilder builder;
  const auto witness = builder.CreateString(identity.witness_path);
  const auto migration = builder.CreateString(identity.last_migration);
  const v1::Uuid uuid(flatbuffers::span<const std::uint8_t, 16>(identity.uuid));
  const v1::Time created = ToTime(identity.created);
  return Finish(builder, v1::CreateIdentity(builder, identity.schema_version, &uuid,
                                            identity.hash_seed, &created, witness, migration));
}

std::optional<Identity> DecodeIdentity(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::Identity>(payload);
  if (root == nullptr || root->uuid() == nullptr || root->created() == nullptr ||
      root->witness_path() == nullptr || root->last_migration() == nullptr) {
    return std::nullopt;
  }
  if (root->schema_version() < kOldestSchema) return std::nullopt;
  Identity identity;
  identity.schema_version = root->schema_version();
  std::memcpy(identity.uuid.data(), root->uuid()->bytes()->data(), identity.uuid.size());
  identity.hash_seed = root->hash_seed();
  identity.created = FromTime(*root->created());
  identity.witness_path = root->witness_path()->str();
  identity.last_migration = root->last_migration()->str();
  return identity;
}

std::vector<std::uint8_t> EncodeState(const State& state, std::uint32_t schema_version) {
  flatbuffers::FlatBufferBuilder builder(512);
  const v1::Time latest = ToTime(state.latest_time);
  const v1::TableDigest header = ToDigest(state.header);
  const Schema schema = SchemaOf(schema_version);
  v3::StateBuilder fields(builder);
  fields.add_commit_sequence(state.commit_sequence);
  fields.add_lmdb_txn_id(state.lmdb_txn_id);
  fields.add_distrustful(state.distrustful);
  fields.add_latest_time(&latest);
  fields.add_header(&header);
  for (const TableSpec& spec : kTables) {
    if (!schema.has(spec)) continue;
    const v1::TableDigest digest = ToDigest(state.digest(spec.table));
    builder.AddStruct(DigestField(spec.table), &digest);
  }
  if (schema.has(Table::kRuntimeHandlers)) {
    fields.add_nondefault_handler_records(state.nondefault_handler_records);
  }
  return Finish(builder, fields.Finish());
}

std::optional<State> DecodeState(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v3::State>(payload);
  if (root == nullptr || root->latest_time() == nullptr || root->header() == nullptr) {
    return std::nullopt;
  }
  State state;
  state.commit_sequence = root->commit_sequence();
  state.lmdb_txn_id = root->lmdb_txn_id();
  state.distrustful = root->distrustful();
  state.latest_time = FromTime(*root->latest_time());
  state.header = FromDigest(*root->header());
  for (const TableSpec& spec : kTables) {
    const auto* digest = DigestIn(*root, spec.table);
    // What an older version has no place for is empty.
    if (digest == nullptr && SchemaOf(kOldestSchema).has(spec)) return std::nullopt;
    if (digest != nullptr) state.digest(spec.table) = FromDigest(*digest);
  }
  state.nondefault_handler_records = root->nondefault_handler_records();
  return state;
}

std::vector<std::uint8_t> EncodeTrustJournal(const std::vector<TrustEvent>& events) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<v1::TrustEvent>> offsets;
  for (const TrustEvent& event : events) {
    const auto reason = builder.CreateString(event.reason);
    const v1::Time at = ToTime(event.at);
    offsets.push_back(v1::CreateTrustEvent(builder, &at, event.distrustful, reason));
  }
  return Finish(builder, v1::CreateTrustJournal(builder, builder.CreateVector(offsets)));
}

std::optional<std::vector<TrustEvent>> DecodeTrustJournal(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::TrustJournal>(payload);
  if (root == nullptr || root->events() == nullptr) return std::nullopt;
  std::vector<TrustEvent> events;
  for (const auto* event : *root->events()) {
    if (event->at() == nullptr || event->reason() == nullptr) return std::nullopt;
    events.push_back({FromTime(*event->at()), event->distrustful(), event->reason()->str()});
  }
  return events;
}

}  // namespace waybill::internal
