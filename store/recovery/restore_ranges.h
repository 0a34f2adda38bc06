// Which pods keep which ID ranges when a backup takes the place of a store.

#ifndef WAYBILL_STORE_RECOVERY_RESTORE_RANGES_H_
#define WAYBILL_STORE_RECOVERY_RESTORE_RANGES_H_

#include <string_view>

#include "store/database/store_txn.h"
#include "store/recovery/salvage.h"
#include "waybill/maintenance.h"
#include "waybill/result.h"

namespace waybill::internal {

// Pods live with the ranges that the replaced store gave them, not with those of the backup's day:
// what `replaced` has is carried over first. `is_whole`: it is sound, and none was handed out
// since. If so, and unless it holds ranges as lost itself, what only the backup has was released in
// between, and is dropped. Otherwise a mapping of the backup
//
//   of a pod that has none         is kept
//   of a pod that has another      is dropped: that one is newer
//   of a pod that is held, or of   the pod is held with it, too
//     which another pod has or may
//     have some
//
// and ranges stay lost. Fills the ID mapping fields of `report`.
Result<void> RestoreIdRanges(StoreTxn& txn, const Salvaged& replaced, bool is_whole,
                             const Salvaged& backup, std::string_view reason,
                             RestoreReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_RESTORE_RANGES_H_
