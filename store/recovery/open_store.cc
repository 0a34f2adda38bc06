#include "store/recovery/open_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "store/lmdb/version.h"
#include "store/record/committer.h"
#include "store/record/pulled_record.h"
#include "store/record/typed_tables.h"
#include "store/record/userns_tables.h"
#include "store/recovery/file_system.h"
#include "store/recovery/gap.h"
#include "store/recovery/inspect.h"
#include "store/recovery/new_database.h"
#include "store/recovery/open_database.h"
#include "store/recovery/private_files.h"
#include "store/recovery/rebuild.h"

namespace waybill::internal {

namespace {

constexpr std::uint64_t kMinMapBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxMapBytes = std::uint64_t{1} << 44;

bool SameDirectory(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

Error NoStore(const OpenOptions& options) {
  return {ErrorCode::kNotFound, "there is no store in " + options.directory.string(),
          "make one with `waybill start`"};
}

Error Unsound(const std::filesystem::path& directory, const Inspection& inspection) {
  const std::string why = inspection.findings.empty() ? "" : inspection.findings.front();
  return {
      ErrorCode::kDamaged,
      "the store in " + directory.string() + " fails its check: " + why + "; nothing was changed",
      "run `waybill start` to recover it"};
}

Error Moving(const std::filesystem::path& directory) {
  return {ErrorCode::kOwned,
          "data.mdb in " + directory.string() +
              " changes while it is being checked: another process writes to it; nothing was "
              "changed",
          "stop that process, then try again (fuser " + (directory / "data.mdb").string() +
              " names it)"};
}

// A file that fails its check, and does so again in the same way: what somebody writes to meanwhile
// only looks damaged.
Result<bool> FailsAgain(const Fd& file, const Inspection& first) {
  if (first.moved) return false;
  auto second = InspectFile(file);
  if (!second) return second.error();
  return !second->sound && !second->moved && second->txn_id == first.txn_id &&
         second->findings == first.findings;
}

Result<void> PrepareDirectory(const OpenOptions& options) {
  if (options.directory.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the store's directory is not named", ""};
  }
  if (options.map_bytes < kMinMapBytes || options.map_bytes > kMaxMapBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "a map of " + std::to_string(options.map_bytes) + " bytes is out of range",
                 "use " + std::to_string(kMinMapBytes) + " to " + std::to_string(kMaxMapBytes)};
  }
  auto there = Exists(options.directory);
  if (!there) return there.error();
  if (!*there) {
    if (!options.create_if_missing) return NoStore(options);
    if (auto r = MakePrivateDirectory(options.directory); !r) return r;
  }
  if (auto r = CheckPrivateDirectory(options.directory); !r) return r;
  if (options.witness.kind() == Witness::Kind::kAt &&
      SameDirectory(options.witness.path().parent_path(), options.directory)) {
    return Error{ErrorCode::kInvalidArgument,
                 "the witness " + options.witness.path().string() +
                     " lies in the store that it is to outlive; nothing was changed",
                 "keep it elsewhere, by convention in the kubelet directory"};
  }
  // Before there is a lock file: a directory that is no store stays as it was.
  if (options.create_if_missing) return {};
  there = Exists(options.directory / "data.mdb");
  if (!there) return there.error();
  return *there ? Result<void>() : NoStore(options);
}

// What else of a store is there without data.mdb, so that it must have been lost. Empty: nothing.
Result<std::string> FindLoss(const std::filesystem::path& directory, const WitnessReading& witness,
                             bool owned_before) {
  auto there = Exists(directory / "lock.mdb");
  if (!there) return there.error();
  if (*there) return "data.mdb is gone from " + directory.string();
  if (witness.exists) return std::string("the store that the witness tells of is gone");
  there = Exists(directory / "quarantine");
  if (!there) return there.error();
  if (*there) return "of the store in " + directory.string() + " only quarantine/ is left";
  if (owned_before) return "of the store in " + directory.string() + " only owner.lock is left";
  return std::string();
}

// Why a new store presumes nothing preloaded yet: before anything else could be lost to a crash.
// Where there is a gap, no record waits to be imported. Empty: it may.
Result<std::string> DistrustAtFirst(const OpenOptions& options) {
  auto gap = FirstGap(options);
  if (!gap || !gap->empty() || options.kubelet_directory.empty()) return gap;
  auto there = Exists(options.kubelet_directory / "image_manager");
  if (!there) return there.error();
  return *there ? ImportUnfinished(options.kubelet_directory) : std::string();
}

// Makes a store where there is none.
Result<void> Create(const OpenOptions& options, const WitnessReading& witness, bool owned_before,
                    RecoveryReport& report) {
  const std::filesystem::path& directory = options.directory;
  if (!options.create_if_missing) return NoStore(options);
  NewDatabase made;
  auto reason = FindLoss(directory, witness, owned_before);
  if (!reason) return reason.error();
  const bool was_lost = !reason->empty();
  if (!was_lost) reason = DistrustAtFirst(options);
  if (!reason) return reason.error();
  made.distrust_reason = std::move(*reason);
  made.now = options.clock();
  made.map_bytes = options.map_bytes;
  if (was_lost) {
    made.fill = [&made](StoreTxn& txn) { return HoldLostRanges(txn, made.distrust_reason); };
  } else if (!options.pods_directory.empty() || !options.kubelet_directory.empty()) {
    made.fill = [](StoreTxn& txn) { return HoldUntilImport(txn, "the store was just made"); };
  }
  auto identity = NewIdentity(made.now);
  if (!identity) return identity.error();
  made.identity = *identity;
  if (witness.testimony) made.sequence = witness.testimony->commit_sequence;
  if (auto r = PrepareDatabase(directory, made); !r) return r;
  if (auto r = InstallDatabase(directory); !r) return r;
  report.created = true;
  return {};
}

// The identity as far as it can be read without LMDB, for the witness that the store remembers.
std::filesystem::path WitnessPath(const OpenOptions& options, const Inspection* inspection) {
  switch (options.witness.kind()) {
    case Witness::Kind::kAt:
      return std::filesystem::absolute(options.witness.path());
    case Witness::Kind::kRemembered:
      if (inspection != nullptr && inspection->identity) return inspection->identity->witness_path;
      return {};
    case Witness::Kind::kNone:
      return {};
  }
  return {};
}

// What a witness says against a store. Nothing: `reason` is empty.
struct Contradiction {
  std::string reason;
  // The witness proves that what is stored is not what was stored last.
  bool stale = false;
};

Contradiction FindContradiction(const WitnessReading& witness, const std::filesystem::path& path,
                                const Identity& identity, const State& state) {
  if (!witness.exists) return {};
  if (!witness.testimony) return {"the witness " + path.string() + " can't be read", false};
  if (witness.testimony->uuid != identity.uuid) {
    return {"the witness " + path.string() + " tells of another store", true};
  }
  if (state.commit_sequence < witness.testimony->commit_sequence) {
    return {"the store is older than its witness " + path.string() + ": it is at commit " +
                std::to_string(state.commit_sequence) + " of " +
                std::to_string(witness.testimony->commit_sequence),
            true};
  }
  return {};
}

// A stale record may name credentials that were revoked since: its image stays known, and must be
// verified anew.
Result<void> DropCredentials(StoreTxn& txn, RecoveryReport& report) {
  std::vector<ImagePulledRecord> records;
  auto walked = txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (record) records.push_back(std::move(*record));
    return true;
  });
  if (!walked) return walked;
  report.records_without_credentials = records.size();
  for (ImagePulledRecord& record : records) {
    record.credential_mapping.clear();
    if (auto r = StoreRecord(txn, std::move(record)); !r) return r;
  }
  return {};
}

Result<State> ReadState(const OpenedDatabase& database) {
  State state;
  lmdb::Txn txn;
  if (txn.BeginRead(*database.env) == MDB_SUCCESS) {
    StoreTxn::Context context;
    context.txn = txn.get();
    context.handles = &database.handles;
    context.identity = &database.identity;
    context.directory = &database.env->directory();
    auto payload = StoreTxn(context, state).GetHeaderRecord(kStateKey, RecordKind::kState);
    if (!payload) return payload.error();
    if (auto decoded = DecodeState(*payload)) return *decoded;
  }
  return Error{ErrorCode::kDamaged,
               "the state record in " + database.env->directory().string() + " can't be read", ""};
}

// Of a store that was there before: the gap at its first take-over of a kubelet directory, which is
// when its witness comes there.
Result<std::string> GapAtTakeOver(const OpenOptions& options, const std::filesystem::path& witness,
                                  const OwnedStore& store) {
  const bool takes_over = !options.kubelet_directory.empty() &&
                          witness == WitnessIn(options.kubelet_directory) &&
                          store.database.identity.witness_path != witness &&
                          store.state.digest(Table::kImported).count == 0;
  return takes_over ? FirstGap(options) : std::string();
}

// What the witness makes necessary, and where it is from now on.
Result<void> SettleWitness(const OpenOptions& options, const WitnessReading& witness,
                           const std::filesystem::path& path, OwnedStore& store,
                           RecoveryReport& report) {
  if (path.empty()) return {};
  OpenedDatabase& database = store.database;
  Contradiction contradiction =
      report.created || report.set_aside
          ? Contradiction()
          : FindContradiction(witness, path, database.identity, store.state);
  WitnessReading said = witness;
  const std::filesystem::path& before = store.witness_path_before;
  if (contradiction.reason.empty() && !report.set_aside && !before.empty() && before != path) {
    // The witness was moved: the one that the store had still tells of this store.
    const WitnessReading old = ReadWitness(before);
    if (old.testimony && old.testimony->uuid == database.identity.uuid) {
      contradiction = FindContradiction(old, before, database.identity, store.state);
      if (!contradiction.reason.empty()) said = old;
    }
  }
  const auto gap =
      report.created ? Result<std::string>(std::string()) : GapAtTakeOver(options, path, store);
  if (!gap) return gap.error();
  Identity identity = database.identity;
  identity.witness_path = path.string();
  if (!contradiction.reason.empty() || identity.witness_path != database.identity.witness_path) {
    Committer::Hooks hooks;
    hooks.clock = options.clock;
    hooks.still_owned = [&] { return CheckStillOwned(database); };
    Committer committer(*database.env, database.handles, database.identity, store.state, hooks);
    const auto amend = [&](StoreTxn& txn) -> Result<void> {
      if (!contradiction.reason.empty()) {
        if (said.testimony) {
          // Past the witness, or the same old copy could come back unnoticed.
          txn.state().commit_sequence =
              std::max(txn.state().commit_sequence, said.testimony->commit_sequence);
        }
        if (auto r = SetTrust(txn, true, contradiction.reason); !r) return r;
        if (contradiction.stale) {
          if (auto r = DropCredentials(txn, report); !r) return r;
        }
        if (auto r = HoldLostRanges(txn, contradiction.reason); !r) return r;
        txn.Touch();
      }
      if (!gap->empty()) {
        if (auto r = NoteGap(txn, *gap); !r) return r;
      }
      return txn.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(identity));
    };
    if (auto r = committer.Run(amend); !r) return r;
    database.identity = identity;
    store.state = committer.state();
    if (!contradiction.reason.empty()) report.findings.push_back(contradiction.reason);
  }
  report.witness_made = !witness.exists && !report.created;
  auto file = WitnessFile::Open(path, {database.identity.uuid, store.state.commit_sequence});
  if (!file) return file.error();
  store.witness = std::move(*file);
  return {};
}

}  // namespace

Result<OwnedStore> OpenAsOwner(const OpenOptions& options, OnDamage on_damage,
                               RecoveryReport& report) {
  const std::filesystem::path& directory = options.directory;
  if (auto r = lmdb::CheckVersion(); !r) return r.error();
  if (auto r = PrepareDirectory(options); !r) return r.error();
  if (auto r = CheckStoreFiles(directory); !r) return r.error();
  auto lock = OwnerLock::Take(directory);
  if (!lock) return lock.error();
  if (on_damage == OnDamage::kRecover) {
    auto mended = MendStoreFiles(directory);
    if (!mended) return mended.error();
    report.mended = std::move(*mended);
  }
  std::string warning = FileSystemWarning(directory);
  if (!warning.empty()) report.warnings.push_back(std::move(warning));
  if (auto r = ClearPreparation(directory); !r) return r.error();

  const std::filesystem::path database_path = directory / "data.mdb";
  std::filesystem::path witness_path = WitnessPath(options, nullptr);
  WitnessReading witness = witness_path.empty() ? WitnessReading{} : ReadWitness(witness_path);
  auto there = Exists(database_path);
  if (!there) return there.error();
  if (!*there) {
    if (auto r = Create(options, witness, lock->owned_before(), report); !r) return r.error();
  }

  std::optional<Inspection> inspection;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (auto r = lock->LockDatabase(); !r) return r.error();
    const Fd& file = lock->database();
    auto inspected = InspectFile(file);
    if (!inspected) return inspected.error();
    inspection = std::move(*inspected);
    if (inspection->moved) return Moving(directory);
    if (inspection->newer_schema) return NewerSchema(directory);
    if (!options.migrate && inspection->identity &&
        inspection->identity->schema_version < kNewestSchema) {
      return OlderSchema(directory, inspection->identity->schema_version);
    }
    if (options.witness.kind() == Witness::Kind::kRemembered) {
      witness_path = WitnessPath(options, &*inspection);
      witness = witness_path.empty() ? WitnessReading{} : ReadWitness(witness_path);
    }
    if (inspection->sound) break;
    if (attempt > 0) {
      return Error{ErrorCode::kIo,
                   "the database just made in " + directory.string() + " does not verify: " +
                       (inspection->findings.empty() ? "" : inspection->findings.front()),
                   "look for disk and memory errors in the kernel's log"};
    }
    auto fails_again = FailsAgain(file, *inspection);
    if (!fails_again) return fails_again.error();
    if (!*fails_again) return Moving(directory);
    if (on_damage == OnDamage::kRefuse) return Unsound(directory, *inspection);
    report.findings = inspection->findings;
    if (auto r = Rebuild(directory, file, *inspection, witness.testimony, options.clock(),
                         options.map_bytes, report);
        !r) {
      return r.error();
    }
  }

  auto database = OpenDatabaseAsOwner(directory, options.map_bytes, inspection->txn_id, *lock);
  if (!database) return database.error();
  report.readers_cleared = database->env->ClearDeadReaders();
  auto state = ReadState(*database);
  if (!state) return state.error();
  OwnedStore store{std::move(*lock), std::move(*database), *state, std::nullopt, {}};
  if (!report.created) store.witness_path_before = store.database.identity.witness_path;
  if (auto r = SettleWitness(options, witness, witness_path, store, report); !r) return r.error();
  return store;
}

namespace {

// Why an observer stays away from a file that no owner vouches for; nullopt: it does not.
std::optional<Error> Refusal(const std::filesystem::path& directory, const Inspection& inspection) {
  if (inspection.newer_schema) return NewerSchema(directory);
  if (!inspection.sound) {
    return inspection.moved ? Moving(directory) : Unsound(directory, inspection);
  }
  // An owner would have asked the witness.
  const std::filesystem::path& witness = inspection.identity->witness_path;
  if (witness.empty()) return std::nullopt;
  const Contradiction contradiction =
      FindContradiction(ReadWitness(witness), witness, *inspection.identity, *inspection.state);
  if (contradiction.reason.empty()) return std::nullopt;
  return Error{ErrorCode::kDamaged, contradiction.reason + "; nothing was changed",
               "run `waybill start` to recover the store"};
}

// What to compare the file by. Later writes may fall into the tick of its time unless that is past.
Result<SeenUnowned> LookAt(const Fd& file, const std::filesystem::path& path, bool& settled) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  struct stat st {};
  struct timespec now {};
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", path);
  clock_gettime(CLOCK_REALTIME, &now);
  settled = st.st_mtim.tv_sec + 1 < now.tv_sec;
  return SeenUnowned{{st.st_dev, st.st_ino},
                     st.st_size,
                     std::int64_t{st.st_mtim.tv_sec} * kNanos + st.st_mtim.tv_nsec,
                     std::nullopt};
}

// Walks the file, and returns the newest transaction ID in it.
Result<std::uint64_t> InspectUnowned(const std::filesystem::path& directory, const Fd& file,
                                     SeenUnowned* seen) {
  bool settled = false;
  auto look = LookAt(file, directory / "data.mdb", settled);
  if (!look) return look.error();
  if (seen != nullptr && seen->inspection && seen->id == look->id && seen->bytes == look->bytes &&
      seen->written == look->written) {
    if (auto refusal = Refusal(directory, *seen->inspection)) return *refusal;
  }
  auto inspection = InspectFile(file);
  if (!inspection) return inspection.error();
  auto refusal = Refusal(directory, *inspection);
  if (refusal) {
    if (seen != nullptr && settled && !inspection->moved) {
      *seen = *look;
      seen->inspection = std::move(*inspection);
    }
    return *refusal;
  }
  return inspection->txn_id;
}

}  // namespace

Result<OpenedDatabase> OpenAsObserver(const std::filesystem::path& directory, SeenUnowned* seen) {
  if (auto r = lmdb::CheckVersion(); !r) return r.error();
  if (auto r = CheckPrivateDirectory(directory); !r) return r.error();
  if (auto r = CheckStoreFiles(directory); !r) return r.error();
  const std::filesystem::path path = directory / "data.mdb";
  auto file = OpenFile(path, O_RDONLY);
  if (!file) {
    if (file.error().code != ErrorCode::kNotFound) return file.error();
    return Error{ErrorCode::kNotFound, "there is no store in " + directory.string(),
                 "make one with `waybill start`"};
  }
  auto id = FileIdOf(*file, path);
  if (!id) return id.error();
  auto vouched = OwnerVouchesFor(directory, *id);
  if (!vouched) return vouched.error();
  std::uint64_t txn_id = 0;
  if (!*vouched) {
    auto newest = InspectUnowned(directory, *file, seen);
    if (!newest) return newest.error();
    txn_id = *newest;
  }
  auto database = OpenDatabaseAsObserver(directory, txn_id);
  if (database && database->identity.schema_version < kNewestSchema) {
    return OlderSchema(directory, database->identity.schema_version);
  }
  if (database && database->database_id != *id) {
    return Error{ErrorCode::kDamaged,
                 "data.mdb in " + directory.string() + " was replaced while it was being opened",
                 "try again"};
  }
  return database;
}

Result<void> CheckStillOwned(const OpenedDatabase& database) {
  const StoreFiles::Look look = database.files->LookAgain();
  if (look.state == StoreFiles::State::kSame) return {};
  const bool lost = look.state == StoreFiles::State::kChanged;
  return Error{lost ? ErrorCode::kOwned : ErrorCode::kIo,
               std::string(look.what) + " in " + database.env->directory().string() +
                   (lost ? " under the process that owns the store" : ""),
               lost ? "find out who did that and what else runs there, then close the store and "
                      "open it again"
                    : "try again"};
}

}  // namespace waybill::internal
