#include "store/node/upkeep/node_product.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/open_pulls.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/records/typed_tables.h"
#include "store/node/upkeep/carry_over.h"
#include "store/node/upkeep/restore_ranges.h"
#include "store/node/userns/host_ids.h"

namespace waybill::internal {

namespace {

// A stale record may have credentials that were revoked since: its image stays on record, and must
// be verified again. Likewise, what the store says was preloaded may be out of date.
Result<void> DropWhatOpens(StoreTxn& txn, OpeningReport& report) {
  Aliases aliases;
  Images images(txn, aliases);
  auto rows = TRY(images.All([](const ImageRow& row) { return row.pulled || row.preloaded; }));
  bool any_preloaded = false;
  for (ImageRow& row : rows) {
    any_preloaded = any_preloaded || row.preloaded;
    if (!row.pulled) {
      TRY(images.Unload(std::move(row)));
      continue;
    }
    ++report.records_without_credentials;
    row.pulled->entries.clear();
    row.preloaded.reset();
    TRY(images.Put(std::move(row), Images::Confirms::kYes));
  }
  if (any_preloaded) NoteEvidenceRemoved(txn);
  return {};
}

Result<void> RebuildHostIds(StoreTxn& txn, const Rebuilding& from) {
  TRY(CarryHostIds(txn, from.salvaged));
  const bool lost = !from.newest || !from.HasAll(Table::kHostIds);
  return lost ? HoldLostRanges(txn, from.reason) : Result<void>();
}

// Whose the digests are that it has, the next list tells.
void ForgetAliases(ImageRow& row) {
  row.aliases.clear();
  row.alias.reset();
  row.listed = false;
  if (SpellingOf(row.Ref()) != row.subject) row.ref.clear();
}

// Of the replaced store, what proves that the backup's is not out of date.
class Replaceds {
 public:
  explicit Replaceds(const Restoring& from)
      // An unreadable file closes an image under every alias, and the backup may lack some.
      : any_unreadable_(!from.replaced.values.of(Table::kQuarantine).empty() ||
                        !from.values.of(Table::kQuarantine).empty()) {
    if (!from.replaced.current) return;
    for (ImageRow& row : from.replaced.values.All(Table::kImages, DecodeImage)) {
      rows_.emplace(std::pair(row.subject, row.runtime_handler), std::move(row));
    }
  }

  // Credentials that the replaced store does not have as well may have been revoked since. Of the
  // others its proofs count: it may have proven them again, or lost their time.
  bool KeepCredentials(ImageRow& row) const {
    if (row.pulled->entries.empty()) return true;
    const ImageRow* const there = Find(row);
    const bool has =
        there != nullptr && there->pulled && there->pulled->entries == row.pulled->entries;
    if (has) row.pulled->entries = there->pulled->entries;
    return has;
  }
  // Another image may have one of its digests since.
  void LeaveKnown(ImageRow& row) const {
    const ImageRow* const there = Find(row);
    if (there == nullptr) return ForgetAliases(row);
    row.alias = there->alias;
    row.listed = row.listed && there->listed;
    std::erase_if(row.aliases, [&](const std::string& alias) {
      return std::ranges::find(there->aliases, alias) == there->aliases.end();
    });
    const bool leads_here = std::ranges::any_of(row.aliases, [&](const std::string& alias) {
      return SpellingOf(alias) == SpellingOf(row.Ref());
    });
    if (!leads_here && SpellingOf(row.Ref()) != row.subject) row.ref.clear();
  }
  bool KeepPreloaded(const ImageRow& row) const {
    const ImageRow* const there = Find(row);
    return !any_unreadable_ && there != nullptr && there->preloaded == row.preloaded &&
           there->absent == row.absent;
  }

 private:
  const ImageRow* Find(const ImageRow& row) const {
    const auto at = rows_.find({row.subject, row.runtime_handler});
    return at == rows_.end() ? nullptr : &at->second;
  }

  std::map<std::pair<std::string, std::string>, ImageRow> rows_;
  const bool any_unreadable_;
};

// What the replaced store had closed stays closed: its quarantine entries and its intents. Handlers
// of intents get the names that the backup's registry has for them.
Result<void> KeepClosed(StoreTxn& txn, const Salvaged& replaced) {
  auto registry = TRY(ReadRuntimeHandlers(txn));
  for (const auto& entry : replaced.All(Table::kQuarantine, DecodeQuarantineValue)) {
    TRY(StoreQuarantine(txn, entry));
  }
  for (UnresolvedPull& pull : replaced.All(Table::kIntents, DecodeUnresolvedPull)) {
    pull.runtime_handler = StoredName(registry, pull.runtime_handler);
    TRY(CarryPull(txn, pull));
  }
  return {};
}

// A record of the replaced store closes what the backup has no record of: it was pulled or closed
// since. An operator's closing stays beside what both stores have proven, and of two closings the
// one that is no guess.
void KeepClosing(const ImageRow& there, const Clocks& now, ImageRow& row) {
  const PulledPart& old = *there.pulled;
  const bool is_new = !row.pulled;
  bool closes = is_new || old.closed_by == ClosedBy::kOperator;
  ClosedBy by = old.closed_by;
  if (!is_new) {
    const PulledPart& kept = *row.pulled;
    const bool no_guess = kept.closed_by == ClosedBy::kList && by != ClosedBy::kList;
    const bool other_word = kept.closed_because.empty() != old.closed_because.empty();
    closes = closes || (kept.entries.empty() && old.entries.empty() && (other_word || no_guess));
    if (by == ClosedBy::kList && kept.closed_by != ClosedBy::kList) by = ClosedBy::kRestore;
  }
  if (!closes) return;
  if (is_new) {
    row.ref = there.ref;
    if (!row.preloaded) row.absent = there.absent == 0 ? 0 : now.RanSeconds();
    row.pulled = PulledPart{.last_updated = old.last_updated, .guest_platform = old.guest_platform};
  }
  row.pulled->closed_because = old.closed_because;
  row.pulled->closed_by = by;
  if (old.closed_because.empty() && row.pulled->entries.empty()) {
    row.pulled->closed_because = "it was pulled after the backup";
    if (by != ClosedBy::kOperator) row.pulled->closed_by = ClosedBy::kRestore;
  }
}

// Of an image with a record, whose a digest is stays known: it may come back with another ID when
// its disk does.
Result<void> KeepRecorded(Images& images, const Salvaged& replaced) {
  const auto registry = TRY(ReadRuntimeHandlers(images.txn()));
  auto rows = replaced.All(Table::kImages, DecodeImage);
  std::ranges::sort(rows, {},
                    [](const ImageRow& row) { return std::tie(row.subject, row.runtime_handler); });
  std::set<std::string> recorded;
  for (const ImageRow& there : rows) {
    if (there.pulled) recorded.insert(there.subject);
  }
  for (const ImageRow& there : rows) {
    if (there.alias) {
      ImageRow of_digest = TRY(images.FindOrMake(there.subject));
      if (!of_digest.pulled || there.alias->image.empty()) {
        of_digest.alias = there.alias;
        TRY(images.Put(std::move(of_digest), Images::Confirms::kNo));
      }
    }
    if (!recorded.contains(there.subject)) continue;
    const auto home = TRY(images.Home(there.subject));
    ImageRow row = TRY(images.FindOrMake(home, StoredName(registry, there.runtime_handler)));
    row.listed = row.listed || there.listed;
    for (const std::string& alias : there.aliases) {
      const std::string digest = images.SubjectOf(alias);
      const auto of = TRY(images.RowsOf(digest));
      if (digest == row.subject || of.empty()) AddAlias(row, alias);
    }
    if (there.pulled) KeepClosing(there, images.txn().clocks(), row);
    // Nor is it shown under a ref that leads elsewhere.
    const std::string digest = images.SubjectOf(row.Ref());
    const bool has_it = std::ranges::any_of(
        row.aliases, [&](const std::string& alias) { return images.SubjectOf(alias) == digest; });
    const auto of = TRY(images.Home(digest));
    if (!has_it && of != row.subject) row.ref.clear();
    TRY(images.Put(std::move(row), Images::Confirms::kYes));
  }
  return {};
}

class Node final : public Product {
 public:
  Purpose purpose() const override { return Purpose::kNode; }
  Error IsAnothers(const std::filesystem::path& directory) const override {
    return {ErrorCode::kInvalidArgument,
            directory.string() +
                " has a store of streaming requests, which knows no image; nothing was changed",
            "name the directory of the node's store"};
  }

  Result<void> CheckPlace(const NodeStoreOptions& options) const override {
    const std::filesystem::path& kubelet = options.kubelet_directory;
    if (kubelet.empty()) return {};
    const bool is_kubelets = IsSameFile(options.directory, kubelet) ||
                             IsBelow(options.directory, kubelet / "image_manager") ||
                             IsBelow(options.directory, kubelet / "pods");
    if (!is_kubelets) return {};
    return Error{ErrorCode::kUnsafePath,
                 options.directory.string() +
                     " is the kubelet's directory, and no store; nothing was changed",
                 "name a directory of its own for the store"};
  }
  // Noted in the first commit, so that no crash can lose it.
  Result<Distrust> DistrustOfNew(const NodeStoreOptions& options) const override {
    if (options.kubelet_directory.empty()) return Distrust();
    auto there = TRY(Exists(options.kubelet_directory / "image_manager"));
    return there ? ImportUnfinished(options.kubelet_directory) : Distrust();
  }
  Result<void> FillNew(StoreTxn& txn, const NodeStoreOptions& options,
                       const std::string& lost) const override {
    auto takes_over = TRY(TakesOverUsedDirectory(options));
    txn.state().kubelet_rules = options.rules == Mode::kKubelet;
    if (!lost.empty()) return HoldLostRanges(txn, lost);
    txn.state().awaits_first_list = true;
    if (takes_over) TRY(OnTakeOver(txn, options));
    const bool may_have_pods =
        !options.pods_directory.empty() || !options.kubelet_directory.empty();
    return may_have_pods ? HoldUntilImport(txn, "the store was just made") : Result<void>();
  }

  Result<void> CheckRebuild(const Salvaged& salvaged, const std::string& failure) const override {
    // Where nothing says what it was for, it was for images: of streams nothing is worth keeping.
    const Purpose said = salvaged.purpose();
    if (said == Purpose::kNode) return {};
    if (said == Purpose::kUnknown && salvaged.of(Table::kStreamingTokens).empty()) return {};
    return Error{ErrorCode::kDamaged,
                 failure + ", and does not say that it is for images; nothing was changed",
                 "if it was for streaming requests, remove the directory: every token is void in "
                 "any case"};
  }
  Result<void> FillRebuilt(StoreTxn& txn, const Rebuilding& from,
                           OpeningReport& report) const override {
    const Salvaged& salvaged = from.salvaged;
    if (from.state) {
      txn.state().last_list = from.state->last_list;
      txn.state().kubelet_rules = from.state->kubelet_rules;
      txn.state().last_truth = from.state->last_truth;
      txn.state().ages = from.state->ages;
    }
    // With a lost revocation, credentials that it has still to take out of records would come back.
    const bool images_proven = from.Proves(Table::kImages);
    const bool credentials =
        images_proven && (from.state->unfinished == 0 || from.HasAll(Table::kRevocations));
    // An unreadable file closes an image under every alias: without one of them, what is known of
    // its coming would open it.
    const bool preloaded =
        images_proven && (salvaged.of(Table::kQuarantine).empty() || from.HasAll(Table::kImages));
    Aliases aliases;
    Images images(txn, aliases);
    auto carried =
        TRY(CarryOver(images, salvaged,
                      {.keeps_credentials = [credentials](const ImageRow&) { return credentials; },
                       .keeps_preloaded = [preloaded](const ImageRow&) { return preloaded; },
                       .leave_known =
                           [images_proven](ImageRow& row) {
                             if (!images_proven) ForgetAliases(row);
                           },
                       .observed_preloaded = from.Proves(Table::kPreloaded)}));
    report.records_carried = carried.records;
    report.records_without_credentials = carried.records_without_credentials;
    report.intents_carried = carried.intents;
    return RebuildHostIds(txn, from);
  }

  Error ReplacesOnlyOwn(const std::filesystem::path& backup) const override {
    return {ErrorCode::kConflict,
            "the backup " + backup.string() +
                " is of a node's store, and the store to be replaced is of streaming requests; "
                "nothing was changed",
            "name the directory of the store that the backup was made of"};
  }
  Result<void> FillRestored(StoreTxn& txn, const Restoring& from,
                            RestoreReport& report) const override {
    const Replaced& replaced = from.replaced;
    txn.state().last_truth = from.state.last_truth;
    txn.state().ages = from.state.ages;
    txn.state().kubelet_rules = from.state.kubelet_rules;
    if (replaced.state) {
      txn.state().last_truth = std::max(from.state.last_truth, replaced.state->last_truth);
      txn.state().ages = replaced.state->ages;
      // What is carried over is forgotten by the rules that it was kept under.
      txn.state().kubelet_rules = replaced.state->kubelet_rules;
    }
    TRY(CarryRevocations(txn, replaced.values));
    const Replaceds proofs(from);
    Aliases aliases;
    Images images(txn, aliases);
    auto carried = TRY(CarryOver(
        images, from.values,
        {.keeps_credentials = [&](ImageRow& row) { return proofs.KeepCredentials(row); },
         .keeps_preloaded = [&](const ImageRow& row) { return proofs.KeepPreloaded(row); },
         .leave_known = [&](ImageRow& row) { proofs.LeaveKnown(row); },
         .observed_preloaded = true}));
    report.records = carried.records;
    report.records_without_credentials = carried.records_without_credentials;
    TRY(KeepRecorded(images, replaced.values));
    TRY(KeepClosed(txn, replaced.values));
    auto known = replaced.sequence() >= from.state.commit_sequence ? ReplacedRanges::kNewer
                                                                   : ReplacedRanges::kMayBeOlder;
    if (replaced.current) known = ReplacedRanges::kWhole;
    return RestoreHostIds(txn, replaced.values, known, from.values, from.reason, report);
  }

  Result<void> DropStale(StoreTxn& txn, const std::string& why,
                         OpeningReport& report) const override {
    TRY(DropWhatOpens(txn, report));
    return HoldLostRanges(txn, why);
  }
  // Whether it takes a kubelet directory over that is in use, for the first time: that is when its
  // witness comes there.
  Result<bool> TakesOver(const NodeStoreOptions& options, const Identity& identity,
                         const State& state) const override {
    const std::filesystem::path& witness = options.witness.path();
    const bool is_first = !options.kubelet_directory.empty() &&
                          IsSameFile(witness, WitnessIn(options.kubelet_directory)) &&
                          !IsSameFile(identity.witness_path, witness) &&
                          state.digest(Table::kImported).count == 0;
    return is_first ? TakesOverUsedDirectory(options) : Result<bool>(false);
  }
  Result<void> OnTakeOver(StoreTxn& txn, const NodeStoreOptions& options) const override {
    return OpenPullOfAnything(txn, options.boot_clock());
  }
};

}  // namespace

const Product& NodeProduct() {
  static const Node node;
  return node;
}

}  // namespace waybill::internal
