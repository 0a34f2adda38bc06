// What a successful pull adds to a record (kubelet behaviour). Pure.

#ifndef WAYBILL_STORE_PULL_MERGE_H_
#define WAYBILL_STORE_PULL_MERGE_H_

#include <string_view>

#include "waybill/types.h"

namespace waybill::internal {

// Merges `added` into the entry of `image_name`; whether that changed anything. Node-wide access
// wins and clears both lists; once set, nothing is added. Otherwise secrets are merged by
// coordinates and sorted by namespace, name, uid; or, if none are given, service accounts likewise.
// A first entry is kept as given.
bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_MERGE_H_
