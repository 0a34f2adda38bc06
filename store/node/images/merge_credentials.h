// Merging credentials into a record, as the kubelet does.

#ifndef WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_
#define WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_

#include <string_view>

#include "waybill/types.h"

namespace waybill::internal {

// The later of two proofs of one credential.
Proof Later(const Proof& a, const Proof& b);

// Merges `added` into the entry of `image_name` (kubelet behaviour). Returns whether anything
// changed but proofs, of which the later one is kept. Node-wide access wins and clears both lists;
// once set, nothing is added. Otherwise secrets are merged by coordinates and sorted by namespace,
// name, uid; or, if none are given, service accounts likewise. A first entry is kept as given.
bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_IMAGES_MERGE_CREDENTIALS_H_
