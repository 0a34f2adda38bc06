// Sets a failed database aside and replaces it with a new one that has its sound parts.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_

#include "store/base/files.h"
#include "store/engine/recovery/inspect.h"
#include "store/engine/recovery/witness_settling.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// `file` is data.mdb in options.directory, and failed `inspection`. The failed file stays unchanged
// under quarantine/, at report.set_aside_path. The new store is distrustful. Carried over:
//
//   records             if provably nothing is missing or stale (the tree is the newest, no witness
//                       contradicts, and the table's digest matches) with their credentials;
//                       otherwise without, so that they must be verified again
//   preloaded records   only if proven in the same way
//   intents, quarantine entries, imported files, runtime handlers
//                       all that verify: each can only close
//
// Of streaming tokens nothing: all are void. kDamaged: nothing in it says that it is for `purpose`,
// or it says otherwise, and nothing was changed.
// Crash-safe at any point: until the rename the old file is in place, and the next opening starts
// over.
Result<void> Rebuild(const OpenOptions& options, const Fd& file, const Inspection& inspection,
                     const Hearing& hearing, Purpose purpose, RecoveryReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_
