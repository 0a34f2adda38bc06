// The tables of a store and the records of its main table.

#ifndef WAYBILL_STORE_DATABASE_TABLES_H_
#define WAYBILL_STORE_DATABASE_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/database/envelope.h"
#include "store/database/key.h"
#include "waybill/maintenance.h"

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
inline constexpr std::size_t kTableCount = 9;
inline constexpr std::array<Table, kTableCount> kAllTables = {
    Table::kPulled,         Table::kIntents,      Table::kQuarantine,
    Table::kPreloaded,      Table::kImported,     Table::kRuntimeHandlers,
    Table::kUsernsMappings, Table::kUsernsBlocks, Table::kUsernsHeld};

struct TableInfo {
  const char* name;  // exactly 16 bytes: LMDB would misalign the main table otherwise
  RecordKind kind;
  std::uint32_t since;  // the first schema version with this table
};

inline constexpr std::array<TableInfo, kTableCount> kTables = {{
    {"pulled-records-1", RecordKind::kPulledRecord, 1},
    {"pull-intents---1", RecordKind::kPullIntent, 1},
    {"quarantine-----1", RecordKind::kQuarantine, 1},
    {"observed-preload", RecordKind::kPreloadedRecord, 1},
    {"imported-files-1", RecordKind::kImportedFile, 1},
    {"runtime-handlers", RecordKind::kRuntimeHandler, 2},
    {"userns-mappings1", RecordKind::kUsernsMapping, 3},
    {"userns-blocks--1", RecordKind::kUsernsBlock, 3},
    {"userns-held----1", RecordKind::kUsernsHeld, 3},
}};

constexpr bool NamesHave16Bytes() {
  for (const TableInfo& table : kTables) {
    if (std::string_view(table.name).size() != 16) return false;
  }
  return true;
}
static_assert(NamesHave16Bytes());

constexpr std::size_t Index(Table table) { return static_cast<std::size_t>(table); }
constexpr const TableInfo& InfoOf(Table table) { return kTables[Index(table)]; }

inline constexpr Key16 kIdentityKey = Key16::OfName("waybill-identity");
inline constexpr Key16 kStateKey = Key16::OfName("waybill-state---");
inline constexpr Key16 kTrustKey = Key16::OfName("waybill-trust---");

// What a schema version says of its values: the newest version of each kind of record. Each older
// one is read as well, since every version keeps the fields of the one before in their places.
struct Schema {
  std::uint16_t header;  // of the three records of the main table: that of the schema itself
  std::array<std::uint16_t, kTableCount> records;  // 0: there is no such table

  constexpr bool has(Table table) const { return records[Index(table)] != 0; }
  constexpr std::uint16_t version(Table table) const { return records[Index(table)]; }
};
inline constexpr std::array<Schema, kNewestSchema> kSchemas = {{
    {1, {1, 1, 1, 1, 1, 0, 0, 0, 0}},
    {2, {2, 2, 1, 1, 1, 2, 0, 0, 0}},
    {3, {2, 2, 1, 1, 1, 2, 3, 3, 3}},
}};
// `version` is one of kOldestSchema to kNewestSchema.
constexpr const Schema& SchemaOf(std::uint32_t version) { return kSchemas[version - 1]; }
inline constexpr const Schema& kNewest = kSchemas.back();

constexpr bool TablesMatchSchemas() {
  for (std::uint32_t version = kOldestSchema; version <= kNewestSchema; ++version) {
    if (SchemaOf(version).header != version) return false;
    for (const Table table : kAllTables) {
      if (SchemaOf(version).has(table) != (InfoOf(table).since <= version)) return false;
    }
  }
  return true;
}
static_assert(TablesMatchSchemas());

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_TABLES_H_
