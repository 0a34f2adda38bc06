// The store's tables, each described in one place, and the keys of its main table.

#ifndef WAYBILL_STORE_ENGINE_DATABASE_TABLES_H_
#define WAYBILL_STORE_ENGINE_DATABASE_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "store/engine/database/envelope.h"
#include "store/engine/database/key.h"
#include "store/node/records/pulled_record.h"
#include "waybill/maintenance.h"
#include "waybill/report.h"

namespace waybill::internal {

enum class Table : std::uint8_t {
  kPulled,
  kIntents,
  kQuarantine,
  kPreloaded,
  kImported,
  kRuntimeHandlers,
  kUsernsMappings,
  kUsernsBlocks,
  kUsernsHeld,
  kLedger,
  kSpellings,
  kRevocations,
  kCredentialIndex,
  kStreamingTokens,
};

using Payload = std::span<const std::uint8_t>;

// The key of a payload that comes from a sound envelope. nullopt: not a FlatBuffer of the table's
// record, incomplete, or above limits.h. A value under the key that it has may be read in place.
std::optional<Key16> KeyOfIntent(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfQuarantine(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfPreloaded(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfImportedFile(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfRuntimeHandler(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsMapping(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsBlock(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsHeld(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfLedgerEntry(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfSpelling(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfRevocation(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfCredentialUse(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfStreamingToken(Payload payload, std::uint64_t seed);

// A new table needs a value of Table, an entry in kTables and a function for its keys.
struct TableSpec {
  Table table;
  const char* name;  // 16 bytes, or LMDB would misalign the main table
  RecordKind kind;
  // The newest version of its records in each schema version; 0: no such table. Older records are
  // read too, since each version keeps the fields of the one before in their places.
  std::array<std::uint16_t, kNewestSchema> versions;
  std::optional<Key16> (*key_of)(Payload payload, std::uint64_t seed);
  std::uint64_t Statistics::*statistic;  // counts its values; may be null
};

// clang-format off
inline constexpr auto kTables = std::to_array<TableSpec>({
    {Table::kPulled, "pulled-records-1", RecordKind::kPulledRecord, {1, 2, 2, 2, 5, 6, 6},
     KeyOfPulledRecord, &Statistics::records},
    {Table::kIntents, "pull-intents---1", RecordKind::kPullIntent, {1, 2, 2, 2, 5, 5, 5},
     KeyOfIntent, &Statistics::intents},
    {Table::kQuarantine, "quarantine-----1", RecordKind::kQuarantine, {1, 1, 1, 1, 1, 1, 1},
     KeyOfQuarantine, &Statistics::quarantine_entries},
    {Table::kPreloaded, "observed-preload", RecordKind::kPreloadedRecord, {1, 1, 1, 1, 1, 1, 1},
     KeyOfPreloaded, &Statistics::preloaded_records},
    {Table::kImported, "imported-files-1", RecordKind::kImportedFile, {1, 1, 1, 1, 1, 1, 1},
     KeyOfImportedFile, &Statistics::imported_files},
    {Table::kRuntimeHandlers, "runtime-handlers", RecordKind::kRuntimeHandler, {0, 2, 2, 2, 2, 2, 2},
     KeyOfRuntimeHandler, &Statistics::runtime_handlers},
    {Table::kUsernsMappings, "userns-mappings1", RecordKind::kUsernsMapping, {0, 0, 3, 3, 3, 3, 3},
     KeyOfUsernsMapping, &Statistics::id_mappings},
    {Table::kUsernsBlocks, "userns-blocks--1", RecordKind::kUsernsBlock, {0, 0, 3, 3, 3, 3, 3},
     KeyOfUsernsBlock, nullptr},
    {Table::kUsernsHeld, "userns-held----1", RecordKind::kUsernsHeld, {0, 0, 3, 4, 4, 4, 4},
     KeyOfUsernsHeld, &Statistics::held_pods},
    {Table::kLedger, "preload-ledger--", RecordKind::kLedgerEntry, {0, 0, 0, 0, 5, 5, 5},
     KeyOfLedgerEntry, &Statistics::ledger_entries},
    {Table::kSpellings, "image-spellings-", RecordKind::kSpelling, {0, 0, 0, 0, 5, 5, 5},
     KeyOfSpelling, &Statistics::spellings},
    {Table::kRevocations, "revocations----1", RecordKind::kRevocation, {0, 0, 0, 0, 0, 6, 6},
     KeyOfRevocation, &Statistics::revocations},
    {Table::kCredentialIndex, "credential-index", RecordKind::kCredentialUse, {0, 0, 0, 0, 0, 6, 6},
     KeyOfCredentialUse, nullptr},
    {Table::kStreamingTokens, "streaming-tokens", RecordKind::kStreamingToken, {0, 0, 0, 0, 0, 0, 7},
     KeyOfStreamingToken, nullptr},
});
// clang-format on
inline constexpr std::size_t kTableCount = kTables.size();

constexpr std::size_t Index(Table table) { return static_cast<std::size_t>(table); }
constexpr const TableSpec& SpecOf(Table table) { return kTables[Index(table)]; }

constexpr bool SpecsAreInOrder() {
  for (std::size_t i = 0; i < kTableCount; ++i) {
    if (Index(kTables[i].table) != i || std::string_view(kTables[i].name).size() != 16)
      return false;
  }
  return true;
}
static_assert(SpecsAreInOrder());

inline constexpr Key16 kIdentityKey = Key16::OfName("waybill-identity");
inline constexpr Key16 kStateKey = Key16::OfName("waybill-state---");
inline constexpr Key16 kTrustKey = Key16::OfName("waybill-trust---");
// Since version 6; may be missing. counters_record.h
inline constexpr Key16 kCountersKey = Key16::OfName("waybill-counters");
inline constexpr std::uint32_t kFirstWithCounters = 6;

// The versions of records in one schema version.
struct Schema {
  std::uint16_t header;  // of the main table's records: the schema version itself

  constexpr std::uint16_t version(const TableSpec& spec) const {
    return spec.versions[header - kOldestSchema];
  }
  constexpr std::uint16_t version(Table table) const { return version(SpecOf(table)); }
  constexpr bool has(const TableSpec& spec) const { return version(spec) != 0; }
  constexpr bool has(Table table) const { return has(SpecOf(table)); }
};
// `version` is one of kOldestSchema to kNewestSchema.
constexpr Schema SchemaOf(std::uint32_t version) { return {static_cast<std::uint16_t>(version)}; }
inline constexpr Schema kNewest = SchemaOf(kNewestSchema);
static_assert(kOldestSchema == 1);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_DATABASE_TABLES_H_
