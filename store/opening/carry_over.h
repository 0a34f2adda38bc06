// What a node's store keeps when a database takes the place of another, in a rebuild and a restore:
//
//   images       a record; what opens of it only where its table is proven (the tree is the newest,
//                no witness contradicts, and the digest matches), or the newest store that is
//                replaced says the very same. Each record of the replaced store closes, and so does
//                an operator's word there
//   host IDs     restore_ranges.h
//   the others   a column of kTables (disk/tables.h)

#ifndef WAYBILL_STORE_OPENING_CARRY_OVER_H_
#define WAYBILL_STORE_OPENING_CARRY_OVER_H_

#include "store/disk/store_txn.h"
#include "store/opening/product.h"
#include "waybill/result.h"

namespace waybill::internal {

Result<Carried> CarryOver(StoreTxn& txn, const Replacing& from);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_CARRY_OVER_H_
