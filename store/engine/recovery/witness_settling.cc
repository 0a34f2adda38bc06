#include "store/engine/recovery/witness_settling.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "store/base/try.h"
#include "store/engine/database/commit_mark.h"
#include "store/engine/recovery/new_database.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/owner_lock.h"
#include "store/engine/recovery/product.h"
#include "store/engine/trust/trust.h"

namespace waybill::internal {

namespace {

bool HasLiveOwner(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "owner.lock";
  const auto file = OpenFile(path, O_RDONLY);
  if (!file) return false;
  const auto unowned = CheckUnowned(*file, path);
  return !unowned && unowned.error().code == ErrorCode::kOwned;
}

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
  auto parent_is_there = TRY(Exists(parent));
  if (TRY(IsDirectory(parent_is_there ? parent : parent.parent_path()))) return {};
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
  if (reading.exists && !reading.is_unfinished) return Foreign(path);
  // WriteFileDurably writes there first.
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  const WitnessReading unfinished = ReadWitness(temporary);
  if (unfinished.error) return *unfinished.error;
  if (unfinished.exists && !unfinished.is_unfinished) return Foreign(temporary);
  return {};
}

// The same, but where it is the kubelet directory's, somebody else's file there is only noted.
Result<void> CheckNew(const NodeStoreOptions& options, const WitnessReading& reading,
                      Hearing& hearing) {
  auto checked = CheckNew(options.directory, hearing.path, reading);
  if (checked || checked.error().hint_code != Hint::kReplaceWitness ||
      options.kubelet_directory.empty() || !IsBelow(hearing.path, options.kubelet_directory)) {
    return checked;
  }
  hearing.is_foreign = true;
  hearing.foreign = "the store has no witness at " + hearing.path.string() +
                    ": the file there, or at the same with .tmp, is none, and was left alone; "
                    "move it away, then start again";
  hearing.contradiction = hearing.foreign;
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
  // Both went on from one commit, so their numbers tell nothing.
  if (identity.left_witness_at != 0 &&
      identity.left_witness_at < witness.testimony->commit_sequence) {
    return "the store is a copy that went on by itself when its witness " + path.string() +
           " was at commit " + std::to_string(identity.left_witness_at) +
           ", and the original went on, too: it is at commit " +
           std::to_string(witness.testimony->commit_sequence);
  }
  return {};
}

// The other directory that keeps its witness, although a store was copied or moved from there;
// empty: this opening may write the witness. One that runs a node must: otherwise the original
// could run it later, and not know what was forgotten here. So must any owner that names the
// witness and is a restart. Commands on a copy do nothing to the original. A dry run plays in a
// copy, and is asked nothing.
std::filesystem::path WhoseWitness(const NodeStoreOptions& options,
                                   const std::filesystem::path& witness, const Identity& identity,
                                   const Product& product) {
  if (witness.empty() || options.leaves_witness) return {};
  const bool runs_alone = !product.outlives_loss() && identity.purpose == product.purpose();
  const bool is_restart = !options.continues_pulls && (NamesPath(options.witness) || runs_alone);
  if (options.kubelet_directory.empty() && !is_restart) {
    // In doubt, unless the operator says that this is the newest.
    return options.witness.kind() == Witness::Kind::kAnew
               ? OriginalOf(witness, identity.uuid, options.directory)
               : OtherOwnerOf(witness, identity.uuid, options.directory);
  }
  std::filesystem::path original = OriginalOf(witness, identity.uuid, options.directory);
  return !original.empty() && HasLiveOwner(original) ? original : std::filesystem::path();
}

// The mark told of another store.
Result<void> MarkAsOwn(const NodeStoreOptions& options, const Identity& identity,
                       const OwnedStore& store) {
  const std::uint64_t sequence = store.state.commit_sequence;
  return WriteCommitMark(options.directory, {identity.uuid, {}, false, sequence, sequence, 0});
}

}  // namespace

Result<Hearing> HearWitnessOfNewStore(const NodeStoreOptions& options) {
  Hearing hearing;
  if (!NamesPath(options.witness)) return hearing;
  auto path = TRY(PathOf(options.witness));
  hearing.path = std::move(path);
  const WitnessReading reading = ReadWitness(hearing.path);
  if (reading.error) return *reading.error;
  TRY(CheckNew(options, reading, hearing));
  hearing.is_there = reading.exists || hearing.is_foreign;
  hearing.testimony = reading.testimony;
  return hearing;
}

Result<Hearing> HearWitness(const NodeStoreOptions& options,
                            const std::optional<Identity>& identity,
                            const std::optional<State>& state) {
  Hearing hearing;
  if (options.witness.kind() == Witness::Kind::kNone) return hearing;
  const std::filesystem::path before = identity ? identity->witness_path : "";
  if (NamesPath(options.witness)) {
    hearing.path = TRY(PathOf(options.witness));
  } else {
    hearing.path = before;
    if (!identity) hearing.contradiction = "nobody can read which witness the store has";
  }
  if (hearing.path.empty()) return hearing;
  const WitnessReading reading = ReadWitness(hearing.path);
  if (reading.error) return *reading.error;
  const bool is_remembered = !before.empty() && IsSameFile(hearing.path, before);
  const bool is_gone = is_remembered && !reading.exists;
  TRY(!is_remembered ? CheckNew(options, reading, hearing)
      : is_gone      ? CheckPlace(hearing.path)
                     : Result<void>());
  hearing.is_there = reading.exists || hearing.is_foreign;
  hearing.testimony = reading.testimony;
  if (hearing.is_foreign) {
    if (!identity) return hearing;
    hearing.contradiction.clear();
    if (before.empty()) return hearing;
    const WitnessReading remembered = ReadWitness(before);
    if (remembered.error) return *remembered.error;
    if (!remembered.exists) TRY(CheckPlace(before));
    hearing.is_there = remembered.exists;
    hearing.testimony = remembered.testimony;
    hearing.contradiction = ContradictionOf(remembered, before, *identity, state);
    return hearing;
  }
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

std::uint64_t Hearing::LastCommitOf(const std::array<std::uint8_t, 16>& uuid) const {
  std::uint64_t last = testimony ? testimony->commit_sequence : 0;
  if (mark && mark->uuid == uuid) last = std::max(last, mark->commit_sequence);
  return last;
}

std::filesystem::path OriginalOf(const Identity& identity, const std::filesystem::path& directory) {
  if (identity.witness_path.empty()) return {};
  return OriginalOf(identity.witness_path, identity.uuid, directory);
}

std::string AskMark(const std::optional<MarkedCommits>& mark, const Identity& identity,
                    const State& state) {
  if (!mark) return {};
  if (mark->uuid != identity.uuid) {
    return "commit.mark tells of another store than data.mdb: one of an earlier store was put back";
  }
  if (mark->acknowledged <= state.commit_sequence) return {};
  return "an older copy of the store was put back: it is at commit " +
         std::to_string(state.commit_sequence) + ", and its commit.mark tells of commit " +
         std::to_string(mark->acknowledged);
}

void HearMark(const std::optional<MarkedCommits>& mark, const std::optional<Identity>& identity,
              const std::optional<State>& state, Hearing& hearing) {
  if (!mark) return;
  hearing.mark = Testimony{mark->uuid, mark->acknowledged};
  if (!identity || !state || !hearing.contradiction.empty()) return;
  hearing.contradiction = AskMark(mark, *identity, *state);
}

Result<std::string> AskRememberedWitness(const Identity& identity, const State& state) {
  if (identity.witness_path.empty()) return std::string();
  const WitnessReading reading = ReadWitness(identity.witness_path);
  if (reading.error) return *reading.error;
  return ContradictionOf(reading, identity.witness_path, identity, state);
}

Result<void> SettleWitness(const NodeStoreOptions& options, const Hearing& hearing,
                           const Product& product, OwnedStore& store, OpeningReport& report) {
  OpenedDatabase& database = store.database;
  // A rebuild may have found a path that could not be read before.
  const bool remembers = options.witness.kind() == Witness::Kind::kRemembered;
  const std::filesystem::path before = database.identity.witness_path;
  std::filesystem::path path = remembers || hearing.is_foreign ? before : hearing.path;
  // A new or rebuilt store took the contradiction into account already.
  const bool is_contradicted =
      !hearing.contradiction.empty() && !report.created && !report.set_aside;
  if (!hearing.contradiction.empty() && !report.created) {
    report.findings.push_back(hearing.contradiction);
  }
  if (is_contradicted) {
    TRY(CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
      // Past the witness and the mark: otherwise the same old copy could come back unnoticed.
      txn.state().commit_sequence =
          std::max(txn.state().commit_sequence, hearing.LastCommitOf(database.identity.uuid));
      if (auto r = SetDistrust(txn, {DegradedKind::kStoreStale, hearing.contradiction}); !r)
        return r;
      txn.Touch();
      return product.DropStale(txn, hearing.contradiction, report);
    }));
    if (hearing.mark && hearing.mark->uuid != database.identity.uuid) {
      if (auto marked = MarkAsOwn(options, database.identity, store); !marked) return marked;
    }
  }
  if (hearing.is_foreign && !report.created && !report.set_aside) {
    report.warnings.push_back(hearing.foreign);
    if (before.empty()) {
      TRY(CommitAtOpening(options, store, [&](StoreTxn& txn) {
        return SetDistrust(txn, {DegradedKind::kStoreStale, hearing.foreign});
      }));
    }
  }
  const bool before_is_anothers =
      !WhoseWitness(options, before, database.identity, product).empty();
  const std::filesystem::path original = WhoseWitness(options, path, database.identity, product);
  if (!original.empty()) {
    report.copy_of = original.string();
    report.warnings.push_back("the witness " + path.string() + " is that of the store in " +
                              original.string() +
                              ", which this one was copied or moved from, and is left alone; an "
                              "older copy of this one may go unseen until it runs a node or has "
                              "a witness of its own");
  }
  const bool has_witness = original.empty();
  if (!has_witness) path = before;
  Identity identity = database.identity;
  // With a witness of its own or none, a copy is another store from now on: its commits would have
  // the numbers of the original's.
  const bool forks = before_is_anothers && (path.empty() || !IsSameFile(before, path));
  if (forks) {
    auto other = TRY(NewIdentity(options.clock()));
    identity.uuid = other.uuid;
  }
  identity.left_witness_at = 0;
  if (!has_witness) {
    const WitnessReading left = ReadWitness(path);
    if (left.testimony) identity.left_witness_at = left.testimony->commit_sequence;
  }
  auto takes_over =
      TRY(hearing.path.empty() || report.created
              ? Result<bool>(false)
              : product.TakesOver(options, hearing.path, database.identity, store.state));
  if (!path.empty() && has_witness) {
    report.witness_made = !hearing.is_there && !report.created;
    report.witness_in_store = IsBelow(path, options.directory);
  }
  if (!path.empty() && has_witness && !options.leaves_witness) {
    store.witness = TRY(WitnessFile::Open(path, {identity.uuid, store.state.commit_sequence}));
    auto noted = NoteOwner(path, identity.uuid, options.directory);
    if (!noted) {
      report.warnings.push_back(
          "nothing says beside the witness " + path.string() +
          " whose it is, so a copy of this store may write it: " + noted.error().message);
    }
  }
  const bool stays = path == before && !takes_over && !forks &&
                     identity.left_witness_at == database.identity.left_witness_at;
  if (stays) return {};
  identity.witness_path = path.string();
  TRY(CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
    if (takes_over) TRY(product.OnTakeOver(txn, options));
    return txn.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(identity));
  }));
  database.identity = identity;
  if (forks) {
    store.had_mark = false;
    if (auto marked = MarkAsOwn(options, identity, store); !marked) return marked;
  }
  const Testimony now{identity.uuid, store.state.commit_sequence};
  if (store.witness) store.witness->Advance(now.commit_sequence);
  if (!options.leaves_witness && !before.empty() && !before_is_anothers && !is_contradicted &&
      (path.empty() || !IsSameFile(before, path))) {
    WitnessFile::Retire(before, now);
  }
  return {};
}

}  // namespace waybill::internal
