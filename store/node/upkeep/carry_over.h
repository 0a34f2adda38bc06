// Writes what was salvaged of a node's database into another one.

#ifndef WAYBILL_STORE_NODE_UPKEEP_CARRY_OVER_H_
#define WAYBILL_STORE_NODE_UPKEEP_CARRY_OVER_H_

#include <cstdint>
#include <functional>

#include "store/engine/database/store_txn.h"
#include "store/engine/recovery/salvage.h"
#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct Carried {
  std::uint64_t records = 0;
  // Of those, the ones that had credentials, or may have had some.
  std::uint64_t records_without_credentials = 0;
  std::uint64_t intents = 0;
};
// What of a database may open images.
struct CarryRules {
  // False: the record loses what its pulls proved. May give it other proofs.
  std::function<bool(ImageRow&)> keeps_credentials;
  std::function<bool(const ImageRow&)> keeps_preloaded;
  // Takes away whose digests are whose, where nothing proves that.
  std::function<void(ImageRow&)> leave_known;
  bool observed_preloaded = false;  // records of observed-preloaded/
};
// Carries over values that only close (revocations, intents, quarantine entries, imported files,
// runtime handlers), records, and of the rest what the rules allow.
Result<Carried> CarryOver(Images& images, const Salvaged& salvaged, const CarryRules& rules);

// What was forgotten. Before records are stored, which are then stored without it.
Result<void> CarryRevocations(StoreTxn& txn, const Salvaged& salvaged);

// Host IDs, unchanged: opening finds rows that overlap. Existing keys keep their values.
Result<void> CarryHostIds(StoreTxn& txn, const Salvaged& salvaged);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_UPKEEP_CARRY_OVER_H_
