// The tables of a store, each said in one place, and the records of its main table.

#ifndef WAYBILL_STORE_DATABASE_TABLES_H_
#define WAYBILL_STORE_DATABASE_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "store/database/envelope.h"
#include "store/database/key.h"
#include "store/database/pulled_record.h"
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
};

using Payload = std::span<const std::uint8_t>;

// What becomes of a table's values where a database is made anew from those that verify
// (store/recovery/salvage.h).
enum class Carry : std::uint8_t {
  kAsItIs,       // it only closes, or opens nothing by itself
  kCredentials,  // a record stays; its credentials only where they are known to be current
  kIfProven,     // it opens: only where nothing of the table is missing or stale
  kIdRange,      // whatever is there; opening reconciles the tables
};

// The key that a payload, out of a sound envelope, belongs under; nullopt where it is no FlatBuffer
// of the table's record, not complete, or above limits.h. Readers may take the offsets of one that
// lies under its key as they are.
std::optional<Key16> KeyOfIntent(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfQuarantine(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfPreloaded(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfImportedFile(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfRuntimeHandler(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsMapping(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsBlock(Payload payload, std::uint64_t seed);
std::optional<Key16> KeyOfUsernsHeld(Payload payload, std::uint64_t seed);

// All that is to be said of a table. A new one is a value of the enumeration, an entry below, and
// its key.
struct TableSpec {
  Table table;
  const char* name;  // exactly 16 bytes: LMDB would misalign the main table otherwise
  RecordKind kind;
  // By schema version, from the first: the newest version of its records, 0 where there is no such
  // table. Each older one is read as well, since every version keeps the fields of the one before
  // in their places.
  std::array<std::uint16_t, kNewestSchema> versions;
  std::optional<Key16> (*key_of)(Payload payload, std::uint64_t seed);
  Carry carry;
  std::uint64_t Statistics::*statistic;  // what counts its values, or null
};

// clang-format off
inline constexpr auto kTables = std::to_array<TableSpec>({
    {Table::kPulled, "pulled-records-1", RecordKind::kPulledRecord, {1, 2, 2, 2},
     KeyOfPulledRecord, Carry::kCredentials, &Statistics::records},
    {Table::kIntents, "pull-intents---1", RecordKind::kPullIntent, {1, 2, 2, 2},
     KeyOfIntent, Carry::kAsItIs, &Statistics::intents},
    {Table::kQuarantine, "quarantine-----1", RecordKind::kQuarantine, {1, 1, 1, 1},
     KeyOfQuarantine, Carry::kAsItIs, &Statistics::quarantine_entries},
    {Table::kPreloaded, "observed-preload", RecordKind::kPreloadedRecord, {1, 1, 1, 1},
     KeyOfPreloaded, Carry::kIfProven, &Statistics::preloaded_records},
    {Table::kImported, "imported-files-1", RecordKind::kImportedFile, {1, 1, 1, 1},
     KeyOfImportedFile, Carry::kAsItIs, &Statistics::imported_files},
    {Table::kRuntimeHandlers, "runtime-handlers", RecordKind::kRuntimeHandler, {0, 2, 2, 2},
     KeyOfRuntimeHandler, Carry::kAsItIs, &Statistics::runtime_handlers},
    {Table::kUsernsMappings, "userns-mappings1", RecordKind::kUsernsMapping, {0, 0, 3, 3},
     KeyOfUsernsMapping, Carry::kIdRange, &Statistics::id_mappings},
    {Table::kUsernsBlocks, "userns-blocks--1", RecordKind::kUsernsBlock, {0, 0, 3, 3},
     KeyOfUsernsBlock, Carry::kIdRange, nullptr},
    {Table::kUsernsHeld, "userns-held----1", RecordKind::kUsernsHeld, {0, 0, 3, 4},
     KeyOfUsernsHeld, Carry::kIdRange, &Statistics::held_pods},
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

// What a schema version says of its values.
struct Schema {
  std::uint16_t header;  // of the three records of the main table: that of the schema itself

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

#endif  // WAYBILL_STORE_DATABASE_TABLES_H_
