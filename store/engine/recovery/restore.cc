#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
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
#include "store/engine/recovery/salvage.h"
#include "store/engine/recovery/store_files.h"
#include "store/engine/recovery/unfinished_commit.h"
#include "store/engine/recovery/witness.h"
#include "store/engine/recovery/witness_settling.h"
#include "store/engine/trust/trust.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/records/userns_tables.h"
#include "store/node/upkeep/restore_ranges.h"
#include "store/node/userns/lost_ranges.h"

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
  auto there = TRY(Exists(directory / "data.mdb"));
  if (there) {
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

// By image ref and runtime handler.
using Credentials =
    std::map<std::pair<std::string, std::string>, std::map<std::string, ImagePullCredentials>>;

// The store that is replaced.
struct Replaced {
  Fd file;  // not valid: there is none
  std::optional<Identity> identity;
  std::uint64_t sequence = 0;
  std::uint64_t map_bytes = 0;  // 0: unknown
  Timestamp latest_time;
  std::uint64_t last_truth = 0;
  std::optional<AgeLimits> ages;
  std::optional<bool> kubelet_rules;  // nullopt: its schema version does not say
  Credentials credentials;            // empty if the store is not sound; likewise below
  std::vector<LedgerEntry> ledger;
  Salvaged values;
  // `values` has every pod's ID range, and none was handed out since.
  bool has_all_ranges = false;
  // False: its schema version has none. A kubelet, or this store before a migration down, had them.
  bool kept_ranges = false;
};

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
    auto unfinished = TRY(UnfinishedCommit::Find(options.directory, options.boot_clock()));
    const auto ask = [](const Identity& identity, const State& state) {
      return AskRememberedWitness(identity, state);
    };
    inspection = unfinished.FindWhole(*file, *inspection, OnReadError::kFail, ask);
    if (!inspection) return inspection.error();
    if (inspection->sound && !options.dry_run) {
      TRY(unfinished.TakeBack(*file, *inspection));
    }
  }
  if (inspection->newer_schema) return NewerSchema(database.parent_path());
  replaced.identity = inspection->identity;
  replaced.map_bytes = RememberedMapBytes(*inspection);
  if (inspection->state) {
    replaced.sequence = inspection->state->commit_sequence;
    replaced.latest_time = inspection->state->latest_time;
    replaced.last_truth = inspection->state->last_truth;
    replaced.ages = inspection->state->ages;
    if (inspection->identity &&
        SchemaOf(inspection->identity->schema_version).has(Table::kLedger)) {
      replaced.kubelet_rules = inspection->state->kubelet_rules;
    }
  }
  if (inspection->newer_meta >= 0) {
    auto values = TRY(Salvage(*file, inspection->newer_meta));
    replaced.values = std::move(values);
  }
  if (inspection->sound) {
    replaced.has_all_ranges = true;
    replaced.kept_ranges = SchemaOf(replaced.identity->schema_version).has(Table::kUsernsHeld);
    for (ImagePulledRecord& record : replaced.values.All(Table::kPulled, DecodePulledRecordValue)) {
      replaced.credentials[{record.image_ref, record.runtime_handler}] =
          std::move(record.credential_mapping);
    }
    replaced.ledger = replaced.values.All(Table::kLedger, DecodeLedgerEntry);
  }
  replaced.file = std::move(*file);
  return replaced;
}

// What the replaced store had closed stays closed: its quarantine entries and its intents. Handlers
// of intents get the names that the backup's registry has for them.
Result<void> KeepClosed(StoreTxn& txn, const Salvaged& replaced, const BootTime& now) {
  const bool has_handlers = txn.schema().has(Table::kRuntimeHandlers);
  auto registry = TRY(ReadRuntimeHandlers(txn));
  for (const auto& entry : replaced.All(Table::kQuarantine, DecodeQuarantineValue)) {
    TRY(StoreQuarantine(txn, entry));
  }
  for (OpenPull& pull : replaced.All(Table::kIntents, DecodeOpenPull)) {
    pull.runtime_handler = has_handlers ? StoredName(registry, pull.runtime_handler) : "";
    if (auto r = CarryPull(txn, pull, now); !r) return r;
  }
  return {};
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

// Whether no pod can be using a range that the store handed out.
bool HasNoRanges(const Replaced& replaced) {
  if (!replaced.has_all_ranges) return false;
  const auto& payloads = replaced.values.payloads;
  const auto& held = payloads[Index(Table::kUsernsHeld)];
  return payloads[Index(Table::kUsernsMappings)].empty() &&
         std::all_of(held.begin(), held.end(), [](const auto& payload) {
           const auto one = DecodeUsernsHeld(payload);
           return one && IsUntilImport(one->pod);
         });
}

// Whether something was forgotten, or grows old.
bool HasForgotten(const Replaced& replaced) {
  return !replaced.values.payloads[Index(Table::kRevocations)].empty() ||
         replaced.last_truth != 0 || replaced.ages.value_or(AgeLimits()) != AgeLimits();
}

Error AnotherStore(const RestoreOptions& options, const std::array<std::uint8_t, 16>& backup,
                   const std::string& whose, const std::array<std::uint8_t, 16>& store) {
  return {ErrorCode::kConflict,
          "the backup " + options.backup.string() + " is of the store " + EncodeUuid(backup) +
              ", and " + whose + " says " + EncodeUuid(store) + "; nothing was changed",
          "take a backup of this store, or restore into an empty directory"};
}

Error AnotherPurpose(const std::filesystem::path& backup, Purpose is) {
  const bool is_streaming = is == Purpose::kStreaming;
  return {
      ErrorCode::kConflict,
      "the backup " + backup.string() + " is of a " +
          (is_streaming ? "store of streaming requests, and the store to be replaced is a node's"
                        : "node's store, and the store to be replaced is of streaming requests") +
          "; nothing was changed",
      "name the directory of the store that the backup was made of"};
}

}  // namespace

Result<RestoreReport> RestoreBackup(const RestoreOptions& options) {
  const std::filesystem::path& directory = options.directory;
  TRY(lmdb::CheckVersion());
  TRY(CheckMapBytes(options.map_bytes));
  const std::filesystem::path backup = FileOf(options.backup);
  auto backup_file = TRY(OpenBackup(backup, directory));
  TRY(CheckPrivateDirectory(directory));
  TRY(CheckStoreFiles(directory));
  auto there = TRY(Exists(directory / "data.mdb"));
  if (!there) {
    TRY(CheckNewDirectory(directory, options.backup));
  }
  auto lock = TRY(OwnerLock::Take(directory));
  TRY(ClearPreparation(directory));

  auto source = TRY(ReadBackup(backup_file, backup));
  const Identity& identity = *source.inspection.identity;
  const State& state = *source.inspection.state;

  auto read = TRY(ReadReplaced(options));
  Replaced& replaced = read;
  if (replaced.identity && replaced.identity->purpose != identity.purpose &&
      replaced.identity->purpose != Purpose::kUnknown && identity.purpose != Purpose::kUnknown) {
    return AnotherPurpose(backup, identity.purpose);
  }
  if (replaced.identity && replaced.identity->uuid != identity.uuid) {
    return AnotherStore(options, identity.uuid, "the store in " + directory.string(),
                        replaced.identity->uuid);
  }
  const std::string witness_path =
      replaced.identity ? replaced.identity->witness_path : identity.witness_path;
  const WitnessReading witness =
      witness_path.empty() ? WitnessReading() : ReadWitness(witness_path);
  if (witness.testimony && witness.testimony->uuid != identity.uuid) {
    return AnotherStore(options, identity.uuid, "the witness " + witness_path,
                        witness.testimony->uuid);
  }
  if (witness.error) return *witness.error;
  auto mark = TRY(ReadCommitMark(directory));
  const std::uint64_t marked =
      mark.commits && mark.commits->uuid == identity.uuid ? mark.commits->acknowledged : 0;
  // A store that is older than its witness, its mark or the backup, or lacks its witness, may be an
  // old copy itself: credentials may have been revoked since, and ranges handed out.
  const bool misses_witness = !witness_path.empty() && !witness.testimony;
  const bool is_newer = replaced.sequence >= state.commit_sequence;
  if (misses_witness || !is_newer || marked > replaced.sequence ||
      (witness.testimony && witness.testimony->commit_sequence > replaced.sequence)) {
    replaced.credentials.clear();
    replaced.ledger.clear();
    replaced.has_all_ranges = false;
  }

  RestoreReport report;
  report.backup_commit_sequence = state.commit_sequence;
  report.distrust_reason = "the store was put back from " + backup.filename().string() +
                           ", a backup of commit " + std::to_string(state.commit_sequence);

  NewDatabase made;
  made.identity = identity;
  // An older schema version has no place for the ranges of living pods, for what was forgotten, and
  // for ages: then the backup is restored as the newest version.
  if (!HasNoRanges(replaced) || HasForgotten(replaced)) {
    made.identity.schema_version = kNewestSchema;
  }
  if (replaced.identity && made.identity.purpose == Purpose::kUnknown) {
    made.identity.purpose = replaced.identity->purpose;
  }
  const bool is_streaming = made.identity.purpose == Purpose::kStreaming;
  report.schema_version = made.identity.schema_version;
  report.streaming = is_streaming;
  made.identity.witness_path = witness_path;
  made.sequence = std::max({state.commit_sequence, replaced.sequence, marked,
                            witness.testimony ? witness.testimony->commit_sequence : 0});
  made.journal = source.values.journal;
  made.distrust = {TrustKind::kStoreRestored, report.distrust_reason};
  made.now = options.clock();
  made.map_bytes = ChooseMapBytes(options.map_bytes, replaced.map_bytes != 0
                                                         ? replaced.map_bytes
                                                         : RememberedMapBytes(source.inspection));
  made.map_may_grow = options.map_bytes == 0;
  // Credentials that the replaced store does not have as well may have been revoked since. Of the
  // others its proofs count: it may have proven them again, or lost their time.
  const auto keeps = [&](ImagePulledRecord& record) {
    if (record.credential_mapping.empty()) return true;
    const auto at = replaced.credentials.find({record.image_ref, record.runtime_handler});
    const bool has = at != replaced.credentials.end() && at->second == record.credential_mapping;
    if (has) record.credential_mapping = at->second;
    return has;
  };
  const BootTime now = options.boot_clock();
  // Quarantine closes an image under every spelling, and spellings are not restored.
  const bool any_quarantine = !source.values.payloads[Index(Table::kQuarantine)].empty() ||
                              !replaced.values.payloads[Index(Table::kQuarantine)].empty();
  if (any_quarantine) replaced.ledger.clear();
  const RestoreReport unfilled = report;
  made.fill = [&](StoreTxn& txn) -> Result<void> {
    report = unfilled;
    txn.state().latest_time = std::max(state.latest_time, replaced.latest_time);
    txn.state().last_truth = std::max(state.last_truth, replaced.last_truth);
    txn.state().ages = replaced.ages.value_or(state.ages);
    // What is carried over is forgotten by the rules that it was kept under.
    txn.state().kubelet_rules = replaced.kubelet_rules.value_or(state.kubelet_rules);
    if (auto r = CarryRevocations(txn, replaced.values); !r) return r;
    auto carried = CarryOver(txn, source.values,
                             {.keeps_credentials = keeps,
                              .keeps_entry =
                                  [&](const LedgerEntry& entry) {
                                    return std::find(replaced.ledger.begin(), replaced.ledger.end(),
                                                     entry) != replaced.ledger.end();
                                  },
                              .preloaded = true,
                              .spellings = false,
                              .now = now});
    if (!carried) return carried.error();
    report.records = carried->records;
    report.records_without_credentials = carried->records_without_credentials;
    if (auto r = CarryCounters(txn, replaced.values, &source.values); !r) return r;
    if (auto r = KeepClosed(txn, replaced.values, now); !r) return r;
    if (auto r = KeepOpen(txn, replaced.values.journal); !r) return r;
    if (is_streaming) {
      txn.state().last_list = kNoListEver;
      return {};
    }
    auto known = is_newer ? ReplacedRanges::kNewer : ReplacedRanges::kMayBeOlder;
    if (replaced.has_all_ranges && replaced.kept_ranges) known = ReplacedRanges::kWhole;
    auto ranges =
        RestoreIdRanges(txn, replaced.values, known, source.values, made.distrust.reason, report);
    if (!ranges) return ranges;
    report.id_mappings = txn.state().digest(Table::kUsernsMappings).count;
    auto lost = TRY(FindHeld(txn, {}));
    report.id_ranges_lost = lost.has_value();
    return {};
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
