#include "store/streaming/streaming_product.h"


namespace waybill::internal {

namespace {

Result<void> FillEmpty(StoreTxn& txn) {
  txn.state().last_list = kNoListEver;
  return {};
}

class Streaming final : public Product {
 public:
  Purpose purpose() const override { return Purpose::kStreaming; }
  bool MayBe(const std::optional<State>& state) const override {
    return state && IsOfNoList(*state);
  }
  Error IsAnothers(const std::filesystem::path& directory) const override {
    return {ErrorCode::kInvalidArgument,
            directory.string() +
                " has a node's store, which takes no streaming requests; nothing was changed",
            "give streaming requests a directory of their own"};
  }
  bool outlives_loss() const override { return false; }

  // It may have been a node's store.
  Result<void> CheckLost(const std::string& trace) const override {
    if (trace.empty()) return {};
    return Error{
        ErrorCode::kDamaged,
        trace + ", and nothing says that it was for streaming requests; nothing was changed",
        "if it was, remove the directory: every token is void in any case"};
  }
  Result<void> FillNew(StoreTxn& txn, const NodeStoreOptions&, const std::string&) const override {
    return FillEmpty(txn);
  }

  Result<void> CheckRebuild(const Salvaged& salvaged, const std::string& failure) const override {
    if (salvaged.purpose() == Purpose::kStreaming) return {};
    return Error{
        ErrorCode::kDamaged,
        failure + ", and does not say that it is for streaming requests; nothing was changed",
        "if it was for streaming requests, remove the directory: every token is void in any case"};
  }
  Result<void> FillRebuilt(StoreTxn& txn, const Rebuilding&, OpeningReport&) const override {
    return FillEmpty(txn);
  }

  Error ReplacesOnlyOwn(const std::filesystem::path& backup) const override {
    return {ErrorCode::kConflict,
            "the backup " + backup.string() +
                " is of a store of streaming requests, and the store to be replaced is a node's; "
                "nothing was changed",
            "name the directory of the store that the backup was made of"};
  }
  bool NeedsNewest(const Replaced& replaced) const override { return !replaced.current; }
  Result<void> FillRestored(StoreTxn& txn, const Restoring&, RestoreReport& report) const override {
    report.streaming = true;
    return FillEmpty(txn);
  }
};

}  // namespace

const Product& StreamingProduct() {
  static const Streaming streaming;
  return streaming;
}

}  // namespace waybill::internal
