// The identity and the state, two records of the main table (schema/v1/header.fbs). The third is in
// store/disk/trust.h.

#ifndef WAYBILL_STORE_DISK_HEADER_H_
#define WAYBILL_STORE_DISK_HEADER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "store/disk/clocks.h"
#include "store/disk/tables.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

// What a store is for. Fixed once it is known: a kubelet that takes a store of streaming requests
// for its own would find no record in it.
enum class Purpose : std::uint8_t {
  kUnknown = 0,  // the identity can't be read
  kNode = 1,
  kStreaming = 2,  // streaming requests, and nothing else
};

struct Identity {
  std::uint32_t schema_version = newest_schema;
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t hash_seed = 0;
  Timestamp created;
  std::string witness_path;
  std::string last_migration;
  Purpose purpose = Purpose::kUnknown;
  // The store is a copy that went on by itself and left its original's witness alone: the commit
  // that this told of then. If it tells of a later one, the original went on, too. 0: it is none.
  std::uint64_t left_witness_at = 0;
  std::string settings;  // what the owner decides by (waybill::Settings, as JSON)
};

// No owner's can be stricter.
inline constexpr const char* kStrictestSettings =
    R"({"policy":{"verification":"AlwaysVerify","registryOnly":["*"]}})";
std::uint64_t HashOfSettings(std::string_view settings);

struct TableDigest {
  std::uint64_t count = 0;
  std::uint64_t checksum_sum = 0;
  friend bool operator==(const TableDigest&, const TableDigest&) = default;

  void Add(std::uint64_t checksum) {
    ++count;
    checksum_sum += checksum;
  }
  void Remove(std::uint64_t checksum) {
    --count;
    checksum_sum -= checksum;
  }
};

struct State {
  std::uint64_t commit_sequence = 0;
  std::uint64_t lmdb_txn_id = 0;
  bool distrustful = false;
  std::uint64_t last_pull_id = 0;  // of the newest open pull
  // Commit of the newest token of a list that was observed; of one that changed nothing only if
  // something was committed since.
  std::uint64_t last_list = 0;
  std::uint64_t evidence_removed = 0;  // schema/v1/header.fbs
  bool awaits_first_list = false;
  bool kubelet_rules = false;
  std::uint64_t last_truth = 0;       // commit of the newest token of a truth; 0: there was none
  std::uint64_t unfinished = 0;       // revocations whose credentials are still in records
  std::uint64_t aliases_changed = 0;  // the last commit that changed an alias of an image
  std::uint64_t settings_hash = 0;    // of Identity::settings
  std::chrono::seconds max_age{0};    // NodeStoreOptions
  Clocks clocks;
  TableDigest header;
  std::array<TableDigest, kTableCount> tables{};

  const TableDigest& digest(Table table) const { return tables[Index(table)]; }
  TableDigest& digest(Table table) { return tables[Index(table)]; }
};

// The first half of the UUID.
inline std::uint64_t StoreId(const Identity& identity) {
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < sizeof(id); ++i) id = id << 8 | identity.uuid[i];
  return id;
}

// Payload bytes, to be sealed under the record's fixed key.
std::vector<std::uint8_t> EncodeIdentity(const Identity& identity);
// With the digests of the tables that the schema has.
std::vector<std::uint8_t> EncodeState(const State& state, const Schema& schema);

// nullopt: not a FlatBuffer of that table, or a field is missing.
std::optional<Identity> DecodeIdentity(std::span<const std::uint8_t> payload);
std::optional<State> DecodeState(std::span<const std::uint8_t> payload);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_HEADER_H_
