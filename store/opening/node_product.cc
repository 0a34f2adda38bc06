#include <string>
#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/open_pulls.h"
#include "store/opening/carry_over.h"
#include "store/opening/product.h"
#include "store/pods/host_ids.h"

namespace waybill::internal {

namespace {

constexpr ProductWords kWords = {"images", "a node's store",
                                 "a store of streaming requests, which knows no image",
                                 "name the directory of the node's store"};

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

class Node final : public Product {
 public:
  Purpose purpose() const override { return Purpose::kNode; }
  const ProductWords& words() const override { return kWords; }

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

  // Of streams nothing is worth keeping.
  bool MayHaveBeen(const Salvaged& salvaged) const override {
    return salvaged.of(Table::kStreamingTokens).empty();
  }
  Result<Carried> CarryOver(StoreTxn& txn, const Replacing& from) const override {
    return internal::CarryOver(txn, from);
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
                          state.digest(Table::kKubeletFiles).count == 0;
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
