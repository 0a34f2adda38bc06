#include "store/opening/rebuild_and_restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/disk/commit_mark.h"
#include "store/disk/lmdb/version.h"
#include "store/disk/uuid.h"
#include "store/opening/backup.h"
#include "store/opening/new_database.h"
#include "store/opening/open_store.h"
#include "store/opening/owner_lock.h"
#include "store/opening/store_files.h"
#include "store/opening/unfinished_commit.h"
#include "waybill/limits.h"

namespace waybill::internal {

// ---- What is kept aside

namespace {

struct Aside {
  std::pair<time_t, long> since;  // seconds, nanoseconds
  std::filesystem::path folder;
  friend auto operator<=>(const Aside&, const Aside&) = default;
};

// Oldest first.
std::vector<Aside> ListKept(const std::filesystem::path& quarantine) {
  std::vector<Aside> all;
  const auto names = ListDirectory(quarantine);
  if (!names) return all;
  for (const std::string& name : *names) {
    struct stat st {};
    Aside kept{{}, quarantine / name};
    // A folder without a database is not ours to remove.
    if (lstat(kept.folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
    kept.since = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    if (lstat((kept.folder / "data.mdb").c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    all.push_back(std::move(kept));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Inspection> Look(const std::filesystem::path& path, FileIs file_is) {
  const auto file = OpenFile(path, O_RDONLY);
  if (!file) return std::nullopt;
  auto inspection = InspectFile(*file, file_is);
  if (!inspection) return std::nullopt;
  return std::move(*inspection);
}

bool HasBackupOf(const Inspection& database, const std::vector<Backup>& backups) {
  return std::any_of(backups.begin(), backups.end(), [&](const Backup& backup) {
    if (backup.commit_sequence != database.state->commit_sequence) return false;
    const auto copy = Look(backup.path, FileIs::kCompactCopy);
    return copy && copy->sound && copy->identity->uuid == database.identity->uuid &&
           copy->state->commit_sequence == database.state->commit_sequence;
  });
}

bool MayGo(const Aside& kept, const std::vector<Backup>& backups) {
  const auto inspection = Look(kept.folder / "data.mdb", FileIs::kStore);
  if (!inspection || inspection->newer_schema) return false;
  // The sound values of a failed database were carried over when it was set aside.
  return !inspection->sound || HasBackupOf(*inspection, backups);
}

// Named by its time of change and inode, so that a repeated attempt finds its own link.
Result<std::filesystem::path> PlaceAside(const std::filesystem::path& directory, const Fd& file) {
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", directory / "data.mdb");
  return directory / "quarantine" /
         (TimeInNames(st.st_mtim.tv_sec) + "-" + std::to_string(st.st_ino)) / "data.mdb";
}

Result<void> KeepAside(const std::filesystem::path& directory, const std::filesystem::path& kept) {
  const std::filesystem::path folder = kept.parent_path();
  TRY(MakePrivateDirectory(folder.parent_path()));
  TRY(MakePrivateDirectory(folder));
  if (link((directory / "data.mdb").c_str(), kept.c_str()) != 0 && errno != EEXIST) {
    return SystemError(errno, "keep the database as", kept);
  }
  return SyncDirectory(folder);
}

// What can't be read or removed stays until the next attempt. Returns the removed paths.
std::vector<std::string> RemoveOldDatabases(const std::filesystem::path& directory) {
  std::vector<std::string> removed;
  const std::vector<Aside> all = ListKept(directory / "quarantine");
  if (all.size() <= kMaxKeptAside) return removed;
  const auto backups = FindBackups(directory);
  if (!backups) return removed;
  for (std::size_t i = 0; i < all.size() - kMaxKeptAside; ++i) {
    if (!MayGo(all[i], *backups)) continue;
    if (!RemoveFile(all[i].folder / "data.mdb")) continue;
    // Fails if somebody else put a file there: that one stays.
    static_cast<void>(rmdir(all[i].folder.c_str()));
    removed.push_back(all[i].folder.string());
  }
  return removed;
}

// ---- The one path

// A gap or an import that is still open stays a reason for distrust: the next opening closes it,
// which an operator's word does not.
Result<void> KeepOpen(StoreTxn& txn, const Journal& replaced) {
  std::vector<Distrust> reasons = ReasonsIn(replaced);
  std::ranges::reverse(reasons);  // the oldest first
  for (const Distrust& why : reasons) {
    if (LosesNothing(why)) TRY(SetDistrust(txn, why));
  }
  return {};
}

// Of two stores the clocks of the replaced one, and what makes proofs the older.
void CarryClocks(const Replacing& from, State& state) {
  for (const Salvaged* one : {&from.source, from.old}) {
    if (one == nullptr || !one->state) continue;
    const auto ages = std::max(state.clocks.ages, one->state->clocks.ages);
    state.clocks = one->state->clocks;
    state.clocks.ages = ages;
  }
}

enum class Writes : std::uint8_t { kNothing, kDatabase };

// `made` has an identity and the kind of the distrust. `aside`: where data.mdb is kept; empty:
// there is none.
Result<Carried> Replace(const NodeStoreOptions& options, NewDatabase made, const Product& product,
                        const Replacing& from, std::uint64_t last_told,
                        const std::filesystem::path& aside, Writes writes) {
  const std::filesystem::path& directory = options.directory;
  Carried carried;
  made.identity.schema_version = newest_schema;
  made.identity.purpose = product.purpose();
  made.sequence = std::max({from.source.sequence(), last_told,
                            from.old != nullptr ? from.old->sequence() : std::uint64_t{0}});
  made.journal = from.source.journal;
  made.distrust.reason = from.reason;
  made.now = options.clock();
  made.boot = options.boot_clock();
  made.map_may_grow = options.map_bytes == 0;
  made.fill = [&](StoreTxn& txn) -> Result<void> {
    CarryClocks(from, txn.state());
    if (from.old != nullptr) TRY(KeepOpen(txn, from.old->journal));
    carried = TRY(product.CarryOver(txn, from));
    return {};
  };
  TRY(PrepareDatabase(directory, made));
  if (writes == Writes::kNothing) {
    TRY(ClearPreparation(directory));
    return carried;
  }
  if (!aside.empty()) {
    if (auto kept = KeepAside(directory, aside); !kept) {
      static_cast<void>(ClearPreparation(directory));  // best effort: opening clears it, too
      return kept.error();
    }
  }
  TRY(InstallDatabase(directory, made));
  carried.replaced_path = aside.string();
  carried.removed_paths = RemoveOldDatabases(directory);
  return carried;
}

// ---- A rebuild

struct Choice {
  int which = -1;  // the meta page to salvage from; −1: neither
  std::optional<State> state;
  bool newest = false;  // proven to be the last commit; then there is a state
};

Choice ChooseTree(const Inspection& inspection, const Signs& signs) {
  const auto& meta = inspection.meta;
  const auto& states = inspection.states_by_meta;
  if (!states[0] && !states[1]) return {inspection.newer_meta, std::nullopt, false};
  const auto txn_id = [&](std::size_t i) { return meta[i].valid ? meta[i].txn_id : 0; };
  const bool is_second =
      !states[0] || (states[1] && states[1]->commit_sequence >= states[0]->commit_sequence);
  const std::size_t chosen = is_second ? 1 : 0;
  const std::size_t other = 1 - chosen;
  const State& state = *states[chosen];
  const bool other_is_older = states[other] || (meta[other].valid && !meta[other].rooted);
  // Without an identity, a mark or a witness of any store counts.
  const std::array<std::uint8_t, 16> none{};
  const std::uint64_t last = signs.LastCommitOf(inspection.identity ? inspection.identity->uuid
                                                : signs.mark        ? signs.mark->uuid
                                                                    : none);
  const bool is_newest = other_is_older && state.lmdb_txn_id >= std::max(txn_id(0), txn_id(1)) &&
                         signs.stale().empty() && state.commit_sequence >= last;
  return {static_cast<int>(chosen), state, is_newest};
}

}  // namespace

Result<void> Rebuild(const NodeStoreOptions& options, const Fd& file, const Inspection& inspection,
                     const Signs& signs, const Product& product, OpeningReport& report) {
  const std::filesystem::path& directory = options.directory;
  const Choice choice = ChooseTree(inspection, signs);
  const auto salvaged = TRY(Salvage(file, choice.which, choice.state, OnReadErrorIn(options)));
  const Purpose said = salvaged.purpose();
  const bool is_products =
      said == product.purpose() || (said == Purpose::kUnknown && product.MayHaveBeen(salvaged));
  if (!is_products) {
    return product.NotSaid("the database in " + directory.string() + " fails its check" +
                           inspection.Why());
  }
  const auto aside = TRY(PlaceAside(directory, file));
  NewDatabase made;
  made.map_bytes = ChooseMapBytes(options.map_bytes, RememberedMapBytes(inspection));
  if (salvaged.identity) {
    made.identity = *salvaged.identity;
  } else {
    made.identity = TRY(NewIdentity(options.clock()));
    if (signs.witness) made.identity.uuid = signs.witness->uuid;
  }
  // An older tree may have laxer ones. Whoever opens the store to decide chooses anew.
  if (!salvaged.identity || !choice.newest) made.identity.settings = kStrictestSettings;
  made.distrust.kind = DegradedKind::kStoreRebuilt;
  const Replacing from{
      .source = salvaged,
      .is_newest = choice.newest,
      .reason = "the database failed its check" +
                (inspection.findings.empty() ? "" : " (" + inspection.findings.front() + ")") +
                (signs.stale().empty() ? "" : ", and " + signs.stale()) + "; it is kept as " +
                aside.string()};
  const std::uint64_t last_told = signs.LastCommitOf(made.identity.uuid);
  const auto carried =
      TRY(Replace(options, std::move(made), product, from, last_told, aside, Writes::kDatabase));
  report.records_carried = carried.records;
  report.records_without_credentials = carried.records_without_credentials;
  report.intents_carried = carried.intents;
  report.set_aside = true;
  report.set_aside_path = carried.replaced_path;
  report.removed_paths = carried.removed_paths;
  return {};
}

// ---- A restore

namespace {

// A backup, or the store that it replaces.
struct Source {
  Fd file;  // not valid: there is none
  Salvaged values;
  std::uint64_t map_bytes = 0;  // 0: unknown
  bool is_sound = false;
};

Result<Source> ReadSource(Fd file, const Inspection& inspection) {
  Source source;
  source.values = TRY(Salvage(file, inspection.newer_meta, inspection.state));
  source.values.identity = inspection.identity;
  source.map_bytes = RememberedMapBytes(inspection);
  source.is_sound = inspection.sound;
  source.file = std::move(file);
  return source;
}

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

Result<Source> ReadBackup(Fd file, const std::filesystem::path& path) {
  auto inspection = TRY(InspectBackup(file));
  if (inspection.newer_schema) return NewerSchema(path);
  if (inspection.sound && !inspection.moved) return ReadSource(std::move(file), inspection);
  const bool is_store = inspection.meta[1].txn_id > 1;
  Error error{ErrorCode::kDamaged,
              inspection.sound ? path.string() + " changes; nothing was changed"
                               : "the backup " + path.string() + " fails its check" +
                                     inspection.Why() + "; nothing was changed",
              {},
              Hint::kListBackups};
  if (is_store) {
    error.hint_code = Hint::kNone;
    error.hint = "copy data.mdb while no process owns its store, or make a backup of that store";
  }
  return error;
}

// A last commit that a crash cut short is left out. Unless it is a dry run, it is taken back on the
// disk, too: kept aside without its mark, it would count as damage.
Result<Source> ReadReplaced(const RestoreOptions& options, const MarkReading& mark) {
  const std::filesystem::path database = options.directory / "data.mdb";
  auto file = OpenFile(database, O_RDWR);
  if (!file && file.error().code == ErrorCode::kNotFound) return Source();
  if (!file) return file.error();
  auto inspection = TRY(InspectFile(*file));
  if (!inspection.sound) {
    const auto read_signs = [&](const Identity& identity, const State& state) {
      return ReadSigns(mark, identity, state, options.boot_clock());
    };
    inspection = TRY(FindWhole(*file, inspection, OnReadError::kFail, read_signs));
    if (inspection.sound && !options.dry_run) {
      TRY(TakeBack(options.directory, *file, inspection, *mark.line, options.boot_clock()));
    }
  }
  if (inspection.newer_schema) return NewerSchema(options.directory);
  return ReadSource(*std::move(file), inspection);
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

// So that whoever reads before an owner opens the store has slots, and keeps no owner out. Best
// effort: the store is restored.
void MakeSlots(const std::filesystem::path& directory, OwnerLock& lock) {
  constexpr std::uint64_t kFirstCommit = 1;
  if (!lock.LockDatabase()) return;
  static_cast<void>(OpenDatabaseAsOwner(directory, 0, kFirstCommit, lock).has_value());
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

  const auto source = TRY(ReadBackup(std::move(backup_file), backup));
  const auto mark = TRY(ReadCommitMark(directory));
  const auto replaced = TRY(ReadReplaced(options, mark));
  const Identity& identity = *source.values.identity;
  const Identity& known = replaced.values.identity ? *replaced.values.identity : identity;
  const Product& product = ProductFor(identity.purpose, products);
  if (known.purpose != identity.purpose) {
    return Error{ErrorCode::kConflict,
                 "the backup " + backup.string() + " is of " + product.words().store +
                     ", and the store to be replaced is " +
                     ProductFor(known.purpose, products).words().store + "; nothing was changed",
                 "name the directory of the store that the backup was made of"};
  }
  if (known.uuid != identity.uuid) {
    return AnotherStore(options, identity.uuid, "the store in " + directory.string(), known.uuid);
  }
  const auto signs =
      TRY(ReadSigns(mark, known, replaced.values.state.value_or(State()), options.boot_clock()));
  if (signs.outside.what == Says::kAnother) {
    return AnotherStore(options, identity.uuid, "the witness " + known.witness_path,
                        signs.witness->uuid);
  }
  const std::string sequence = std::to_string(source.values.sequence());
  const Replacing from{.source = source.values,
                       .old = &replaced.values,
                       // One that is stale, or older than the backup, may be an old copy itself.
                       .old_is_newest = replaced.is_sound &&
                                        signs.VerdictFor(Tree::kWhole) == Verdict::kGoesOn &&
                                        replaced.values.sequence() >= source.values.sequence(),
                       .reason = "the store was put back from " + backup.filename().string() +
                                 ", a backup of commit " + sequence};
  NewDatabase made;
  made.identity = identity;
  made.identity.witness_path = known.witness_path;
  made.identity.settings = from.old_is_newest ? known.settings : kStrictestSettings;
  made.distrust.kind = DegradedKind::kStoreRestored;
  made.map_bytes = ChooseMapBytes(options.map_bytes,
                                  replaced.map_bytes != 0 ? replaced.map_bytes : source.map_bytes);
  std::filesystem::path aside;
  if (replaced.file.valid()) aside = TRY(PlaceAside(directory, replaced.file));
  NodeStoreOptions place{.directory = directory, .witness = Witness::Remembered()};
  place.clock = options.clock;
  place.boot_clock = options.boot_clock;
  place.map_bytes = options.map_bytes;
  const Writes writes = options.dry_run ? Writes::kNothing : Writes::kDatabase;
  RestoreReport report = TRY(Replace(place, std::move(made), product, from,
                                     signs.LastCommitOf(identity.uuid), aside, writes));
  if (!options.dry_run) MakeSlots(directory, lock);
  report.schema_version = newest_schema;
  report.backup_commit_sequence = source.values.sequence();
  report.distrust_reason = from.reason;
  report.streaming = product.purpose() == Purpose::kStreaming;
  return report;
}

}  // namespace waybill::internal
