// The tables of a store and the records of its main table.

#ifndef WAYBILL_STORE_RECORD_TABLES_H_
#define WAYBILL_STORE_RECORD_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/record/envelope.h"
#include "store/record/key.h"

namespace waybill::internal {

// The schema version that this build writes.
inline constexpr std::uint32_t kSchemaVersion = 1;

enum class Table : std::uint8_t { kPulled, kIntents, kQuarantine, kPreloaded, kImported };
inline constexpr std::size_t kTableCount = 5;
inline constexpr std::array<Table, kTableCount> kAllTables = {
    Table::kPulled, Table::kIntents, Table::kQuarantine, Table::kPreloaded, Table::kImported};

struct TableInfo {
  const char* name;  // exactly 16 bytes: LMDB would misalign the main table otherwise
  RecordKind kind;
  std::uint16_t newest_version;
};

inline constexpr std::array<TableInfo, kTableCount> kTables = {{
    {"pulled-records-1", RecordKind::kPulledRecord, 1},
    {"pull-intents---1", RecordKind::kPullIntent, 1},
    {"quarantine-----1", RecordKind::kQuarantine, 1},
    {"observed-preload", RecordKind::kPreloadedRecord, 1},
    {"imported-files-1", RecordKind::kImportedFile, 1},
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
inline constexpr std::uint16_t kHeaderVersion = 1;

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECORD_TABLES_H_
