#include <fcntl.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/engine/database/commit_mark.h"
#include "store/engine/database/uuid.h"
#include "store/engine/lmdb/version.h"
#include "store/engine/recovery/backup.h"
#include "store/engine/recovery/inspect.h"
#include "store/engine/recovery/kept_databases.h"
#include "store/engine/recovery/map_bytes.h"
#include "store/engine/recovery/new_database.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/owner_lock.h"
#include "store/engine/recovery/product.h"
#include "store/engine/recovery/salvage.h"
#include "store/engine/recovery/stale.h"
#include "store/engine/recovery/store_files.h"
#include "store/engine/recovery/unfinished_commit.h"
#include "store/engine/trust/trust.h"

namespace waybill::internal {

namespace {

struct Source {
  Inspection inspection;
  Salvaged values;
};

// The file of a backup: of a directory, the data.mdb in it.
std::filesystem::path FileOf(const std::filesystem::path& backup) {
  std::error_code ignored;
  return std::filesystem::is_directory(backup, ignored) ? backup / "data.mdb" : backup;
}

// Opens it, and keeps owners away from it meanwhile.
Result<Fd> OpenBackup(const std::filesystem::path& path, const std::filesystem::path& directory) {
  auto file = OpenFile(path, O_RDONLY);
  if (!file) return file.error();
  auto id = TRY(FileIdOf(*file, path));
  if (TRY(Exists(directory / "data.mdb"))) {
    auto own = TRY(FileIdOf(directory / "data.mdb"));
    if (own == id) {
      return Error{ErrorCode::kInvalidArgument,
                   path.string() + " is the store itself; nothing was changed",
                   "name a backup of it, or a copy"};
    }
  }
  TRY(LockOutOwners(*file, path));
  return file;
}

// A compact copy, or a store's own data.mdb. Only of the latter can it be told whether it was whole
// when it was copied, so nothing else that has its form passes for the former.
Result<Inspection> InspectBackup(const Fd& file) {
  auto inspection = InspectFile(file, FileIs::kStore);
  if (!inspection || inspection->sound || inspection->meta[0].txn_id != 0 ||
      inspection->meta[1].txn_id != 1) {
    return inspection;
  }
  return InspectFile(file, FileIs::kCompactCopy);
}

Result<Source> ReadBackup(const Fd& file, const std::filesystem::path& path) {
  auto inspection = TRY(InspectBackup(file));
  if (inspection.newer_schema) return NewerSchema(path);
  if (!inspection.sound || inspection.moved) {
    const bool is_store = inspection.meta[1].txn_id > 1;
    Error error{ErrorCode::kDamaged,
                "the backup " + path.string() + " fails its check" + inspection.Why() +
                    "; nothing was changed",
                {},
                Hint::kListBackups};
    if (inspection.sound) error.message = path.string() + " changes; nothing was changed";
    if (is_store) {
      error.hint_code = Hint::kNone;
      error.hint = "copy data.mdb while no process owns its store, or make a backup of that store";
    }
    return error;
  }
  auto values = TRY(Salvage(file, inspection.newer_meta));
  return Source{std::move(inspection), std::move(values)};
}

// A last commit that a crash cut short is left out. Unless it is a dry run, it is taken back on the
// disk, too: kept aside without its mark, it would count as damage.
Result<Replaced> ReadReplaced(const RestoreOptions& options) {
  const std::filesystem::path database = options.directory / "data.mdb";
  Replaced replaced;
  auto file = OpenFile(database, O_RDWR);
  if (!file && file.error().code == ErrorCode::kNotFound) return replaced;
  if (!file) return file.error();
  auto inspection = InspectFile(*file);
  if (!inspection) return inspection.error();
  if (!inspection->sound) {
    auto mark = TRY(ReadCommitMark(options.directory));
    const auto read_signs = [&](const Identity& identity, const State& state) {
      return ReadSigns(mark, identity, state, options.boot_clock());
    };
    inspection = FindWhole(*file, *inspection, OnReadError::kFail, read_signs);
    if (!inspection) return inspection.error();
    if (inspection->sound && !options.dry_run) {
      TRY(TakeBack(options.directory, *file, *inspection, *mark.line, options.boot_clock()));
    }
  }
  if (inspection->newer_schema) return NewerSchema(database.parent_path());
  replaced.identity = inspection->identity;
  replaced.map_bytes = RememberedMapBytes(*inspection);
  replaced.state = inspection->state;
  if (inspection->newer_meta >= 0) {
    replaced.values = TRY(Salvage(*file, inspection->newer_meta));
  }
  replaced.current = inspection->sound;
  replaced.file = std::move(*file);
  return replaced;
}

// A gap or an import that is still open stays a reason for distrust: the next opening closes it,
// which an operator's word does not.
Result<void> KeepOpen(StoreTxn& txn, const Journal& replaced) {
  const std::vector<bool> in_force = InForce(replaced);
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    const Distrust why{replaced[i].kind, replaced[i].reason};
    if (!in_force[i] || !LosesNothing(why)) continue;
    if (auto r = SetDistrust(txn, why); !r) return r;
  }
  return {};
}

Error AnotherStore(const RestoreOptions& options, const std::array<std::uint8_t, 16>& backup,
                   const std::string& whose, const std::array<std::uint8_t, 16>& store) {
  return {ErrorCode::kConflict,
          "the backup " + options.backup.string() + " is of the store " + EncodeUuid(backup) +
              ", and " + whose + " says " + EncodeUuid(store) + "; nothing was changed",
          "take a backup of this store, or restore into an empty directory"};
}

const Product& ProductFor(Purpose purpose, const Products& products) {
  const auto is_it = [&](const Product* one) { return one->purpose() == purpose; };
  const auto at = std::find_if(products.begin(), products.end(), is_it);
  return at == products.end() ? *products.front() : **at;
}

}  // namespace

Result<RestoreReport> RestoreBackup(const RestoreOptions& options, const Products& products) {
  const std::filesystem::path& directory = options.directory;
  TRY(lmdb::CheckVersion());
  TRY(CheckMapBytes(options.map_bytes));
  const std::filesystem::path backup = FileOf(options.backup);
  auto backup_file = TRY(OpenBackup(backup, directory));
  TRY(CheckPrivateDirectory(directory));
  TRY(CheckStoreFiles(directory));
  if (!TRY(Exists(directory / "data.mdb"))) {
    TRY(CheckNewDirectory(directory, options.backup));
  }
  auto lock = TRY(OwnerLock::Take(directory));
  TRY(ClearPreparation(directory));

  auto source = TRY(ReadBackup(backup_file, backup));
  const Identity& identity = *source.inspection.identity;
  const State& state = *source.inspection.state;

  auto replaced = TRY(ReadReplaced(options));
  if (replaced.identity && replaced.identity->purpose != identity.purpose) {
    return ProductFor(identity.purpose, products).ReplacesOnlyOwn(backup);
  }
  if (replaced.identity && replaced.identity->uuid != identity.uuid) {
    return AnotherStore(options, identity.uuid, "the store in " + directory.string(),
                        replaced.identity->uuid);
  }
  const Identity& known = replaced.identity ? *replaced.identity : identity;
  auto mark = TRY(ReadCommitMark(directory));
  auto signs = TRY(ReadSigns(mark, known, replaced.state.value_or(State()), options.boot_clock()));
  if (signs.outside.what == Says::kAnother) {
    return AnotherStore(options, identity.uuid, "the witness " + known.witness_path,
                        signs.witness->uuid);
  }
  // One that is stale, or older than the backup, may be an old copy itself.
  const std::uint64_t sequence = replaced.sequence();
  replaced.current = replaced.current && signs.VerdictFor(Tree::kWhole) == Verdict::kGoesOn &&
                     sequence >= state.commit_sequence;

  RestoreReport report;
  report.backup_commit_sequence = state.commit_sequence;
  report.distrust_reason = "the store was put back from " + backup.filename().string() +
                           ", a backup of commit " + std::to_string(state.commit_sequence);

  NewDatabase made;
  made.identity = identity;
  made.identity.schema_version = newest_schema;
  const Product& product = ProductFor(made.identity.purpose, products);
  report.schema_version = made.identity.schema_version;
  made.identity.witness_path = known.witness_path;
  made.sequence = std::max({state.commit_sequence, sequence, signs.LastCommitOf(identity.uuid)});
  made.journal = source.values.journal;
  made.distrust = {DegradedKind::kStoreRestored, report.distrust_reason};
  made.now = options.clock();
  made.boot = options.boot_clock();
  made.map_bytes = ChooseMapBytes(options.map_bytes, replaced.map_bytes != 0
                                                         ? replaced.map_bytes
                                                         : RememberedMapBytes(source.inspection));
  made.map_may_grow = options.map_bytes == 0;
  const Restoring from{state, source.values, replaced, made.distrust.reason};
  const RestoreReport unfilled = report;
  made.fill = [&](StoreTxn& txn) -> Result<void> {
    report = unfilled;
    txn.state().latest_time = state.latest_time;
    txn.state().clocks = state.clocks;
    if (replaced.state) {
      txn.state().latest_time = std::max(state.latest_time, replaced.state->latest_time);
      txn.state().clocks = replaced.state->clocks;
      // Of the two what makes proofs the older.
      txn.state().clocks.ages = std::max(state.clocks.ages, replaced.state->clocks.ages);
    }
    TRY(KeepOpen(txn, replaced.values.journal));
    return product.FillRestored(txn, from, report);
  };
  TRY(PrepareDatabase(directory, made));
  if (options.dry_run) {
    TRY(ClearPreparation(directory));
    return report;
  }
  if (replaced.file.valid()) {
    auto aside = KeepAside(directory, replaced.file);
    if (!aside) {
      static_cast<void>(ClearPreparation(directory));  // best effort: opening clears it, too
      return aside.error();
    }
    report.replaced_path = aside->string();
  }
  TRY(InstallDatabase(directory, made));
  report.removed_paths = RemoveOldDatabases(directory);
  return report;
}

}  // namespace waybill::internal
