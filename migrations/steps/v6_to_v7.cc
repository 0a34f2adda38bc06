// Version 7 keeps streaming requests (KEP-1558), in stores of their own, and says what a store is
// for.
//
// Up: only the header is written. The next opening says what the store is for; a streaming store is
// recognised by its last_list (kNoListEver).
//
// Down: open tokens are void, since an older waybill could not use them up. The store's purpose is
// dropped. So are ledger entries of images that are gone: an older waybill does not know that they
// are only remembered, and would open the images by them.

#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/node/records/evidence_tables.h"

namespace waybill::internal {

namespace v6_to_v7 {
namespace {

Result<void> Up(StepRun&) { return {}; }

// migrate.cc drops the table of tokens.
Result<void> Down(StepRun& run) {
  return DropFromLedger(run.txn,
                        [](const PreloadedImage& entry) { return entry.absent_since.has_value(); });
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::vector<std::string> losses;
  if (txn.identity().purpose != Purpose::kStreaming) return losses;
  losses.push_back(
      "that this store is for streaming requests: an older waybill takes it for a node's, without "
      "any image in it");
  if (const auto count = txn.state().digest(Table::kStreamingTokens).count; count > 0) {
    losses.push_back(HowMany(count, "streaming token") + ": clients must ask again");
  }
  return losses;
}

}  // namespace
}  // namespace v6_to_v7

const Step kStepV6ToV7 = {6, 7, "streaming", v6_to_v7::Up, v6_to_v7::Down, v6_to_v7::Losses};

}  // namespace waybill::internal
