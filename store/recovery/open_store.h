// Opening, as far as the database: lock, walk, LMDB, header, witness. What comes after (import,
// replay) needs the opened store.

#ifndef WAYBILL_STORE_RECOVERY_OPEN_STORE_H_
#define WAYBILL_STORE_RECOVERY_OPEN_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "store/base/files.h"
#include "store/database/header.h"
#include "store/database/store_txn.h"
#include "store/lmdb/env.h"
#include "store/recovery/inspect.h"
#include "store/recovery/owner_lock.h"
#include "store/recovery/store_files.h"
#include "store/recovery/witness.h"
#include "waybill/node_store.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// What both kinds of opening end with.
struct OpenedDatabase {
  std::unique_ptr<lmdb::Env> env;
  TableHandles handles;
  Identity identity;
  FileId database_id;  // of data.mdb
  // Compared with what is under their names before anything is read from them.
  std::unique_ptr<StoreFiles> files;
};

// The members go in reverse order: the environment closes before the lock is let go.
struct OwnedStore {
  OwnerLock lock;
  OpenedDatabase database;
  State state;
  std::optional<WitnessFile> witness;
  std::string witness_path_before;  // that the store remembered; empty: none, or it was just made
};

enum class OnDamage : std::uint8_t {
  kRecover,
  kRefuse,    // kDamaged: it fails its check, or may be stale as its witness has it
  kOnlyLook,  // the same, and the witness is neither asked nor changed
};

// Errors: NodeStore::Open; otherwise than with kRecover also kDamaged. A store of an older schema
// stays as it is: it is for the caller to migrate it.
Result<OwnedStore> OpenAsOwner(const OpenOptions& options, OnDamage on_damage,
                               RecoveryReport& report);

// What an observer found in a file for which no owner vouched, so that a store that stays closed is
// not walked at every decision.
struct SeenUnowned {
  FileId id;
  std::int64_t bytes = 0;
  std::int64_t written = 0;  // nanoseconds
  std::optional<Inspection> inspection;
};

// Errors: NodeStore::Observe. `seen` is not null: what was found is kept there, and where it keeps
// the store closed it is believed until the file's inode, size or time changes.
Result<OpenedDatabase> OpenAsObserver(const std::filesystem::path& directory,
                                      SeenUnowned* seen = nullptr);

// kOwned where the store is not this owner's any more, since a file of it was removed, replaced or
// truncated; kIo where that can't be found out. The message says what became of which file, and
// lacks what that means for the caller.
Result<void> CheckStillOwned(const OpenedDatabase& database);

// What the disk refuses to read, as the caller wants it.
inline OnReadError OnReadErrorIn(const OpenOptions& options) {
  return options.skip_unreadable ? OnReadError::kSkip : OnReadError::kFail;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_OPEN_STORE_H_
