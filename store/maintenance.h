// What is done to a whole store that is not in use.

#ifndef WAYBILL_STORE_MAINTENANCE_H_
#define WAYBILL_STORE_MAINTENANCE_H_

#include <filesystem>
#include <vector>

#include "store/base/options.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// Makes and verifies a backup, then takes a store to another schema version, one transaction for
// each step. NodeStore::Open does the same up to the newest version unless told not to. Idempotent:
// after a crash the store has the version before or after a step, and the same call continues from
// there. Uses the witness that the store remembers.
// kInvalidArgument: a version below kOldestSchema or above kNewestSchema. kConflict: going down
// would lose something and accept_loss is false; the message says what. kDiskFull: no room for the
// backup or for a step. kOwned: the store is in use. kNotFound: no store. kDamaged: the store fails
// its check, or its witness is missing or contradicts it; NodeStore::Open recovers it.
// kInterrupted: `progress` returned false. kNewerSchema, kUnsafePath, kIo, kStoreFull as for Open.
// After each of these the store is intact and has the version of the last completed step.
// kOutcomeUnknown: the disk failed during a commit; NodeStore::Open finds out.
Result<MigrationReport> MigrateStore(const MigrateOptions& options);

// The backups in `directory`, newest first, by name; their content is not read. kUnsafePath, kIo.
// kNotFound: no such directory.
Result<std::vector<Backup>> BackupsOf(const std::filesystem::path& directory);

// Replaces the store with a backup. The replaced store is kept under quarantine/ (kMaxKeptAside).
// The new store is of the newest schema version, whatever the backup is of, and distrustful, since
// images pulled after the backup have no record in it. Images that the replaced store had closed,
// by its quarantine, its intents or an operator's word, stay closed, and so do those of which only
// that store has a record, as far as it can be read, whether they are on the node or gone. Pods
// keep the ID ranges that the replaced store gave them. If that store is unreadable or had lost
// ranges itself, the backup's ranges are kept or held as well, and ranges count as lost
// (QuarantinedPod). Credentials that the replaced store had forgotten stay forgotten. Credentials
// that both stores have keep the replaced store's proofs (Proof). If the replaced store is older
// than the backup, pods whose ranges differ between the two are held. Streaming tokens are not put
// back: they may have opened their streams since. kDamaged: the backup fails its check, for
// instance because data.mdb was copied during a write. kConflict: the backup belongs to another
// store (by UUID, against the store or its witness), or one of the two is a streaming store and the
// other a node's. kInvalidArgument: the backup is the store itself. kOwned: a process owns the
// store, or the store whose data.mdb the backup is. kNewerSchema, kNotFound, kUnsafePath,
// kDiskFull, kIo. After each of these the store is unchanged; if the final sync of the directory
// fails, or after a crash, it is the old or the new one, intact.
Result<RestoreReport> RestoreStore(const RestoreOptions& options);

}  // namespace waybill

#endif  // WAYBILL_STORE_MAINTENANCE_H_
