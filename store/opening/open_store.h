// Opening up to the database: lock, walk, LMDB, header, witness. The later steps (import, replay)
// need the opened store. open_store.cc takes an owner's steps, open_observer.cc an observer's;
// open_database.cc opens LMDB.

#ifndef WAYBILL_STORE_OPENING_OPEN_STORE_H_
#define WAYBILL_STORE_OPENING_OPEN_STORE_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/disk/committer.h"
#include "store/disk/header.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/store_txn.h"
#include "store/opening/inspect.h"
#include "store/opening/owner_lock.h"
#include "store/opening/product.h"
#include "store/opening/store_files.h"
#include "store/opening/witness.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The result of both kinds of opening.
struct OpenedDatabase {
  // Whether the open files are those under the store's names, and, without a slot, no commit ended
  // since they were opened.
  bool IsCurrent() const;
  // kOwned: without a slot, a writer that no lock shows has committed since: what was read may be
  // of two commits.
  Result<void> CheckUnchanged() const;

  // An observer's without a slot in lock.mdb: data.mdb, which keeps owners out. Outlives `env`.
  Fd without_slot;
  std::unique_ptr<lmdb::Env> env;
  TableHandles handles;
  Identity identity;
  std::uint64_t txn_id = 0;  // of the commit that LMDB saw when it opened
  FileId database_id;        // of data.mdb
  // Compared with the files under their names before anything is read from them.
  std::unique_ptr<StoreFiles> files;
};

// Members are destroyed in reverse order: the environment closes before the lock is released.
struct OwnedStore {
  OwnerLock lock;
  OpenedDatabase database;
  State state;
  std::optional<WitnessFile> witness;
  MarkLine line;                    // the store, and the directory that its lines name
  bool had_mark = false;            // a valid commit.mark of this store
  std::string witness_path_before;  // as the store remembered it; empty: no path, or a new store
};

enum class OnDamage : std::uint8_t {
  kRecover,
  kRefuse,    // kDamaged: the store fails its check, or its witness or mark says that it is stale
  kOnlyLook,  // kDamaged: the store fails its check. The witness is neither read nor changed
};

// Errors: NodeStore::Open; without kRecover also kDamaged; kInvalidArgument: the store is of none
// of `products`. A store of an older schema is not changed: the caller migrates it.
Result<OwnedStore> OpenAsOwner(const NodeStoreOptions& options, OnDamage on_damage,
                               const Products& products, OpeningReport& report);
// One commit before the store has its Committer.
Result<void> CommitAtOpening(const NodeStoreOptions& options, OwnedStore& store,
                             Committer::Change change);
// As in ObserveOptions.
struct ObserverDemands {
  bool asks_witness = true;
  bool needs_slot = true;
};

// Errors: NodeStore::Observe; kInvalidArgument as above. A finding that keeps the store closed is
// stored in `seen`, and holds until the file changes, so that no decision walks a bad store again.
// Where a writer moves the store meanwhile it looks again, up to a second.
Result<OpenedDatabase> OpenAsObserver(const std::filesystem::path& directory,
                                      const Product& product, const ObserverDemands& how,
                                      std::optional<Inspection>& seen);

// Opens LMDB on a file that passed the walk, and makes sure that LMDB sees what the walk saw.
// `txn_id` is the newer meta page's, as the walk saw it. A lock.mdb of another data.mdb makes LMDB
// pick the older page; it is then removed once and the file opened again.
Result<OpenedDatabase> OpenDatabaseAsOwner(const std::filesystem::path& directory,
                                           std::uint64_t map_bytes, std::uint64_t txn_id,
                                           const OwnerLock& lock);
// The same, but removes nothing. `txn_id` 0: a live owner has checked the file. Without
// `takes_slot` the caller keeps owners out.
Result<OpenedDatabase> OpenDatabaseAsObserver(const std::filesystem::path& directory,
                                              std::uint64_t txn_id, bool takes_slot);

Error NoStore(const std::filesystem::path& directory);
Error Unsound(const std::filesystem::path& directory, const Inspection& inspection);
Error MayBeStale(const std::string& contradiction);
Error Moving(const std::filesystem::path& directory);
Error NewerSchema(const std::filesystem::path& directory);
Error OlderSchema(const std::filesystem::path& directory, std::uint32_t version);

// Whose store it is, of `products`; kInvalidArgument: of another.
Result<const Product*> OwnProduct(const std::filesystem::path& directory, const Identity& identity,
                                  const Products& products);

// kOwned: a file of the store was removed, replaced or truncated, so the store is no longer this
// owner's. kIo: that can't be checked. The message names the file and the change; the caller adds
// the consequence.
Result<void> CheckStillOwned(const OpenedDatabase& database,
                             Committer::When when = Committer::When::kBefore);

// How to treat read errors of the disk, by the caller's options.
inline OnReadError OnReadErrorIn(const NodeStoreOptions& options) {
  return options.skip_unreadable ? OnReadError::kSkip : OnReadError::kFail;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_OPEN_STORE_H_
