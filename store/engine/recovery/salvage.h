// Reads the values that verify out of a database file of any schema version, and writes them into
// another one.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_SALVAGE_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_SALVAGE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "store/base/files.h"
#include "store/engine/database/header.h"
#include "store/engine/database/store_txn.h"
#include "store/engine/trust/trust_journal.h"
#include "store/node/records/counters_record.h"
#include "waybill/evidence.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

struct Salvaged {
  std::optional<Identity> identity;
  Journal journal;
  std::optional<KeptCounters> counters;
  // Payloads of the values that verify, by table, in key order.
  std::array<std::vector<std::vector<std::uint8_t>>, kTableCount> payloads;
  // Of the values that verify; of the damaged ones by the checksum that they carry; and of the
  // damaged ones by the checksum that they should carry.
  std::array<TableDigest, kTableCount> sound;
  std::array<TableDigest, kTableCount> damaged_stored;
  std::array<TableDigest, kTableCount> damaged_computed;

  // The values of a table, without those that `decode` refuses.
  template <typename T>
  std::vector<T> All(Table table, std::optional<T> (*decode)(Payload)) const {
    std::vector<T> all;
    for (const auto& payload : payloads[Index(table)]) {
      if (auto value = decode(payload)) all.push_back(*std::move(value));
    }
    return all;
  }
  // Whether the digest proves the verified values current and, with the damaged ones, complete.
  bool Proves(Table table, const State& state) const;
};

// Reads the tree of meta page `which`. The only error is kIo; damaged values are left out.
Result<Salvaged> Salvage(const Fd& file, int which, OnReadError on_error = OnReadError::kFail);

struct Carried {
  std::uint64_t records = 0;
  // Of those, the ones that had credentials, or may have had some.
  std::uint64_t records_without_credentials = 0;
  std::uint64_t intents = 0;
};
// What of a database may open images.
struct CarryRules {
  // False: the record loses them. May give them other proofs.
  std::function<bool(ImagePulledRecord&)> keeps_credentials;
  std::function<bool(const LedgerEntry&)> keeps_entry;
  bool preloaded = false;  // records of observed-preloaded/
  bool spellings = false;
  BootTime now;  // when intents of older schema versions end
};
// Carries over values that only close (revocations, intents, quarantine entries, imported files,
// runtime handlers), records, and of the rest what the rules allow.
Result<Carried> CarryOver(StoreTxn& txn, const Salvaged& salvaged, const CarryRules& rules);

// What was forgotten. Before records are stored, which are then stored without it.
Result<void> CarryRevocations(StoreTxn& txn, const Salvaged& salvaged);

// The counters of `newer`, or if it has none, of `older` (may be null).
Result<void> CarryCounters(StoreTxn& txn, const Salvaged& newer, const Salvaged* older = nullptr);

// Host ID ranges, unchanged: opening reconciles them. Existing keys keep their values.
Result<void> CarryIdRanges(StoreTxn& txn, const Salvaged& salvaged);
// Whether they include every range of `state`, for any pod.
bool HasAllIdRanges(const Salvaged& salvaged, const State& state);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_SALVAGE_H_
