// What a list of images does to a store in mode strict (store/calls/lists.cc,
// ClassifyImages), at opening as at any time, in this order: learn whose digest is whose, judge
// what nothing is known of, settle pulls, retire what is gone.

#ifndef WAYBILL_STORE_IMAGES_OBSERVE_H_
#define WAYBILL_STORE_IMAGES_OBSERVE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/images/images.h"
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
// caller remembers its token. kInvalidArgument, kLimitExceeded: as ClassifyImages.
Result<ClassifyReport> ObserveList(Images& images, const ImageList& list,
                                   const Observing& observing);

// Whose digest is whose, by the runtime's entry of an image just pulled. What the pull returned is
// one of its names, too.
Result<bool> LearnEntry(Images& images, const ListedImage& image, const std::string& image_ref);

// What observed-preloaded/ tells: each image that nothing is known of enters the ledger, if none of
// its names may come from a pull. Closes nothing.
Result<std::uint64_t> JudgeObservedPreloaded(Images& images, const Observing& observing);

// An operator's word that the store is whole: what nothing is known of is closed or adopted, and
// one open pull of anything is made. `list` is complete; nullopt: the next one is judged.
Result<ClassifyReport> CloseOrAdopt(Images& images, const std::optional<ImageList>& list,
                                    bool adopt, std::string_view reason,
                                    const Observing& observing);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_OBSERVE_H_
