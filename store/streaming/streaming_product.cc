#include "store/streaming/streaming_product.h"

namespace waybill::internal {

namespace {

class Streaming final : public Product {
 public:
  Purpose purpose() const override { return Purpose::kStreaming; }
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
  Result<void> FillNew(StoreTxn&, const NodeStoreOptions&, const std::string&) const override {
    return {};
  }

  Result<void> CheckRebuild(const Salvaged& salvaged, const std::string& failure) const override {
    if (salvaged.purpose() == Purpose::kStreaming) return {};
    return Error{
        ErrorCode::kDamaged,
        failure + ", and does not say that it is for streaming requests; nothing was changed",
        "if it was for streaming requests, remove the directory: every token is void in any case"};
  }
  Result<void> FillRebuilt(StoreTxn&, const Rebuilding&, OpeningReport&) const override {
    return {};
  }

  Error ReplacesOnlyOwn(const std::filesystem::path& backup) const override {
    return {ErrorCode::kConflict,
            "the backup " + backup.string() +
                " is of a store of streaming requests, and the store to be replaced is a node's; "
                "nothing was changed",
            "name the directory of the store that the backup was made of"};
  }
  Result<void> FillRestored(StoreTxn&, const Restoring&, RestoreReport& report) const override {
    report.streaming = true;
    return {};
  }
};

}  // namespace

const Product& StreamingProduct() {
  static const Streaming streaming;
  return streaming;
}

}  // namespace waybill::internal
