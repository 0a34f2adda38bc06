// Replaces the store with a backup.

#ifndef WAYBILL_STORE_RECOVERY_RESTORE_H_
#define WAYBILL_STORE_RECOVERY_RESTORE_H_

#include "waybill/maintenance.h"
#include "waybill/result.h"

namespace waybill::internal {

// Restore of maintenance.h. Makes a fresh database from the backup's content and renames it into
// place, since the transaction IDs of a compact copy contradict its header.
Result<RestoreReport> RestoreBackup(const RestoreOptions& options);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_RESTORE_H_
