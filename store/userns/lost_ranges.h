// Ranges of host IDs that nobody can name: lost, or not taken over from a kubelet yet. A held pod
// without a UID.

#ifndef WAYBILL_STORE_USERNS_LOST_RANGES_H_
#define WAYBILL_STORE_USERNS_LOST_RANGES_H_

#include <string_view>

#include "store/database/userns_tables.h"
#include "waybill/result.h"

namespace waybill::internal {

// Ranges of pods that nobody can name may have been lost: until an operator says otherwise nothing
// new is handed out.
Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason);

// The same, until the ID mappings of a kubelet's pods are taken over. Nothing where ranges were
// lost otherwise.
Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why);
// The same for a store of a version that kept no ranges, beside a kubelet.
Result<void> HoldRangesOfKubelet(StoreTxn& txn);
// Whether that is all: what there is lies in the kubelet's files, and nothing was handed out here.
bool IsUntilImport(const HeldPod& held);
// They are taken over.
Result<void> ReleaseAfterImport(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_USERNS_LOST_RANGES_H_
