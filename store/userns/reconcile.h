// At opening: the block table must say what the mappings say.

#ifndef WAYBILL_STORE_USERNS_RECONCILE_H_
#define WAYBILL_STORE_USERNS_RECONCILE_H_

#include "store/database/store_txn.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// Where the two tables disagree (after a rebuild from a damaged database, say), the block table is
// made anew from the mappings, in favour of never sharing:
//
//   a block of a mapping is missing         put in
//   a block of a pod without that mapping   the pod is held with that block
//   a block of another pod than the mapping's, or two mappings overlap     both pods are held
Result<void> ReconcileUserNamespaces(StoreTxn& txn, UserNamespaceReport& report);

// What a report says at the end: what there is, and what is off the pool.
Result<void> DescribeUserNamespaces(const StoreTxn& txn, const UserNamespaceOptions& options,
                                    UserNamespaceReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_USERNS_RECONCILE_H_
