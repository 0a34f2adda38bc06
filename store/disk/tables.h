// The store's tables, each described in one place, and the keys of its main table.

#ifndef WAYBILL_STORE_DISK_TABLES_H_
#define WAYBILL_STORE_DISK_TABLES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "store/disk/envelope.h"
#include "store/disk/key.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

enum class Table : std::uint8_t {
  kImages,
  kIntents,
  kQuarantine,
  kPreloaded,
  kKubeletFiles,
  kHostIds,
  kRevocations,
  kStreamingTokens,
  kRuntimeHandlers,
};

using Payload = std::span<const std::uint8_t>;

// What the disk asks of single values. The rooms of the tables answer.

// The key of a payload that comes from a sound envelope. nullopt: not a FlatBuffer of the table's
// record, incomplete, or above limits.h. A value under the key that it has may be read in place.
using KeyFunction = std::optional<Key16>(Payload payload, std::uint64_t seed);
KeyFunction KeyOfImage, KeyOfIntent, KeyOfQuarantine, KeyOfPreloaded, KeyOfKubeletFile,
    KeyOfRuntimeHandler, KeyOfHostIds, KeyOfRevocation, KeyOfStreamingToken;

// What of a table is kept when a database takes the place of another (opening/product.h).
enum class Kept : std::uint8_t {
  kNone,      // an older copy has values that were used since
  kOfSource,  // it opens nothing by itself
  kOfBoth,    // of the source and of what is replaced: it can only close
  kProven,    // it opens: what is proven, or what the newest store that is replaced says, too
  kOwnRules,  // images: what opens as kProven, what closes as kOfBoth; ranges of host IDs
};

// A new table needs a value of Table, an entry in kTables and a function for its keys.
struct TableSpec {
  Table table;
  const char* name;  // 16 bytes, or LMDB would misalign the main table; of open pulls for messages
  RecordKind kind;
  std::uint16_t since;  // the first schema version that has it
  // The schema version that its records have their form of. One of before it has records of its
  // own version, which are read too: each form keeps the fields of the one before in their places.
  std::uint16_t form;
  KeyFunction* key_of;
  Kept kept;
  std::uint64_t StoreCounts::*statistic;  // counts its values; may be null
};

// In the order of State.tables: those of a later version come last.
inline constexpr auto kTables = std::to_array<TableSpec>({
    {Table::kImages, "images---------1", RecordKind::kImage, 1, 2, KeyOfImage, Kept::kOwnRules,
     nullptr},
    {Table::kIntents, "pull-intents---1", RecordKind::kPullIntent, 1, 2, KeyOfIntent, Kept::kOfBoth,
     &StoreCounts::intents},
    {Table::kQuarantine, "quarantine-----1", RecordKind::kQuarantine, 1, 1, KeyOfQuarantine,
     Kept::kOfBoth, &StoreCounts::quarantine_entries},
    {Table::kPreloaded, "observed-preload", RecordKind::kPreloadedRecord, 1, 1, KeyOfPreloaded,
     Kept::kProven, &StoreCounts::preloaded_records},
    {Table::kKubeletFiles, "kubelet-files--1", RecordKind::kKubeletFile, 1, 1, KeyOfKubeletFile,
     Kept::kOfSource, &StoreCounts::kubelet_files},
    {Table::kHostIds, "host-ids-------1", RecordKind::kHostIds, 1, 1, KeyOfHostIds, Kept::kOwnRules,
     nullptr},
    {Table::kRevocations, "revocations----1", RecordKind::kRevocation, 1, 2, KeyOfRevocation,
     Kept::kOfBoth, &StoreCounts::revocations},
    {Table::kStreamingTokens, "streaming-tokens", RecordKind::kStreamingToken, 1, 1,
     KeyOfStreamingToken, Kept::kNone, nullptr},
    {Table::kRuntimeHandlers, "runtime-handlers", RecordKind::kRuntimeHandler, 2, 2,
     KeyOfRuntimeHandler, Kept::kOfSource, &StoreCounts::runtime_handlers},
});
inline constexpr std::size_t kTableCount = kTables.size();

constexpr std::size_t Index(Table table) { return static_cast<std::size_t>(table); }
constexpr const TableSpec& SpecOf(Table table) { return kTables[Index(table)]; }

constexpr bool SpecsAreInOrder() {
  for (std::size_t i = 0; i < kTableCount; ++i) {
    if (Index(kTables[i].table) != i || std::string_view(kTables[i].name).size() != 16 ||
        kTables[i].since < kTables[i == 0 ? 0 : i - 1].since || kTables[i].form > kNewestSchema) {
      return false;
    }
  }
  return true;
}
static_assert(SpecsAreInOrder());

// Open pulls have no table of LMDB's. They lie in the main table, behind the names, the newest
// first: whoever begins or ends a pull writes the page of the state, and mostly finds it there.
inline constexpr Table kInMain = Table::kIntents;
constexpr bool LiesInMain(Table table) { return table == kInMain; }
// Names are ASCII, so the highest bit tells pulls from them.
inline constexpr std::byte kPullBit{0x80};
constexpr Key16 FirstKeyOf(Table table) {
  Key16 first;
  if (LiesInMain(table)) first.bytes[0] = kPullBit;
  return first;
}
// The second half of a pull's key is a hash of its image string.
inline bool AreOfOneImage(const Key16& pull, const Key16& other) {
  constexpr std::size_t kHalf = sizeof(Key16) / 2;
  return std::equal(pull.bytes.begin() + kHalf, pull.bytes.end(), other.bytes.begin() + kHalf);
}

inline constexpr std::size_t kHeaderRecords = 3;
inline constexpr Key16 kIdentityKey = Key16::OfName("waybill-identity");
inline constexpr Key16 kStateKey = Key16::OfName("waybill-state---");
inline constexpr Key16 kTrustKey = Key16::OfName("waybill-trust---");

// A schema version.
struct Schema {
  std::uint16_t header;  // of the main table's records

  constexpr bool has(const TableSpec& spec) const { return header >= spec.since; }
  constexpr bool has(Table table) const { return has(SpecOf(table)); }
  // Of the records of a table that it has.
  constexpr std::uint16_t version(const TableSpec& spec) const {
    return std::min(header, spec.form);
  }
};
constexpr Schema SchemaOf(std::uint32_t version) { return {static_cast<std::uint16_t>(version)}; }

// The newest version that this process knows: kNewestSchema. Tests of what carries versions set a
// further one, before they open a store (tests/support/third_version.h).
inline constinit std::uint32_t newest_schema = kNewestSchema;
inline Schema Newest() { return SchemaOf(newest_schema); }

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_TABLES_H_
