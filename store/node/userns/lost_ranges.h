// Unknown ranges of host IDs: lost, or not yet imported from a kubelet. They are stored as a held
// pod without a UID.

#ifndef WAYBILL_STORE_NODE_USERNS_LOST_RANGES_H_
#define WAYBILL_STORE_NODE_USERNS_LOST_RANGES_H_

#include <string_view>

#include "store/node/records/userns_tables.h"
#include "waybill/result.h"

namespace waybill::internal {

// Ranges of unknown pods may have been lost: no new range is handed out until an operator allows
// it.
Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason);

// The same until the ID mappings of a kubelet's pods are imported. Changes nothing if ranges were
// lost otherwise.
Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why);
// Whether `held` is that entry: all ranges are in the kubelet's files, and the store has handed out
// none.
bool IsUntilImport(const QuarantinedPod& held);
// The ID mappings were imported.
Result<void> ReleaseAfterImport(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_USERNS_LOST_RANGES_H_
