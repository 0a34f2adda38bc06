// Whether a store may presume that an image without a record was preloaded, and the journal of why
// not.

#ifndef WAYBILL_STORE_DISK_TRUST_H_
#define WAYBILL_STORE_DISK_TRUST_H_

#include <string_view>
#include <vector>

#include "store/disk/store_txn.h"
#include "store/disk/trust_journal.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Notes a reason for distrust. Writes nothing if the same one is in force.
Result<void> SetDistrust(StoreTxn& txn, const Distrust& why);
// At an operator's word: ends every reason.
Result<void> SetTrust(StoreTxn& txn, std::string_view reason);
// An operator's word on a single image or pull. Changes no reason.
Result<void> NoteInJournal(StoreTxn& txn, std::string_view reason);
// Takes one reason back, even if later ones exist; the store stays distrustful for the others.
// Writes nothing if it is not in force.
Result<void> TakeBackDistrust(StoreTxn& txn, const Distrust& why);
// Whoever noted the reason has nothing to tell of: its entry goes. False: it is not the last one.
Result<bool> DropLastDistrust(StoreTxn& txn, const Distrust& why);
// The reasons in force, the last one first. Empty: the store is trustful, or its journal can't be
// read.
Result<std::vector<Distrust>> ReasonsOfDistrust(const StoreTxn& txn);

// Whether the reason does not mean that something newer was lost: it is about images alone.
bool LosesNothing(const Distrust& why);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_TRUST_H_
