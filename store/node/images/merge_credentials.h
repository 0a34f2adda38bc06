// Merging credentials into a record, as the kubelet does.

#ifndef WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_
#define WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_

#include <chrono>
#include <string_view>

#include "store/node/records/age.h"
#include "waybill/values.h"

namespace waybill::internal {

// Which of two proofs of one credential stays: the later one, unless the registry checked the
// earlier one alone, and that is not past its age, `most`.
Proof Better(const Proof& a, const Proof& b, std::chrono::seconds most, const Clocks& now);

// Merges `added` into the entry of `image_name` (kubelet behaviour). Returns whether anything
// changed but proofs, of which the better one is kept. Node-wide access wins and clears both lists;
// once set, nothing is added. Otherwise secrets are merged by coordinates and sorted by namespace,
// name, uid; or, if none are given, service accounts likewise. A first entry is kept as given.
bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added, const Aging& aging);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_
