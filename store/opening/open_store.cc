#include "store/opening/open_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <string>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/disk/commit_mark.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/lmdb/room_ahead.h"
#include "store/disk/lmdb/version.h"
#include "store/disk/trust.h"
#include "store/opening/backup.h"
#include "store/opening/inspect.h"
#include "store/opening/new_database.h"
#include "store/opening/product.h"
#include "store/opening/rebuild_and_restore.h"
#include "store/opening/stale.h"
#include "store/opening/unfinished_commit.h"

namespace waybill::internal {

namespace {

// Whether the file fails its check again in the same way. A file that is being written to only
// looks damaged.
Result<bool> FailsAgain(const Fd& file, const Inspection& first, OnReadError on_error) {
  if (first.moved) return false;
  auto second = TRY(InspectFile(file, FileIs::kStore, on_error));
  return !second.sound && !second.moved && second.txn_id == first.txn_id &&
         second.findings == first.findings;
}

Result<void> PrepareDirectory(const NodeStoreOptions& options, const Product& product) {
  if (options.directory.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the store's directory is not named"};
  }
  if (auto r = CheckMapBytes(options.map_bytes); !r) return r;
  auto store_is_there = TRY(Exists(options.directory / "data.mdb"));
  bool was_store = false;
  if (!store_is_there) {
    auto signs = TRY(ReadSigns(options, {}, {}, {}));
    // A store that was lost had the directory, unless the witness is another directory's.
    was_store =
        signs.witness && OriginalOf(*signs.witness, signs.witness->uuid, options.directory).empty();
  }
  if (!TRY(Exists(options.directory))) {
    if (!options.create_if_missing) return NoStore(options.directory);
    if (auto r = MakePrivateDirectory(options.directory); !r) return r;
  }
  if (auto r = CheckPrivateDirectory(options.directory); !r) return r;
  // Before a lock file is made, so that a directory without a store stays unchanged.
  if (store_is_there) return {};
  if (!options.create_if_missing) return NoStore(options.directory);
  TRY(product.CheckPlace(options));
  const bool is_root = IsSameFile(options.directory, "/");
  return was_store && !is_root ? Result<void>() : CheckNewDirectory(options.directory);
}

// Creates a store. If other store files exist but data.mdb does not, the store was lost.
Result<void> Create(const NodeStoreOptions& options, const Signs& signs, bool owned_before,
                    const Product& product, OpeningReport& report) {
  const std::filesystem::path& directory = options.directory;
  if (!options.create_if_missing) return NoStore(directory);
  NewDatabase made;
  const auto lost = TRY(FindLoss(directory, signs, owned_before));
  if (!product.outlives_loss()) {
    Signs inside;
    inside.inside = signs.inside;
    const auto trace = TRY(FindLoss(directory, inside, owned_before));
    if (!trace.empty()) return product.NotSaid(trace);
  }
  made.distrust = TRY(lost.empty() ? product.DistrustOfNew(options)
                                   : Result<Distrust>(Distrust{DegradedKind::kStoreLost, lost}));
  made.now = options.clock();
  made.boot = options.boot_clock();
  made.map_bytes = ChooseMapBytes(options.map_bytes, 0);
  made.fill = [&](StoreTxn& txn) { return product.FillNew(txn, options, lost); };
  auto identity = TRY(NewIdentity(made.now));
  made.identity = identity;
  made.identity.purpose = product.purpose();
  if (signs.witness) made.sequence = signs.witness->acknowledged;
  if (auto r = PrepareDatabase(directory, made); !r) return r;
  if (auto r = InstallDatabase(directory, made); !r) return r;
  report.created = true;
  return {};
}

// The file is looked at again after each step that changes it, until it is sound.
class Opening {
 public:
  Opening(const NodeStoreOptions& options, OnDamage on_damage, const Products& products,
          OwnerLock lock, OpeningReport& report)
      : options_(options),
        may_write_(on_damage != OnDamage::kOnlyLook),
        on_damage_(on_damage),
        products_(products),
        report_(report),
        lock_(std::move(lock)) {}

  Result<void> MakeIfMissing() {
    if (TRY(Exists(directory_ / "data.mdb"))) return {};
    auto mark = TRY(ReadCommitMark(directory_));
    signs_ = TRY(ReadSigns(options_, mark, {}, {}));
    return Create(options_, *signs_, lock_.owned_before(), *product_, report_);
  }

  Result<void> MakeSound() {
    mark_ = TRY(ReadCommitMark(directory_));
    while (true) {
      TRY(Inspect());
      if (TRY(TakeBackTornCommit())) continue;
      TRY(CheckWhatItIs());
      TRY(ReadSignsOnce());
      if (!inspection_.sound) {
        TRY(RebuildOnce());
        continue;
      }
      if (!may_write_ || flushed_ || !MayBeUnwritten(mark_, *inspection_.identity)) break;
      TRY(WriteAgain(directory_, lock_.database()));
      flushed_ = true;
    }
    report_.commit_undone = taken_back_ && !rebuilt_;
    if (on_damage_ == OnDamage::kRefuse && !signs_->stale().empty()) {
      return MayBeStale(signs_->stale());
    }
    return {};
  }

  Result<OwnedStore> OpenSound() {
    const Identity& identity = *inspection_.identity;
    const State& state = *inspection_.state;
    if (may_write_) TRY(Flush());
    // An earlier opening may have failed between a rename and its sync.
    TRY(SyncDirectory(directory_));
    const std::uint64_t map_bytes =
        ChooseMapBytes(options_.map_bytes, RememberedMapBytes(inspection_));
    if (on_damage_ == OnDamage::kRecover) {
      TRY(RememberMapBytes(lock_.database(), directory_ / "data.mdb", inspection_, map_bytes));
    }
    auto database = TRY(OpenDatabaseAsOwner(directory_, map_bytes, inspection_.txn_id, lock_));
    report_.readers_cleared = database.env->ClearDeadReaders();
    // LMDB sees the commit that the walk saw, so this is its state.
    OwnedStore store{.lock = std::move(lock_),
                     .database = std::move(database),
                     .state = state,
                     .witness = std::nullopt,
                     .line = MarkLine{},
                     .had_mark = mark_.line && mark_.line->uuid == identity.uuid,
                     .witness_path_before = report_.created ? "" : identity.witness_path};
    if (may_write_) {
      TRY(SettleSigns(options_, *signs_, mark_, *product_, store, report_));
    }
    return store;
  }

 private:
  Result<void> Inspect() {
    TRY(lock_.LockDatabase());
    inspection_ = TRY(InspectFile(lock_.database(), FileIs::kStore, OnReadErrorIn(options_)));
    return inspection_.moved ? Moving(directory_) : Result<void>();
  }

  // First of all: what a torn tree says, of its schema too, counts for nothing. Once only: a disk
  // may hold something else than what it took.
  Result<bool> TakeBackTornCommit() {
    if (inspection_.sound || !may_write_ || taken_back_) return false;
    const auto read_signs = [&](const Identity& identity, const State& state) {
      return ReadSigns(options_, mark_, identity, state);
    };
    auto whole = TRY(FindWhole(lock_.database(), inspection_, OnReadErrorIn(options_), read_signs));
    if (!whole.sound) return false;
    TRY(TakeBack(directory_, lock_.database(), whole, *mark_.line, options_.boot_clock()));
    signs_.reset();
    taken_back_ = true;
    return true;
  }

  Result<void> CheckWhatItIs() {
    if (inspection_.newer_schema) return NewerSchema(directory_);
    if (!inspection_.identity) return {};
    const Identity& identity = *inspection_.identity;
    product_ = TRY(OwnProduct(directory_, identity, products_));
    const bool is_older = !options_.migrate && identity.schema_version < newest_schema;
    return is_older ? OlderSchema(directory_, identity.schema_version) : Result<void>();
  }

  // A mark that is shut at the newest commit says that this was done.
  Result<void> Flush() {
    const std::optional<MarkLine>& mark = mark_.line;
    const bool is_shut = mark && mark->uuid == inspection_.identity->uuid && !mark->open &&
                         mark->acknowledged == inspection_.state->commit_sequence;
    if (is_shut || flushed_) return {};
    return lmdb::SyncWithSize(lock_.database().get(), directory_ / "data.mdb");
  }

  Result<void> ReadSignsOnce() {
    if (signs_ || !may_write_) return {};
    signs_ = TRY(ReadSigns(options_, mark_, inspection_.identity, inspection_.state));
    return {};
  }

  Result<void> RebuildOnce() {
    const Fd& file = lock_.database();
    if (rebuilt_) {
      return Error{ErrorCode::kIo,
                   "the database just made in " + directory_.string() + " does not verify" +
                       inspection_.Why(),
                   "look for disk and memory errors in the kernel's log"};
    }
    if (!TRY(FailsAgain(file, inspection_, OnReadErrorIn(options_)))) return Moving(directory_);
    if (on_damage_ != OnDamage::kRecover) return Unsound(directory_, inspection_);
    report_.findings = inspection_.findings;
    TRY(Rebuild(options_, file, inspection_, *signs_, *product_, report_));
    rebuilt_ = true;
    mark_ = TRY(ReadCommitMark(directory_));
    return {};
  }

  const NodeStoreOptions& options_;
  const std::filesystem::path& directory_ = options_.directory;
  const bool may_write_;
  const OnDamage on_damage_;
  const Products& products_;
  const Product* product_ = products_.front();
  OpeningReport& report_;
  OwnerLock lock_;
  std::optional<Signs> signs_;
  MarkReading mark_;
  Inspection inspection_;
  bool taken_back_ = false;
  bool rebuilt_ = false;
  bool flushed_ = false;
};

}  // namespace

Result<OwnedStore> OpenAsOwner(const NodeStoreOptions& options, OnDamage on_damage,
                               const Products& products, OpeningReport& report) {
  const std::filesystem::path& directory = options.directory;
  TRY(lmdb::CheckVersion());
  TRY(PrepareDirectory(options, *products.front()));
  TRY(CheckStoreFiles(directory));
  auto lock = TRY(OwnerLock::Take(directory));
  if (on_damage == OnDamage::kRecover) TRY(CheckStoreFiles(directory, &report.mended));
  std::string warning = FileSystemWarning(directory);
  if (!warning.empty()) report.warnings.push_back(std::move(warning));
  TRY(ClearPreparation(directory));
  Opening opening(options, on_damage, products, std::move(lock), report);
  TRY(opening.MakeIfMissing());
  TRY(opening.MakeSound());
  return opening.OpenSound();
}

Result<void> CommitAtOpening(const NodeStoreOptions& options, OwnedStore& store,
                             Committer::Change change) {
  OpenedDatabase& database = store.database;
  Committer::Hooks hooks;
  hooks.clock = options.clock;
  hooks.still_owned = [&](Committer::When when) { return CheckStillOwned(database, when); };
  Committer committer(*database.env, database.handles, database.identity, store.state, hooks);
  if (auto r = committer.Run(change); !r) return r;
  store.state = committer.state();
  if (store.witness) store.witness->Advance(store.state.commit_sequence);
  return {};
}

Result<void> CheckStillOwned(const OpenedDatabase& database, Committer::When when) {
  const bool all = when == Committer::When::kBefore;
  const StoreFiles::Look look = all ? database.files->LookAgain() : database.files->LookAtNames();
  if (look.state == StoreFiles::State::kSame) return {};
  if (look.state == StoreFiles::State::kUnknown) {
    return SystemError(look.error_number, "look at", look.path);
  }
  const std::filesystem::path changed = look.path;
  return Error{ErrorCode::kOwned,
               changed.filename().string() + " was " + look.change + " in " +
                   changed.parent_path().string() + " under the process that owns the store",
               "find out who did that and what else runs there, then close the store and open it "
               "again"};
}

}  // namespace waybill::internal
