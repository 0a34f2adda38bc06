// Reads the values that verify out of a database file of any schema version.

#ifndef WAYBILL_STORE_OPENING_SALVAGE_H_
#define WAYBILL_STORE_OPENING_SALVAGE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/base/files.h"
#include "store/disk/header.h"
#include "store/disk/trust_journal.h"
#include "waybill/result.h"

namespace waybill::internal {

struct Salvaged {
  std::optional<Identity> identity;
  std::optional<State> state;  // as an inspection of that tree read it
  Journal journal;
  // Payloads of the values that verify, by table, in key order.
  std::array<std::vector<std::vector<std::uint8_t>>, kTableCount> payloads;
  // Of the values that verify; of the damaged ones by the checksum that they carry; and of the
  // damaged ones by the checksum that they should carry.
  std::array<TableDigest, kTableCount> sound;
  std::array<TableDigest, kTableCount> damaged_stored;
  std::array<TableDigest, kTableCount> damaged_computed;

  const std::vector<std::vector<std::uint8_t>>& of(Table table) const {
    return payloads[Index(table)];
  }
  // The values of a table, without those that `decode` refuses.
  template <typename T>
  std::vector<T> All(Table table, std::optional<T> (*decode)(Payload)) const {
    std::vector<T> all;
    for (const auto& payload : of(table)) {
      if (auto value = decode(payload)) all.push_back(*std::move(value));
    }
    return all;
  }
  Purpose purpose() const { return identity ? identity->purpose : Purpose::kUnknown; }
  std::uint64_t sequence() const { return state ? state->commit_sequence : 0; }
  // Whether the verified values are all of the table.
  bool Has(Table table) const { return state && sound[Index(table)] == state->digest(table); }
  // Whether the digest proves the verified values current and, with the damaged ones, complete.
  bool Proves(Table table) const;
};

// Reads the tree of meta page `which`, which has that state; −1: there is none to read. The only
// error is kIo; damaged values are left out.
Result<Salvaged> Salvage(const Fd& file, int which, const std::optional<State>& state,
                         OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_SALVAGE_H_
