#include "store/node/upkeep/node_product.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/records/userns_tables.h"
#include "store/node/records/what_counts.h"
#include "store/node/upkeep/carry_over.h"
#include "store/node/upkeep/gap.h"
#include "store/node/upkeep/restore_ranges.h"
#include "store/node/userns/lost_ranges.h"

namespace waybill::internal {

namespace {

// A stale record may have credentials that were revoked since. Its image stays on record, and must
// be verified again.
Result<void> DropCredentials(StoreTxn& txn, OpeningReport& report) {
  std::vector<ImagePulledRecord> records;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (record) records.push_back(std::move(*record));
    return true;
  }));
  report.records_without_credentials = records.size();
  for (ImagePulledRecord& record : records) {
    record.credential_mapping.clear();
    TRY(StoreRecord(txn, std::move(record)));
  }
  // Likewise: what the store says was preloaded may be out of date.
  return DropFromLedger(txn, [](const PreloadedImage&) { return true; });
}

Result<void> RebuildRanges(StoreTxn& txn, const Rebuilding& from) {
  TRY(CarryIdRanges(txn, from.salvaged));
  const bool lost = !from.newest || !HasAllIdRanges(from.salvaged, *from.state);
  return lost ? HoldLostRanges(txn, from.reason) : Result<void>();
}

// Of the replaced store, what proves that the backup's is not out of date.
struct Proofs {
  // By image ref and runtime handler.
  std::map<std::pair<std::string, std::string>, std::map<std::string, ImagePullCredentials>>
      credentials;
  std::vector<PreloadedImage> ledger;

  explicit Proofs(const Restoring& from) {
    const Salvaged& values = from.replaced.values;
    if (!from.replaced.current) return;
    for (ImagePulledRecord& record : values.All(Table::kPulled, DecodePulledRecordValue)) {
      credentials[{record.image_ref, record.runtime_handler}] =
          std::move(record.credential_mapping);
    }
    // Quarantine closes an image under every spelling, and spellings are not restored.
    if (values.of(Table::kQuarantine).empty() && from.values.of(Table::kQuarantine).empty()) {
      ledger = values.All(Table::kLedger, DecodeLedgerEntry);
    }
  }

  // Credentials that the replaced store does not have as well may have been revoked since. Of the
  // others its proofs count: it may have proven them again, or lost their time.
  bool KeepCredentials(ImagePulledRecord& record) const {
    if (record.credential_mapping.empty()) return true;
    const auto at = credentials.find({record.image_ref, record.runtime_handler});
    const bool has = at != credentials.end() && at->second == record.credential_mapping;
    if (has) record.credential_mapping = at->second;
    return has;
  }
  bool KeepEntry(const PreloadedImage& entry) const {
    return std::find(ledger.begin(), ledger.end(), entry) != ledger.end();
  }
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

// What a record of the replaced store says, but for what its pulls proved.
ImagePulledRecord Closing(const ImagePulledRecord& of) {
  ImagePulledRecord closing;
  closing.image_ref = of.image_ref;
  closing.last_updated = of.last_updated;
  closing.runtime_handler = of.runtime_handler;
  closing.closed_because =
      of.closed_because.empty() ? "it was pulled after the backup" : of.closed_because;
  closing.closed_by_list = of.closed_by_list;
  closing.closed_by_operator = of.closed_by_operator;
  closing.absent_since = of.absent_since;
  return closing;
}

// The restored record of the image, which may have another spelling; spellings are not restored.
Result<std::optional<ImagePulledRecord>> FindRestored(const StoreTxn& txn,
                                                      const ImagePulledRecord& of) {
  std::vector<std::string> refs{of.image_ref};
  if (!txn.state().kubelet_rules) refs = TRY(RefsOfImage(txn, of.image_ref));
  for (const std::string& ref : refs) {
    auto found = TRY(FindRecord(txn, ref, of.runtime_handler));
    if (found) return found;
  }
  return std::optional<ImagePulledRecord>();
}

// The other spellings of each image that the replaced store knew.
class Spelt {
 public:
  explicit Spelt(const Salvaged& replaced) {
    for (SpellingRow& row : replaced.All(Table::kSpellings, DecodeSpelling)) {
      if (row.image.empty()) continue;
      image_of_[row.spelling] = row.image;
      spelt_[row.image].push_back(std::move(row.spelling));
    }
  }
  std::vector<std::string> OthersOf(const std::string& image_ref) const {
    const std::string own = SpellingOf(image_ref);
    const auto image = image_of_.find(own);
    if (image == image_of_.end()) return {};
    std::vector<std::string> others = spelt_.at(image->second);
    std::erase(others, own);
    return others;
  }

 private:
  std::map<std::string, std::string> image_of_;
  std::map<std::string, std::vector<std::string>> spelt_;
};

// An image that the backup lacks was pulled or closed since, and may be what comes back when its
// disk does, perhaps under another ID. Of one that it has the later closing counts.
Result<void> KeepRecorded(StoreTxn& txn, const Salvaged& replaced) {
  const Spelt spelt(replaced);
  auto registry = TRY(ReadRuntimeHandlers(txn));
  // Of several spellings the first one stays, in every store the same.
  auto records = replaced.All(Table::kPulled, DecodePulledRecordValue);
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::tie(a.image_ref, a.runtime_handler) < std::tie(b.image_ref, b.runtime_handler);
  });
  for (ImagePulledRecord& record : records) {
    record.runtime_handler = StoredName(registry, record.runtime_handler);
    auto found = TRY(FindRestored(txn, record));
    if (!txn.state().kubelet_rules && (!found || record.closed_by_operator)) {
      for (std::string& ref : spelt.OthersOf(record.image_ref)) {
        ImagePulledRecord other = Closing(record);
        other.image_ref = std::move(ref);
        if (!TRY(FindRestored(txn, other))) TRY(StoreRecord(txn, std::move(other)));
      }
    }
    if (!found) {
      TRY(StoreRecord(txn, Closing(record)));
      continue;
    }
    ImagePulledRecord kept = *found;
    kept.closed_by_operator |= record.closed_by_operator;
    kept.closed_by_list &= record.closed_by_list;
    if (kept.credential_mapping.empty() && kept.closed_because != record.closed_because) {
      kept.closed_because = Closing(record).closed_because;
    }
    if (kept != *found) TRY(StoreRecord(txn, std::move(kept)));
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
    const bool credentials = from.Proves(Table::kPulled) &&
                             (from.state->untidied == 0 || from.HasAll(Table::kRevocations));
    // Quarantine closes an image under every spelling: without one of them, its entry would open
    // it.
    const bool ledger = from.Proves(Table::kLedger) &&
                        (salvaged.of(Table::kQuarantine).empty() || from.HasAll(Table::kSpellings));
    auto carried = TRY(CarryOver(
        txn, salvaged,
        {.keeps_credentials = [credentials](const ImagePulledRecord&) { return credentials; },
         .keeps_entry = [ledger](const PreloadedImage&) { return ledger; },
         .preloaded = from.Proves(Table::kPreloaded),
         .spellings = from.Proves(Table::kSpellings)}));
    report.records_carried = carried.records;
    report.records_without_credentials = carried.records_without_credentials;
    report.intents_carried = carried.intents;
    return RebuildRanges(txn, from);
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
    const Proofs proofs(from);
    auto carried = TRY(CarryOver(
        txn, from.values,
        {.keeps_credentials = [&](ImagePulledRecord& one) { return proofs.KeepCredentials(one); },
         .keeps_entry = [&](const PreloadedImage& entry) { return proofs.KeepEntry(entry); },
         .preloaded = true,
         .spellings = false}));
    report.records = carried.records;
    report.records_without_credentials = carried.records_without_credentials;
    TRY(KeepRecorded(txn, replaced.values));
    TRY(KeepClosed(txn, replaced.values));
    auto known = replaced.sequence() >= from.state.commit_sequence ? ReplacedRanges::kNewer
                                                                   : ReplacedRanges::kMayBeOlder;
    if (replaced.current) known = ReplacedRanges::kWhole;
    TRY(RestoreIdRanges(txn, replaced.values, known, from.values, from.reason, report));
    report.id_mappings = txn.state().digest(Table::kUsernsMappings).count;
    auto lost = TRY(FindHeld(txn, {}));
    report.id_ranges_lost = lost.has_value();
    return {};
  }

  Result<void> DropStale(StoreTxn& txn, const std::string& why,
                         OpeningReport& report) const override {
    TRY(DropCredentials(txn, report));
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
