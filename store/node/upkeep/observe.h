// What a list of images does to a store under the closed rules (store/node/facade/node_store.h,
// ObserveImages), at opening as at any time, in this order: learn the spellings, judge what nothing
// is known of, settle pulls, remove what is gone.

#ifndef WAYBILL_STORE_NODE_UPKEEP_OBSERVE_H_
#define WAYBILL_STORE_NODE_UPKEEP_OBSERVE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/engine/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct Observing {
  const EvidenceOptions& options;
  BootTime now;
  bool allow_empty = false;
  // An operator's or installer's list of preloaded images (NodeStoreOptions::preloaded).
  const std::vector<ListedImage>* preloaded = nullptr;
  // The token of the newest list that this process used; no commit may have it yet.
  ListToken last_list = {};
};

// `list` names handlers as the runtime does. A list that changes nothing leaves `txn` clean: the
// caller remembers its token. kInvalidArgument, kLimitExceeded: as ObserveImages.
Result<ClassifyReport> ObserveList(StoreTxn& txn, const ImageList& list,
                                   const Observing& observing);

// The spellings of one image, as a pull of it returned them.
Result<void> LearnEntry(StoreTxn& txn, const ListedImage& image);

// What observed-preloaded/ tells: each image that nothing is known of enters the ledger, if none of
// its names may come from a pull. Closes nothing.
Result<std::uint64_t> JudgeObservedPreloaded(StoreTxn& txn, const Observing& observing);

// An operator's word that the store is whole: what nothing is known of is closed or adopted, and
// one open pull of anything is made. `list` is complete; nullopt: the next one is judged.
Result<ClassifyReport> CloseOrAdopt(StoreTxn& txn, const std::optional<ImageList>& list, bool adopt,
                                    std::string_view reason, const Observing& observing);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_UPKEEP_OBSERVE_H_
