// Which pods keep which host IDs when a database takes the place of another.

#ifndef WAYBILL_STORE_OPENING_RESTORE_RANGES_H_
#define WAYBILL_STORE_OPENING_RESTORE_RANGES_H_

#include "store/disk/store_txn.h"
#include "store/opening/product.h"
#include "waybill/result.h"

namespace waybill::internal {

// A rebuild keeps the rows that it can read. In a restore pods live with the ranges that the
// replaced store gave them, so its rows are carried over first. If it is whole, and has neither
// lost ranges itself nor a kubelet's to take over, what only the backup has was released after it,
// and is dropped. Otherwise, of the backup's pods
//
//   that the replaced store does not know   the row is kept; if another pod has or may have some
//                                           of the range, the pod is held with it
//   that are held                           are held with the backup's range, too
//   that have another range                 that stays: it is newer
//
// and ranges stay lost, or the kubelet's to be taken over. If the replaced store may be older, pods
// of ranges that contradict each other are held with all of them. Fills the ID mapping fields of
// `carried`.
Result<void> CarryHostIds(StoreTxn& txn, const Replacing& from, Carried& carried);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_RESTORE_RANGES_H_
