#include "migrations/steps/migrate.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/try.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/lmdb/room_ahead.h"
#include "store/opening/backup.h"
#include "store/opening/inspect.h"

namespace waybill::internal {

namespace {

// A step and its direction.
struct Move {
  const Step* step;
  bool up;

  std::uint32_t from() const { return up ? step->from : step->to; }
  std::uint32_t to() const { return up ? step->to : step->from; }
};

std::vector<Move> MovesBetween(std::uint32_t from, std::uint32_t to) {
  std::vector<Move> moves;
  for (const Step& step : Steps()) {
    if (step.from >= from && step.to <= to) moves.push_back({&step, true});
    if (step.from >= to && step.to <= from) moves.push_back({&step, false});
  }
  if (to < from) std::reverse(moves.begin(), moves.end());
  return moves;
}

// The working copy of the store's state in one transaction.
struct Working {
  Working(const OwnedStore& store, MDB_txn* txn, Timestamp clock, const BootTime& boot)
      : identity(store.database.identity), handles(store.database.handles), state(store.state) {
    context.txn = txn;
    context.handles = &handles;
    context.identity = &identity;
    context.directory = &store.database.env->directory();
    context.now = clock;
    context.boot = boot;
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  Identity identity;
  TableHandles handles;
  State state;
  StoreTxn::Context context;
};

Error StepFailed(const Move& move, Error error) {
  error.message = "the step from schema version " + std::to_string(move.from()) + " to " +
                  std::to_string(move.to()) + " failed: " + error.message;
  if (error.code != ErrorCode::kOutcomeUnknown) {
    error.message += "; the store is still of version " + std::to_string(move.from());
  }
  return error;
}

// What a step down loses. No step changes what later ones read for this, so all can be asked before
// the first runs.
Result<std::vector<std::string>> LossesOf(const OwnedStore& store, const Move& move) {
  lmdb::Txn txn;
  const int rc = txn.BeginRead(*store.database.env);
  if (rc != MDB_SUCCESS) {
    return lmdb::MakeError(rc, "reading the store", store.database.env->directory());
  }
  Working working(store, txn.get(), {}, {});
  return move.step->losses(StoreTxn(working.context, working.state));
}

// Writes the main table's records in the form of the store's new version.
Result<void> WriteHeader(Working& working, const Move& move) {
  const StoreTxn before(working.context, working.state);
  const auto payload = TRY(before.GetHeaderRecord(kTrustKey, RecordKind::kTrustJournal));
  const std::vector<std::uint8_t> journal(payload.begin(), payload.end());
  working.identity.schema_version = move.to();
  working.identity.last_migration = std::to_string(move.from()) + " to " +
                                    std::to_string(move.to()) + ": " + std::string(move.step->name);
  StoreTxn after(working.context, working.state);
  TRY(after.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, journal));
  TRY(after.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(working.identity)));
  return after.WriteState();
}

// Drops tables that the version does not have to which the move goes.
Result<void> DropTables(Working& working, const Move& move) {
  for (const TableSpec& spec : kTables) {
    if (!SchemaOf(move.from()).has(spec) || SchemaOf(move.to()).has(spec)) continue;
    const int rc = mdb_drop(working.context.txn, working.handles.of(spec.table), 1);
    if (rc != MDB_SUCCESS) {
      return lmdb::MakeError(rc, "dropping a table", *working.context.directory);
    }
    working.state.digest(spec.table) = {};
    working.handles.tables[Index(spec.table)] = 0;
  }
  return {};
}

// Commits while the store's files are still ours. On success `store` has the working copy.
Result<void> Commit(lmdb::Txn& txn, const Working& working, OwnedStore& store,
                    lmdb::RoomAhead& room) {
  if (auto owned = CheckStillOwned(store.database); !owned) {
    owned.error().message += "; nothing was changed";
    return owned;
  }
  if (auto r = lmdb::CommitOrPutBack(txn, *store.database.env); !r) return r;
  if (auto r = room.Settle(store.database.env->GetInfo()); !r) {
    r.error().message += "; whether the step was made shows when the store is opened again";
    r.error().code = ErrorCode::kOutcomeUnknown;
    return r;
  }
  if (auto owned = CheckStillOwned(store.database); !owned) {
    Error& error = owned.error();
    error.message += error.code == ErrorCode::kOwned
                         ? "; what was migrated may be lost"
                         : "; whether the step was made shows when the store is opened again";
    error.code = ErrorCode::kOutcomeUnknown;
    return owned;
  }
  store.database.identity = working.identity;
  store.database.handles = working.handles;
  store.state = working.state;
  if (store.witness) store.witness->Advance(store.state.commit_sequence);
  return {};
}

Result<MigrationStep> RunStep(OwnedStore& store, const Move& move, const MigrateOptions& options,
                              lmdb::RoomAhead& room) {
  const lmdb::Env& env = *store.database.env;
  room.Make(env.GetInfo());
  lmdb::Txn txn;
  int rc = txn.BeginWrite(env);
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "beginning a write", env.directory());
  Working working(store, txn.get(), options.clock(), options.boot_clock());
  rc = OpenTables(txn.get(), move.to(), true, working.handles);
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "making the tables", env.directory());
  // Steps read and write as the newer version.
  working.identity.schema_version = move.step->to;
  StoreTxn store_txn(working.context, working.state);
  StepRun run{store_txn, options.progress};
  TRY((move.up ? move.step->up : move.step->down)(run));
  const std::uint64_t pages = store_txn.PagesCopied();
  TRY(DropTables(working, move));
  TRY(WriteHeader(working, move));
  room.Make(env.GetInfo(), pages);
  TRY(Commit(txn, working, store, room));
  return MigrationStep{move.from(), move.to(), std::string(move.step->name), run.values_written};
}

// Commits the header once more. Each of LMDB's two meta pages leads to a header, and older code
// takes a newer header under either for damage.
Result<void> SettleBothMetaPages(OwnedStore& store, const MigrateOptions& options,
                                 lmdb::RoomAhead& room) {
  const lmdb::Env& env = *store.database.env;
  room.Make(env.GetInfo());
  lmdb::Txn txn;
  const int rc = txn.BeginWrite(env);
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "beginning a write", env.directory());
  Working working(store, txn.get(), options.clock(), options.boot_clock());
  if (auto r = StoreTxn(working.context, working.state).WriteState(); !r) return r;
  return Commit(txn, working, store, room);
}

Result<void> CheckMigrated(const OwnedStore& store, const std::string& backup) {
  const std::filesystem::path path = store.database.env->directory() / "data.mdb";
  auto file = TRY(OpenFile(path, O_RDONLY));
  auto inspection = TRY(InspectFile(file));
  if (inspection.sound) return {};
  return Error{ErrorCode::kDamaged,
               "after the migration " + path.string() + " fails its check" +
                   (inspection.findings.empty() ? "" : ": " + inspection.findings.front()) +
                   "; the backup is " + backup,
               {},
               Hint::kRestore};
}

Error WouldLose(const std::vector<std::string>& losses) {
  std::string message = "going down would lose";
  for (const std::string& loss : losses) message += (&loss == &losses[0] ? " " : "; ") + loss;
  return {ErrorCode::kConflict, message + "; nothing was changed", {}, Hint::kAcceptLoss};
}

}  // namespace

Result<void> Rewrite(StepRun& run, Table table, std::uint32_t version,
                     FunctionRef<Result<void>(std::vector<std::uint8_t>& payload)> change) {
  constexpr std::size_t kAtOnce = 1024;
  struct Stored {
    Key16 key;
    std::vector<std::uint8_t> payload;
  };
  std::vector<Stored> values;
  // Reads and writes take turns, since a table must not change while it is read.
  do {
    const Key16 next = values.empty() ? Key16() : values.back().key.Next();
    values.clear();
    TRY(run.txn.ForEachFrom(table, next, [&](const Key16& key, Payload payload) -> Result<bool> {
      if (payload.empty()) {
        return Error{ErrorCode::kDamaged,
                     std::string("a value of table ") + SpecOf(table).name +
                         " does not verify; nothing was changed",
                     {},
                     Hint::kRecover};
      }
      values.push_back({key, {payload.begin(), payload.end()}});
      return values.size() < kAtOnce;
    }));
    for (Stored& value : values) {
      TRY(change(value.payload));
      TRY(run.txn.PutAs(SchemaOf(version), table, value.key, value.payload));
      ++run.values_written;
    }
    if (run.progress && !run.progress(run.values_written, run.total)) {
      return Error{ErrorCode::kInterrupted,
                   "the migration was stopped; the store is as it was before the step",
                   "run it again"};
    }
  } while (values.size() == kAtOnce);
  return {};
}

std::span<const Step>& Steps() {
  static const Step all[] = {kStepV1ToV2};
  static_assert(std::size(all) == kNewestSchema - kOldestSchema);
  static std::span<const Step> steps = all;
  return steps;
}

Result<void> CheckVersion(std::uint32_t version) {
  if (version >= kOldestSchema && version <= newest_schema) return {};
  return Error{ErrorCode::kInvalidArgument,
               "there is no schema version " + std::to_string(version) + "; nothing was changed",
               "use " + std::to_string(kOldestSchema) + " to " + std::to_string(newest_schema)};
}

Result<MigrationReport> MigrateStore(OwnedStore& store, const MigrateOptions& options) {
  TRY(CheckVersion(options.to));
  MigrationReport report;
  report.from = store.database.identity.schema_version;
  report.to = options.to;
  const std::vector<Move> moves = MovesBetween(report.from, report.to);
  // A cut leaves no newest tree that lies past the file's end.
  lmdb::RoomAhead room(*store.database.env);
  if (moves.empty()) {
    // An earlier call may have been cut short before this.
    if (report.to != newest_schema && !options.dry_run) {
      TRY(SettleBothMetaPages(store, options, room));
    }
    return report;
  }
  for (const Move& move : moves) {
    if (move.up) continue;
    auto losses = TRY(LossesOf(store, move));
    std::move(losses.begin(), losses.end(), std::back_inserter(report.losses));
  }
  if (options.dry_run) {
    for (const Move& move : moves) {
      report.steps.push_back({move.from(), move.to(), std::string(move.step->name), 0});
    }
    return report;
  }
  if (!report.losses.empty() && !options.accept_loss) return WouldLose(report.losses);

  auto backup = TRY(MakeBackup(store, options.clock()));
  report.backup = backup.path.string();
  for (const Move& move : moves) {
    auto done = RunStep(store, move, options, room);
    if (!done) return StepFailed(move, done.error());
    report.steps.push_back(std::move(*done));
  }
  if (!moves.back().up) {
    if (auto r = SettleBothMetaPages(store, options, room); !r) {
      r.error().message +=
          "; the store is of version " + std::to_string(report.to) +
          ", but code of that version may take it for damaged until this call succeeds";
      return r.error();
    }
  }
  TRY(CheckMigrated(store, report.backup));
  return report;
}

Result<OwnedStore> OpenNewest(const NodeStoreOptions& options, const Product& product,
                              OpeningReport& report) {
  auto store = TRY(OpenAsOwner(options, OnDamage::kRecover, {&product}, report));
  if (store.database.identity.schema_version != newest_schema) {
    report.migration = TRY(MigrateStore(store, {.to = newest_schema,
                                                .progress = options.migration_progress,
                                                .clock = options.clock,
                                                .boot_clock = options.boot_clock}));
  }
  return store;
}

}  // namespace waybill::internal
