// Which pods keep which ID ranges when a backup replaces a store.

#ifndef WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_
#define WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_

#include <cstdint>
#include <string_view>

#include "store/engine/database/store_txn.h"
#include "store/engine/recovery/salvage.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// What the mappings of a replaced store say.
enum class ReplacedRanges : std::uint8_t {
  kWhole,       // it is sound, and no range was handed out since
  kNewer,       // they are newer than the backup's
  kMayBeOlder,  // its sequence is below the backup's: it was put back itself
};

// Pods live with the ranges that the replaced store gave them, so those of `replaced` are carried
// over first. If it is whole, and has neither lost ranges itself nor a kubelet's to take over,
// mappings that only the backup has were released after it, and are dropped. Otherwise, a mapping
// of the backup
//
//   whose pod has no mapping       is kept
//   whose pod has another mapping  is dropped: the other one is newer
//   whose pod is held, or whose    makes the pod held with that range, too
//     range may be another pod's
//
// and ranges stay lost, or the kubelet's to be taken over. If `replaced` may be older, two mappings
// that contradict each other are both unverified: their pods are held. Fills the ID mapping fields
// of `report`.
Result<void> RestoreIdRanges(StoreTxn& txn, const Salvaged& replaced, ReplacedRanges known,
                             const Salvaged& backup, std::string_view reason,
                             RestoreReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_
