#include "store/opening/stale.h"

#include <algorithm>
#include <utility>

#include "store/base/try.h"
#include "store/disk/commit_mark.h"
#include "store/disk/trust.h"
#include "store/opening/backup.h"
#include "store/opening/new_database.h"
#include "store/opening/open_store.h"
#include "store/opening/owner_lock.h"
#include "store/opening/product.h"
#include "store/opening/store_files.h"
#include "store/opening/witness.h"

namespace waybill::internal {

namespace {

constexpr unsigned Only(Says says) { return 1U << static_cast<unsigned>(says); }
constexpr unsigned kAny = ~0U;
constexpr unsigned kNoneLater = Only(Says::kNoLater) | Only(Says::kMayHaveBegun);

struct Row {
  Tree tree;
  unsigned inside;
  unsigned outside;
  Verdict verdict;
};
constexpr Row kRows[] = {
    {Tree::kMissing, Only(Says::kGone), Only(Says::kNotAsked) | Only(Says::kGone), Verdict::kNew},
    {Tree::kMissing, kAny, kAny, Verdict::kLost},
    {Tree::kWhole, Only(Says::kGone) | Only(Says::kSpoilt) | kNoneLater,
     Only(Says::kNotAsked) | Only(Says::kNoLater), Verdict::kGoesOn},
    {Tree::kWhole, kAny, kAny, Verdict::kStale},
    {Tree::kTorn, Only(Says::kMayHaveBegun), Only(Says::kNotAsked) | Only(Says::kNoLater),
     Verdict::kTakenBack},
    {Tree::kTorn, kAny, kAny, Verdict::kDamage},
};

}  // namespace

Verdict VerdictOf(Tree tree, Says inside, Says outside) {
  return std::find_if(std::begin(kRows), std::end(kRows),
                      [&](const Row& row) {
                        return row.tree == tree && (row.inside & Only(inside)) != 0 &&
                               (row.outside & Only(outside)) != 0;
                      })
      ->verdict;
}

std::uint64_t Signs::LastCommitOf(const std::array<std::uint8_t, 16>& uuid) const {
  const std::uint64_t last = witness ? witness->acknowledged : 0;
  return mark && mark->uuid == uuid ? std::max(last, mark->acknowledged) : last;
}

// ---- What the lines say

namespace {

Said SaidInside(const MarkReading& mark, const std::optional<Identity>& identity,
                const std::optional<State>& state, const BootTime& now) {
  if (!mark.exists) return {Says::kGone, {}};
  if (!mark.line) return {Says::kSpoilt, {}};
  if (!identity || !state) return {Says::kNoLater, {}};
  const MarkLine& line = *mark.line;
  const std::uint64_t sequence = state->commit_sequence;
  if (line.uuid != identity->uuid) {
    return {Says::kAnother,
            "commit.mark tells of another store than data.mdb: one of an earlier store was put "
            "back"};
  }
  if (line.acknowledged > sequence) {
    return {Says::kLater, "an older copy of the store was put back: it is at commit " +
                              std::to_string(sequence) + ", and its commit.mark tells of commit " +
                              std::to_string(line.acknowledged)};
  }
  // After a power cut the line may be behind. The time tells where a machine keeps its boot ID.
  const bool booted_since = line.boot_id != now.boot_id || line.written > now.nanoseconds;
  const bool may_have_begun = line.open && (booted_since || line.begun > sequence);
  return {may_have_begun ? Says::kMayHaveBegun : Says::kNoLater, {}};
}

Said SaidOutside(const MarkReading& witness, const std::filesystem::path& path,
                 const Identity& identity, const std::optional<State>& state) {
  const std::string name = "the witness " + path.string();
  if (!witness.exists) {
    return {Says::kGone,
            name + " is gone: the store may be older than it was when that was written last"};
  }
  if (!witness.line) return {Says::kSpoilt, name + " can't be read"};
  const std::uint64_t told = witness.line->acknowledged;
  if (witness.line->uuid != identity.uuid) {
    return {Says::kAnother, name + " tells of another store"};
  }
  if (state && state->commit_sequence < told) {
    return {Says::kLater, "the store is older than its witness " + path.string() +
                              ": it is at commit " + std::to_string(state->commit_sequence) +
                              " of " + std::to_string(told)};
  }
  // Both went on from one commit, so their numbers tell nothing.
  if (identity.left_witness_at != 0 && identity.left_witness_at < told) {
    return {Says::kWentOn,
            "the store is a copy that went on by itself when its witness " + path.string() +
                " was at commit " + std::to_string(identity.left_witness_at) +
                ", and the original went on, too: it is at commit " + std::to_string(told)};
  }
  return {Says::kNoLater, {}};
}

// ---- Which witness is asked

bool NamesPath(const Witness& witness) {
  return witness.kind() == Witness::Kind::kAt || witness.kind() == Witness::Kind::kAnew;
}

Result<std::filesystem::path> PathOf(const Witness& witness) {
  if (!witness.path().empty()) return std::filesystem::absolute(witness.path());
  return Error{ErrorCode::kInvalidArgument, "the witness is not named; nothing was changed"};
}

constexpr const char* kWitness = "the witness";

// Whether a witness can be made there: its directory exists, or that one's does.
Result<void> CheckPlace(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  auto parent_is_there = TRY(Exists(parent));
  if (TRY(IsDirectory(parent_is_there ? parent : parent.parent_path()))) return {};
  return CannotBeAt(kWitness, path, parent.string() + " is not a directory and can't be made",
                    "name a file in a directory that is there");
}

// Whether that is somebody else's file.
Result<bool> IsForeign(const std::filesystem::path& path) {
  auto reading = TRY(ReadMark(path));
  return reading.exists && !reading.is_unfinished;
}

// Checks the place of a witness that the store does not have yet. Somebody else's file in the
// kubelet directory is no error: what to say of it.
Result<std::string> CheckNew(const NodeStoreOptions& options, const std::filesystem::path& path) {
  if (path.filename().empty()) {
    return CannotBeAt(kWitness, path, "it does not name a file", "name a file in that directory");
  }
  if (IsBelow(path, options.directory)) {
    return CannotBeAt(kWitness, path,
                      "it lies in the store " + options.directory.string() +
                          ", and would be lost or put back with it",
                      "keep it elsewhere, by convention in the kubelet directory");
  }
  TRY(CheckPlace(path));
  const auto as_mark = TRY(ReadMark(path, Lines::kTwo));
  if (as_mark.line) {
    return CannotBeAt(kWitness, path, "it is a store's own mark",
                      "name another file, by convention in the kubelet directory");
  }
  std::filesystem::path foreign = path;
  auto is_foreign = TRY(IsForeign(foreign));
  if (!is_foreign) is_foreign = TRY(IsForeign(foreign += ".tmp"));  // it is made through that
  if (!is_foreign) return std::string();
  if (!options.kubelet_directory.empty() && IsBelow(path, options.kubelet_directory)) {
    return "the store has no witness at " + path.string() +
           ": the file there, or at the same with .tmp, is none, and was left alone; move it away, "
           "then start again";
  }
  Error error = CannotBeAt(kWitness, foreign, "the file there is not a witness", "");
  error.hint_code = Hint::kReplaceWitness;
  return error;
}

Result<void> ReadOutside(const NodeStoreOptions& options, const std::optional<Identity>& identity,
                         const std::optional<State>& state, Signs& signs) {
  const Witness::Kind kind = options.witness.kind();
  if (kind == Witness::Kind::kNone) return {};
  const std::filesystem::path before = identity ? identity->witness_path : "";
  signs.path = before;
  if (NamesPath(options.witness)) {
    auto named = TRY(PathOf(options.witness));
    const bool is_new = before.empty() || !IsSameFile(named, before);
    if (is_new) signs.foreign = TRY(CheckNew(options, named));
    if (signs.foreign.empty()) signs.path = std::move(named);
  }
  const std::string unknown = "nobody can read which witness the store has";
  if (signs.path.empty()) {
    if (!identity) signs.outside.why = signs.foreign.empty() ? unknown : signs.foreign;
    return {};
  }
  auto reading = TRY(ReadMark(signs.path));
  signs.is_there = reading.exists;
  signs.witness = reading.line;
  if (!identity) {
    signs.outside.what = reading.exists ? Says::kNoLater : Says::kGone;
    if (!reading.line && kind != Witness::Kind::kAnew) {
      signs.outside.why = unknown + ", and " + signs.path.string() + " does not tell";
    }
    return {};
  }
  const bool is_remembered = !before.empty() && IsSameFile(signs.path, before);
  if (is_remembered && !reading.exists) TRY(CheckPlace(signs.path));
  if (is_remembered || reading.exists) {
    signs.outside = SaidOutside(reading, signs.path, *identity, state);
  }
  const bool is_enough =
      is_remembered || before.empty() || kind == Witness::Kind::kAnew || !signs.outside.why.empty();
  if (is_enough) return {};
  auto remembered = TRY(ReadMark(before));
  // Moved by hand: it has the last commit, which an outdated copy does not.
  const bool is_moved = !remembered.exists && reading.line && state &&
                        reading.line->acknowledged == state->commit_sequence;
  Said said = SaidOutside(remembered, before, *identity, state);
  if (is_moved || said.why.empty()) return {};
  signs.outside = std::move(said);
  signs.witness = remembered.line;
  return {};
}

}  // namespace

Result<Signs> ReadSigns(const NodeStoreOptions& options, const MarkReading& mark,
                        const std::optional<Identity>& identity,
                        const std::optional<State>& state) {
  Signs signs;
  signs.inside = SaidInside(mark, identity, state, options.boot_clock());
  signs.mark = mark.line;
  TRY(ReadOutside(options, identity, state, signs));
  return signs;
}

Result<Signs> ReadSigns(const MarkReading& mark, const Identity& identity, const State& state,
                        const BootTime& now) {
  Signs signs;
  signs.inside = SaidInside(mark, identity, state, now);
  signs.mark = mark.line;
  signs.path = identity.witness_path;
  if (signs.path.empty()) return signs;
  auto reading = TRY(ReadMark(signs.path));
  signs.outside = SaidOutside(reading, signs.path, identity, state);
  signs.witness = reading.line;
  return signs;
}

Result<std::string> FindLoss(const std::filesystem::path& directory, const Signs& signs,
                             bool owned_before) {
  const bool is_told = signs.VerdictFor(Tree::kMissing) == Verdict::kLost;
  if (TRY(Exists(directory / "lock.mdb"))) return "data.mdb is gone from " + directory.string();
  if (!signs.foreign.empty()) return signs.foreign;
  if (is_told && signs.is_there) return std::string("the store that the witness tells of is gone");
  const std::string left = "of the store in " + directory.string() + " only ";
  if (TRY(Exists(directory / "quarantine"))) return left + "quarantine/ is left";
  auto backups = TRY(FindBackups(directory));
  if (!backups.empty()) return left + "backup/ is left";
  if (is_told) return left + "commit.mark is left";
  if (owned_before) return left + "owner.lock is left";
  return std::string();
}

// ---- Whose the witness is

namespace {

bool HasLiveOwner(const std::filesystem::path& directory) {
  const auto owner = LookAtOwner(directory);
  return owner && owner->is_owned;
}

// The directory that the line names, if it is another one, whatever is there now; empty: it is this
// one, or none of a store `uuid`.
std::filesystem::path OtherDirectoryOf(const MarkLine& line,
                                       const std::array<std::uint8_t, 16>& uuid,
                                       const std::filesystem::path& directory) {
  if (line.uuid != uuid || line.directory.empty()) return {};
  const auto own = FileIdOf(WithoutTrailingSlashes(directory));
  if (own && *own == line.directory_id) return {};
  const auto there = FileIdOf(line.directory);
  if (own && there && *there == *own) return {};
  return line.directory;
}

// The line that names the original, if this opening must leave that one's witness alone.
std::optional<MarkLine> LineOfOriginal(const NodeStoreOptions& options,
                                       const std::filesystem::path& witness,
                                       const Identity& identity,
                                       const std::optional<MarkLine>& inside,
                                       const Product& product) {
  if (witness.empty() || options.leaves_witness) return std::nullopt;
  const auto reading = ReadMark(witness);
  std::optional<MarkLine> line;
  if (reading && reading->line) {
    line = reading->line;
  } else if (IsSameFile(witness, identity.witness_path)) {
    line = inside;
  }
  if (!line) return std::nullopt;
  const bool runs_alone = !product.outlives_loss() && identity.purpose == product.purpose();
  const bool is_restart = !options.continues_pulls && (NamesPath(options.witness) || runs_alone);
  const bool takes_over = !options.kubelet_directory.empty() || is_restart;
  // In doubt a command does nothing to the original, unless an operator says that this is the
  // newest.
  const bool is_sure = takes_over || options.witness.kind() == Witness::Kind::kAnew;
  const std::filesystem::path original =
      is_sure ? OriginalOf(*line, identity.uuid, options.directory)
              : OtherDirectoryOf(*line, identity.uuid, options.directory);
  const bool is_left = !original.empty() && (!takes_over || HasLiveOwner(original));
  return is_left ? line : std::nullopt;
}

}  // namespace

std::filesystem::path OriginalOf(const MarkLine& line, const std::array<std::uint8_t, 16>& uuid,
                                 const std::filesystem::path& directory) {
  std::filesystem::path other = OtherDirectoryOf(line, uuid, directory);
  if (other.empty()) return {};
  // What can't be looked at may be there.
  const auto data = FileIdOf(other / "data.mdb");
  if (!data && data.error().code == ErrorCode::kNotFound) return {};
  const auto mark = ReadCommitMark(other);
  if (mark && mark->line && mark->line->uuid != uuid) return {};
  return other;
}

std::filesystem::path OriginalOf(const Identity& identity, const std::filesystem::path& directory) {
  if (identity.witness_path.empty()) return {};
  const auto reading = ReadMark(identity.witness_path);
  if (!reading || !reading->line) return {};
  return OriginalOf(*reading->line, identity.uuid, directory);
}

// ---- What an opening makes of it

namespace {

Result<void> SayStale(const NodeStoreOptions& options, const Signs& signs, const Product& product,
                      OwnedStore& store, OpeningReport& report) {
  if (!signs.stale().empty()) report.findings.push_back(signs.stale());
  // A rebuilt store took it into account already.
  if (report.set_aside) return {};
  const Identity& identity = store.database.identity;
  if (signs.VerdictFor(Tree::kWhole) == Verdict::kStale) {
    TRY(CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
      // Past both lines: otherwise the same old copy could come back unnoticed.
      txn.state().commit_sequence =
          std::max(txn.state().commit_sequence, signs.LastCommitOf(identity.uuid));
      TRY(SetDistrust(txn, {DegradedKind::kStoreStale, signs.stale()}));
      // Newer ones may have been stricter.
      TRY(txn.PutSettings(kStrictestSettings));
      return product.DropStale(txn, signs.stale(), report);
    }));
    store.database.identity.settings = kStrictestSettings;
  }
  if (signs.foreign.empty()) return {};
  report.warnings.push_back(signs.foreign);
  if (!identity.witness_path.empty()) return {};
  return CommitAtOpening(options, store, [&](StoreTxn& txn) {
    return SetDistrust(txn, {DegradedKind::kStoreStale, signs.foreign});
  });
}

void SayCopy(const std::filesystem::path& witness, const std::string& original,
             OpeningReport& report) {
  report.copy_of = original;
  report.warnings.push_back("the witness " + witness.string() + " is that of the store in " +
                            original +
                            ", which this one was copied or moved from, and is left alone; an "
                            "older copy of this one may go unseen until it runs a node or has "
                            "a witness of its own");
}

// The line inside takes the place of the one that was found, if that does not say the same.
Result<void> SettleMark(const NodeStoreOptions& options, const MarkReading& found,
                        const Product& product, const OwnedStore& store) {
  if (!found.exists) return {};
  const bool is_own = found.line && found.line->uuid == store.line.uuid;
  // A valid mark would keep what this opening has still to make void.
  if (!is_own && !product.outlives_loss()) return {};
  MarkLine line = store.line;
  const bool is_shut = is_own && !found.line->open;
  if (is_shut) {
    line.boot_id = found.line->boot_id;
    line.written = found.line->written;
    if (line == *found.line) return {};
  }
  const BootTime now = options.boot_clock();
  line.boot_id = now.boot_id;
  line.written = now.nanoseconds;
  const auto written = WriteCommitMark(options.directory, line);
  // One that is shut may be behind.
  if (!written && !is_shut) return written.error();
  return {};
}

}  // namespace

Result<void> SettleSigns(const NodeStoreOptions& options, const Signs& signs,
                         const MarkReading& mark, const Product& product, OwnedStore& store,
                         OpeningReport& report) {
  if (!report.created) TRY(SayStale(options, signs, product, store, report));
  const Identity known = store.database.identity;
  const std::filesystem::path before = known.witness_path;
  // A rebuild may have found a path that could not be read before.
  const bool keeps_path =
      options.witness.kind() == Witness::Kind::kRemembered || !signs.foreign.empty();
  const std::filesystem::path wanted = keeps_path ? before : signs.path;
  const auto of_before = LineOfOriginal(options, before, known, signs.mark, product);
  const auto of_wanted = LineOfOriginal(options, wanted, known, signs.mark, product);
  const bool is_copy = of_wanted.has_value();
  const std::filesystem::path path = is_copy ? before : wanted;
  const bool moves = path.empty() || !IsSameFile(before, path);
  // A trial without the witness would be one more store of the original's name.
  const bool leaves_it = options.leaves_witness && !before.empty();
  const bool forks = moves && (of_before || leaves_it);
  Identity identity = known;
  identity.witness_path = path.string();
  identity.left_witness_at = 0;
  if (is_copy) {
    SayCopy(wanted, of_wanted->directory, report);
    store.line = *of_wanted;
    const auto left = ReadMark(path);
    if (left && left->line) identity.left_witness_at = left->line->acknowledged;
  } else {
    const auto place = WithoutTrailingSlashes(std::filesystem::absolute(options.directory));
    store.line.directory_id = TRY(FileIdOf(place));
    store.line.directory = place.string();
    // A trial goes on by itself: once the original does, too, their numbers tell nothing.
    const bool is_trial =
        options.leaves_witness && signs.witness && signs.witness->uuid == known.uuid;
    if (is_trial) identity.left_witness_at = signs.witness->acknowledged;
  }
  if (forks) {
    // Its commits would have the numbers of the original's.
    auto other = TRY(NewIdentity(options.clock()));
    identity.uuid = other.uuid;
    store.had_mark = false;
  }
  auto takes_over =
      TRY(report.created ? Result<bool>(false) : product.TakesOver(options, known, store.state));
  const auto line_now = [&] {
    return ShutAt(identity.uuid, store.state.commit_sequence, store.line);
  };
  if (!path.empty() && !is_copy) {
    report.witness_made = !signs.is_there && !report.created;
    report.witness_in_store = IsBelow(path, options.directory);
    if (!options.leaves_witness) store.witness = TRY(WitnessFile::Open(path, line_now()));
  }
  const bool stays =
      path == before && !takes_over && !forks && identity.left_witness_at == known.left_witness_at;
  if (!stays) {
    TRY(CommitAtOpening(options, store, [&](StoreTxn& txn) -> Result<void> {
      if (takes_over) TRY(product.OnTakeOver(txn, options));
      return txn.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity, EncodeIdentity(identity));
    }));
    store.database.identity = identity;
  }
  store.line = line_now();
  TRY(SettleMark(options, mark, product, store));
  const bool is_stale =
      signs.VerdictFor(Tree::kWhole) == Verdict::kStale && !report.created && !report.set_aside;
  if (moves && !before.empty() && !of_before && !is_stale && !options.leaves_witness) {
    WitnessFile::Retire(before, store.line);
  }
  return {};
}

}  // namespace waybill::internal
