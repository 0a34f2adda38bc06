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
  const v1::TableDigest pulled = ToDigest(state.digest(Table::kPulled));
  const v1::TableDigest intents = ToDigest(state.digest(Table::kIntents));
  const v1::TableDigest quarantine = ToDigest(state.digest(Table::kQuarantine));
  const v1::TableDigest preloaded = ToDigest(state.digest(Table::kPreloaded));
  const v1::TableDigest imported = ToDigest(state.digest(Table::kImported));
  const v1::TableDigest handlers = ToDigest(state.digest(Table::kRuntimeHandlers));
  const v1::TableDigest mappings = ToDigest(state.digest(Table::kUsernsMappings));
  const v1::TableDigest blocks = ToDigest(state.digest(Table::kUsernsBlocks));
  const v1::TableDigest held = ToDigest(state.digest(Table::kUsernsHeld));
  const Schema& schema = SchemaOf(schema_version);
  const bool has_handlers = schema.has(Table::kRuntimeHandlers);
  const bool has_userns = schema.has(Table::kUsernsMappings);
  return Finish(
      builder, v3::CreateState(builder, state.commit_sequence, state.lmdb_txn_id, state.distrustful,
                               &latest, &header, &pulled, &intents, &quarantine, &preloaded,
                               &imported, has_handlers ? &handlers : nullptr,
                               has_handlers ? state.nondefault_handler_records : 0,
                               has_userns ? &mappings : nullptr, has_userns ? &blocks : nullptr,
                               has_userns ? &held : nullptr));
}

std::optional<State> DecodeState(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v3::State>(payload);
  if (root == nullptr || root->latest_time() == nullptr || root->header() == nullptr ||
      root->pulled_records() == nullptr || root->pull_intents() == nullptr ||
      root->quarantine() == nullptr || root->preloaded_records() == nullptr ||
      root->imported_files() == nullptr) {
    return std::nullopt;
  }
  State state;
  state.commit_sequence = root->commit_sequence();
  state.lmdb_txn_id = root->lmdb_txn_id();
  state.distrustful = root->distrustful();
  state.latest_time = FromTime(*root->latest_time());
  state.header = FromDigest(*root->header());
  state.digest(Table::kPulled) = FromDigest(*root->pulled_records());
  state.digest(Table::kIntents) = FromDigest(*root->pull_intents());
  state.digest(Table::kQuarantine) = FromDigest(*root->quarantine());
  state.digest(Table::kPreloaded) = FromDigest(*root->preloaded_records());
  state.digest(Table::kImported) = FromDigest(*root->imported_files());
  // What an older version has no place for is empty.
  const auto take = [&state](Table table, const v1::TableDigest* digest) {
    if (digest != nullptr) state.digest(table) = FromDigest(*digest);
  };
  take(Table::kRuntimeHandlers, root->runtime_handlers());
  take(Table::kUsernsMappings, root->userns_mappings());
  take(Table::kUsernsBlocks, root->userns_blocks());
  take(Table::kUsernsHeld, root->userns_held());
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
