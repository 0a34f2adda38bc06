// Which pods keep which host IDs when a backup replaces a store.

#ifndef WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_
#define WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_

#include <cstdint>
#include <string_view>

#include "store/engine/database/store_txn.h"
#include "store/engine/recovery/salvage.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// What the rows of a replaced store say.
enum class ReplacedRanges : std::uint8_t {
  kWhole,       // it is sound, and no range was handed out since
  kNewer,       // they are newer than the backup's
  kMayBeOlder,  // its sequence is below the backup's: it was put back itself
};

// Pods live with the ranges that the replaced store gave them, so those of `replaced` are carried
// over first. If it is whole, and has neither lost ranges itself nor a kubelet's to take over, what
// only the backup has was released after it, and is dropped. Otherwise, of the backup's pods
//
//   that `replaced` does not know   the row is kept; if another pod has or may have some of the
//                                   range, the pod is held with it
//   that are held                   are held with the backup's range, too
//   that have another range         that stays: it is newer
//
// and ranges stay lost, or the kubelet's to be taken over. If `replaced` may be older, pods of
// ranges that contradict each other are held with all of them. Fills the ID mapping fields of
// `report`.
Result<void> RestoreHostIds(StoreTxn& txn, const Salvaged& replaced, ReplacedRanges known,
                            const Salvaged& backup, std::string_view reason, RestoreReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_UPKEEP_RESTORE_RANGES_H_
