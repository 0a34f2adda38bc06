// Puts a backup in the place of the store.

#ifndef WAYBILL_STORE_RECOVERY_RESTORE_H_
#define WAYBILL_STORE_RECOVERY_RESTORE_H_

#include "waybill/maintenance.h"
#include "waybill/result.h"

namespace waybill::internal {

// Restore of maintenance.h. A fresh database is made from what the backup holds and renamed into
// place: a compact copy has transaction IDs that its header does not tell.
Result<RestoreReport> RestoreBackup(const RestoreOptions& options);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_RESTORE_H_
