// At opening: the block table must agree with the mappings.

#ifndef WAYBILL_STORE_NODE_USERNS_RECONCILE_H_
#define WAYBILL_STORE_NODE_USERNS_RECONCILE_H_

#include "store/engine/database/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// If the two tables disagree (for example after a rebuild from a damaged database), the block table
// is rebuilt from the mappings. No block may ever be shared:
//
//   a block of a mapping is missing         put in
//   a block of a pod without that mapping   the pod is held with that block
//   a block of another pod than the mapping's, or two mappings overlap     both pods are held
Result<void> ReconcileUserNamespaces(StoreTxn& txn, IdMappingReport& report);

// The last part of a report: the mappings, and those outside the pool.
Result<void> DescribeUserNamespaces(const StoreTxn& txn, const UserNamespaceOptions& options,
                                    IdMappingReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_USERNS_RECONCILE_H_
