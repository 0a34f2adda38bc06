#include "store/recovery/witness_settling.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "store/database/evidence_tables.h"
#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"
#include "store/recovery/open_store.h"
#include "store/trust/gap.h"
#include "store/trust/trust.h"
#include "store/userns/lost_ranges.h"

namespace waybill::internal {

namespace {

bool NamesPath(const Witness& witness) {
  return witness.kind() == Witness::Kind::kAt || witness.kind() == Witness::Kind::kAnew;
}

Result<std::filesystem::path> PathOf(const Witness& witness) {
  if (!witness.path().empty()) return std::filesystem::absolute(witness.path());
  return Error{ErrorCode::kInvalidArgument, "the witness is not named; nothing was changed"};
}

Error Foreign(const std::filesystem::path& path) {
  return {ErrorCode::kInvalidArgument,
          "the witness can't be made at " + path.string() +
              ": the file there is not a witness; nothing was changed",
          {},
          Hint::kReplaceWitness};
}

// Whether a witness can be made there: its directory exists, or that one's does.
Result<void> CheckPlace(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  auto parent_is_there = Exists(parent);
  if (!parent_is_there.has_value()) return parent_is_there.error();
  auto place = IsDirectory(*parent_is_there ? parent : parent.parent_path());
  if (!place.has_value()) return place.error();
  if (*place) return {};
  return Error{ErrorCode::kInvalidArgument,
               "the witness can't be made at " + path.string() + ": " + parent.string() +
                   " is not a directory and can't be made; nothing was changed",
               "name a file in a directory that is there"};
}

// Checks the place of a witness that the store does not have yet.
Result<void> CheckNew(const std::filesystem::path& directory, const std::filesystem::path& path,
                      const WitnessReading& reading) {
  if (path.filename().empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the witness " + path.string() + " is no file; nothing was changed",
                 "name a file in that directory"};
  }
  if (IsBelow(path, directory)) {
    return Error{ErrorCode::kInvalidArgument,
                 "the witness " + path.string() + " lies in the store " + directory.string() +
                     ", and would be lost or put back with it; nothing was changed",
                 "keep it elsewhere, by convention in the kubelet directory"};
  }
  if (auto r = CheckPlace(path); !r) return r;
  if (reading.exists && !reading.claims_to_be_one) return Foreign(path);
  // WriteFileDurably writes there first.
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  std::error_code ignored;
  const WitnessReading unfinished = ReadWitness(temporary);
  if (unfinished.error) return *unfinished.error;
  const bool is_empty =
      std::filesystem::is_regular_file(std::filesystem::symlink_status(temporary, ignored)) &&
      std::filesystem::is_empty(temporary, ignored);
  if (unfinished.exists && !unfinished.claims_to_be_one && !is_empty) return Foreign(temporary);
  return {};
}

// Why a witness that the store has contradicts it; empty: it does not.
std::string ContradictionOf(const WitnessReading& witness, const std::filesystem::path& path,
                            const Identity& identity, const std::optional<State>& state) {
  if (!witness.exists) {
    return "the witness " + path.string() +
           " is gone: the store may be older than it was when that was written last";
  }
  if (!witness.testimony) return "the witness " + path.string() + " can't be read";
  if (witness.testimony->uuid != identity.uuid) {
    return "the witness " + path.string() + " tells of another store";
  }
  if (state && state->commit_sequence < witness.testimony->commit_sequence) {
    return "the store is older than its witness " + path.string() + ": it is at commit " +
           std::to_string(state->commit_sequence) + " of " +
           std::to_string(witness.testimony->commit_sequence);
  }
  return {};
}

// A stale record may have credentials that were revoked since. Its image stays on record, and must
// be verified again.
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
  // Likewise: what the store says was preloaded may be out of date.
  return DropFromLedger(txn, [](const LedgerEntry&) { return true; });
}

// The gap that an existing store finds when it first takes a kubelet directory over, which is when
// its witness comes there.
Result<Distrust> GapAtTakeOver(const OpenOptions& options, const std::filesystem::path& witness,
                               const OwnedStore& store) {
  const bool takes_over = DetectsGap(options) && !options.kubelet_directory.empty() &&
                          IsSameFile(witness, WitnessIn(options.kubelet_directory)) &&
                          !IsSameFile(store.database.identity.witness_path, witness) &&
                          store.state.digest(Table::kImported).count == 0;
  return takes_over ? FirstGap(options.kubelet_directory) : Distrust();
}

}  // namespace

Result<Hearing> HearWitnessOfNewStore(const OpenOptions& options) {
  Hearing hearing;
  if (!NamesPath(options.witness)) return hearing;
  auto path = PathOf(options.witness);
  if (!path) return path.error();
  hearing.path = std::move(*path);
  const WitnessReading reading = ReadWitness(hearing.path);
  if (reading.error) return *reading.error;
  if (auto r = CheckNew(options.directory, hearing.path, reading); !r) return r.error();
  hearing.is_there = reading.exists;
  hearing.testimony = reading.testimony;
  return hearing;
}

Result<Hearing> HearWitness(const OpenOptions& options, const std::optional<Identity>& identity,
                            const std::optional<State>& state) {
  Hearing hearing;
  if (options.witness.kind() == Witness::Kind::kNone) return hearing;
  const std::filesystem::path before = identity ? identity->witness_path : "";
  if (NamesPath(options.witness)) {
    auto path = PathOf(options.witness);
    if (!path) return path.error();
    hearing.path = std::move(*path);
  } else {
    hearing.path = before;
    if (!identity) hearing.contradiction = "nobody can read which witness the store has";
  }
  if (hearing.path.empty()) return hearing;
  const WitnessReading reading = ReadWitness(hearing.path);
  if (reading.error) return *reading.error;
  const bool is_remembered = !before.empty() && IsSameFile(hearing.path, before);
  const bool is_gone = is_remembered && !reading.exists;
  const auto may_be_made = !is_remembered ? CheckNew(options.directory, hearing.path, reading)
                           : is_gone      ? CheckPlace(hearing.path)
                                          : Result<void>();
  if (!may_be_made) return may_be_made.error();
  hearing.is_there = reading.exists;
  hearing.testimony = reading.testimony;
  if (!identity) {
    if (!reading.testimony && options.witness.kind() != Witness::Kind::kAnew) {
      hearing.contradiction = "nobody can read which witness the store has, and " +
                              hearing.path.string() + " does not tell";
    }
    return hearing;
  }
  if (reading.exists || is_remembered) {
    hearing.contradiction = ContradictionOf(reading, hearing.path, *identity, state);
  }
  if (!hearing.contradiction.empty() || is_remembered || before.empty() ||
      options.witness.kind() == Witness::Kind::kAnew) {
    return hearing;
  }
  const WitnessReading old = ReadWitness(before);
  if (old.error) return *old.error;
  // Moved by hand: it has the last commit, which an outdated copy does not.
  const bool is_moved = !old.exists && reading.testimony && state &&
                        reading.testimony->commit_sequence == state->commit_sequence;
  if (is_moved) return hearing;
  hearing.contradiction = ContradictionOf(old, before, *identity, state);
  if (!hearing.contradiction.empty()) hearing.testimony = old.testimony;
  return hearing;
}

Result<std::string> AskRememberedWitness(const Identity& identity, const State& state) {
  if (identity.witness_path.empty()) return std::string();
  const WitnessReading reading = ReadWitness(identity.witness_path);
  if (reading.error) return *reading.error;
  return ContradictionOf(reading, identity.witness_path, identity, state);
}

Result<void> SettleWitness(const OpenOptions& options, const Hearing& hearing, OwnedStore& store,
                           RecoveryReport& report) {
  OpenedDatabase& database = store.database;
  // A rebuild may have found a path that could not be read before.
  const bool remembers = options.witness.kind() == Witness::Kind::kRemembered;
  const std::filesystem::path path =
      remembers ? std::filesystem::path(database.identity.witness_path) : hearing.path;
  // A new or rebuilt store took the contradiction into account already.
  const bool is_contradicted =
      !hearing.contradiction.empty() && !report.created && !report.set_aside;
  if (!hearing.contradiction.empty() && !report.created) {
    report.findings.push_back(hearing.contradiction);
  }
  if (is_contradicted) {
    auto distrusted = CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
      if (hearing.testimony) {
        // Past the witness: otherwise the same old copy could come back unnoticed.
        txn.state().commit_sequence =
            std::max(txn.state().commit_sequence, hearing.testimony->commit_sequence);
      }
      if (auto r = SetDistrust(txn, {TrustKind::kStoreStale, hearing.contradiction}); !r) return r;
      if (auto r = DropCredentials(txn, report); !r) return r;
      txn.Touch();
      if (database.identity.purpose != Purpose::kStreaming) {
        if (auto r = HoldLostRanges(txn, hearing.contradiction); !r) return r;
      }
      return {};
    });
    if (!distrusted) return distrusted;
  }
  const std::filesystem::path before = database.identity.witness_path;
  auto gap = path.empty() || report.created ? Result<Distrust>(Distrust())
                                            : GapAtTakeOver(options, path, store);
  if (!gap) return gap.error();
  if (!path.empty()) {
    report.witness_made = !hearing.is_there && !report.created;
    report.witness_in_store = IsBelow(path, options.directory);
  }
  if (!path.empty() && !options.leaves_witness) {
    auto file = WitnessFile::Open(path, {database.identity.uuid, store.state.commit_sequence});
    if (!file) return file.error();
    store.witness = std::move(*file);
  }
  if (path == before && gap->empty()) return {};
  Identity identity = database.identity;
  identity.witness_path = path.string();
  auto remembered = CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
    if (!gap->empty()) {
      if (auto r = NoteGap(txn, *gap); !r) return r;
    }
    return txn.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(identity));
  });
  if (!remembered) return remembered;
  database.identity = identity;
  const Testimony now{identity.uuid, store.state.commit_sequence};
  if (store.witness) store.witness->Advance(now.commit_sequence);
  if (!options.leaves_witness && !before.empty() && !is_contradicted &&
      (path.empty() || !IsSameFile(before, path))) {
    WitnessFile::Retire(before, now);
  }
  return {};
}

}  // namespace waybill::internal
