// Imports the ID mappings from a kubelet's files.

#ifndef WAYBILL_STORE_PODS_IMPORT_H_
#define WAYBILL_STORE_PODS_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A pod's file, as read.
struct UsernsFile {
  std::string pod_uid;  // the name of its directory; 1 to 255 bytes
  std::string source;   // pods/<uid>/userns
  // Set if some kubelet accepts the file: CheckMapping holds.
  std::optional<HostIdRange> mapping;
  // If `mapping` is not set: why, and the ranges in the file. No ranges: nothing is readable.
  std::string problem;
  std::vector<HostIdRange> ranges;
};

// All or nothing for each pod. Valid files of pods that are new to the store become mappings.
//
//   the store's mapping is the same    unchanged
//   the store has another one          it stays; the pod is held with the file's range
//   no kubelet accepts the file        held with its ranges; without ranges, held as of unknown
//                                      range (reported only, if the store's mapping covers all
//                                      ranges in the file)
//   two files overlap                  both pods are held
//   the range is another pod's,        held
//     or is held
//
// A pod that is held without a mapping is judged again if its file covers all ranges that it is
// held for.
Result<void> ImportUserNamespaces(StoreTxn& txn, const std::vector<UsernsFile>& files,
                                  IdMappingReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PODS_IMPORT_H_
