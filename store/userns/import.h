// Takes over the ID mappings that a kubelet kept in files.

#ifndef WAYBILL_STORE_USERNS_IMPORT_H_
#define WAYBILL_STORE_USERNS_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

// A file of a pod, as it was read.
struct UsernsFile {
  std::string pod_uid;  // the name of the directory that it is in; 1 to 255 bytes
  std::string source;   // pods/<uid>/userns
  // Set where some kubelet takes it: CheckMapping holds.
  std::optional<HostIdRange> mapping;
  // Where `mapping` is not set: why, and the ranges that the file tells of. None: nothing can be
  // read.
  std::string problem;
  std::vector<HostIdRange> ranges;
};

// All or nothing for each pod; sound files whose pods the store does not know become mappings.
//
//   the store's mapping is the same    unchanged
//   the store has another one          that one stays; the pod is held with the file's range
//   no kubelet takes the file          held with its ranges, or, where there are none, held as of
//                                      unknown range (reported only, where the store's mapping has
//                                      all that it tells of)
//   two files overlap                  both pods are held
//   the range is another pod's,        held
//     or is held
//
// A pod that is held without a mapping is judged anew where its file has all that it is held for.
Result<void> ImportUserNamespaces(StoreTxn& txn, const std::vector<UsernsFile>& files,
                                  UserNamespaceReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_USERNS_IMPORT_H_
