#include "store/disk/header.h"

#include <flatbuffers/flatbuffers.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "schema/v1/header_generated.h"
#include "store/disk/flatbuffer.h"

namespace waybill::internal {

namespace v1 = schema::v1;

namespace {

v1::TableDigest ToDigest(const TableDigest& d) { return {d.count, d.checksum_sum}; }
TableDigest FromDigest(const v1::TableDigest& d) { return {d.count(), d.checksum_sum()}; }

std::uint64_t ToSeconds(std::chrono::seconds span) {
  return static_cast<std::uint64_t>(span.count());
}
// What is longer than any option allows is that.
std::chrono::seconds FromSeconds(std::uint64_t seconds) {
  const auto most = static_cast<std::uint64_t>(kMaxAge.count());
  return std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, most)));
}

std::uint64_t ToCount(std::int64_t count) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}
std::chrono::nanoseconds FromCount(std::uint64_t count) {
  const auto most = static_cast<std::uint64_t>(kLongestRun.count());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(count, most)));
}

Clocks ClocksIn(const v1::State& state) {
  Clocks clocks;
  std::memcpy(clocks.boot.boot_id.data(), state.boot()->bytes()->data(),
              clocks.boot.boot_id.size());
  clocks.boot.nanoseconds = FromCount(state.boot_time()).count();
  clocks.wall = FromTime(*state.wall());
  clocks.ran = FromCount(state.ran());
  clocks.boot_ran = FromCount(state.boot_ran());
  clocks.kubelet_ran = FromCount(state.kubelet_ran());
  clocks.ages = FromTime(*state.age_clock());
  clocks.ends = FromTime(*state.end_clock());
  return clocks;
}

}  // namespace

std::uint64_t HashOfSettings(std::string_view settings) {
  return settings.empty() ? 0 : XXH3_64bits(settings.data(), settings.size());
}

std::vector<std::uint8_t> EncodeIdentity(const Identity& identity) {
  flatbuffers::FlatBufferBuilder builder;
  const auto witness = builder.CreateString(identity.witness_path);
  const auto migration = builder.CreateString(identity.last_migration);
  const auto settings = StringUnlessEmpty(builder, identity.settings);
  const v1::Uuid uuid(Raw(identity.uuid));
  const v1::Time created = ToTime(identity.created);
  return Finish(builder, v1::CreateIdentity(builder, identity.schema_version, &uuid,
                                            identity.hash_seed, &created, witness, migration,
                                            static_cast<std::uint8_t>(identity.purpose),
                                            identity.left_witness_at, settings));
}

std::optional<Identity> DecodeIdentity(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::Identity>(payload);
  if (root == nullptr || root->uuid() == nullptr || root->created() == nullptr ||
      root->witness_path() == nullptr || root->last_migration() == nullptr) {
    return std::nullopt;
  }
  if (root->schema_version() < kOldestSchema) return std::nullopt;
  const auto purpose = static_cast<Purpose>(root->purpose());
  if (purpose != Purpose::kNode && purpose != Purpose::kStreaming) return std::nullopt;
  Identity identity;
  identity.schema_version = root->schema_version();
  std::memcpy(identity.uuid.data(), root->uuid()->bytes()->data(), identity.uuid.size());
  identity.hash_seed = root->hash_seed();
  identity.created = FromTime(*root->created());
  identity.witness_path = root->witness_path()->str();
  identity.last_migration = root->last_migration()->str();
  identity.purpose = purpose;
  identity.left_witness_at = root->left_witness_at();
  identity.settings = Text(root->settings());
  return identity;
}

std::vector<std::uint8_t> EncodeState(const State& state, const Schema& schema) {
  flatbuffers::FlatBufferBuilder builder(512);
  std::vector<v1::TableDigest> tables;
  tables.reserve(kTableCount);
  for (const TableSpec& spec : kTables) {
    if (schema.has(spec)) tables.push_back(ToDigest(state.digest(spec.table)));
  }
  const auto tables_at = builder.CreateVectorOfStructs(tables);
  const v1::TableDigest header = ToDigest(state.header);
  const Clocks& clocks = state.clocks;
  const v1::Uuid boot(Raw(clocks.boot.boot_id));
  const v1::Time wall = ToTime(clocks.wall);
  const v1::Time age_clock = ToTime(clocks.ages);
  const v1::Time end_clock = ToTime(clocks.ends);
  v1::StateBuilder fields(builder);
  fields.add_commit_sequence(state.commit_sequence);
  fields.add_lmdb_txn_id(state.lmdb_txn_id);
  fields.add_distrustful(state.distrustful);
  fields.add_header(&header);
  fields.add_tables(tables_at);
  fields.add_last_pull_id(state.last_pull_id);
  fields.add_last_list(state.last_list);
  fields.add_evidence_removed(state.evidence_removed);
  fields.add_awaits_first_list(state.awaits_first_list);
  fields.add_kubelet_rules(state.kubelet_rules);
  fields.add_last_truth(state.last_truth);
  fields.add_unfinished(state.unfinished);
  fields.add_max_age(ToSeconds(state.max_age));
  fields.add_boot(&boot);
  fields.add_boot_time(ToCount(clocks.boot.nanoseconds));
  fields.add_wall(&wall);
  fields.add_ran(ToCount(clocks.ran.count()));
  fields.add_boot_ran(ToCount(clocks.boot_ran.count()));
  fields.add_kubelet_ran(ToCount(clocks.kubelet_ran.count()));
  fields.add_age_clock(&age_clock);
  fields.add_end_clock(&end_clock);
  fields.add_aliases_changed(state.aliases_changed);
  fields.add_settings_hash(state.settings_hash);
  return Finish(builder, fields.Finish());
}

std::optional<State> DecodeState(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::State>(payload);
  if (root == nullptr || root->header() == nullptr || root->tables() == nullptr ||
      root->tables()->size() > kTableCount || root->boot() == nullptr || root->wall() == nullptr ||
      root->age_clock() == nullptr || root->end_clock() == nullptr) {
    return std::nullopt;
  }
  State state;
  state.commit_sequence = root->commit_sequence();
  state.lmdb_txn_id = root->lmdb_txn_id();
  state.distrustful = root->distrustful();
  state.last_pull_id = root->last_pull_id();
  state.last_list = root->last_list();
  state.evidence_removed = root->evidence_removed();
  state.awaits_first_list = root->awaits_first_list();
  state.kubelet_rules = root->kubelet_rules();
  state.last_truth = root->last_truth();
  state.unfinished = root->unfinished();
  state.aliases_changed = root->aliases_changed();
  state.settings_hash = root->settings_hash();
  state.max_age = FromSeconds(root->max_age());
  state.clocks = ClocksIn(*root);
  state.header = FromDigest(*root->header());
  // Tables that the version does not have are empty.
  for (std::size_t i = 0; i < root->tables()->size(); ++i) {
    state.tables[i] = FromDigest(*root->tables()->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }
  return state;
}

}  // namespace waybill::internal
