// Reads ID mappings from a kubelet's pod directories, <kubelet-dir>/pods/<pod-uid>/.

#ifndef WAYBILL_MIGRATIONS_KUBELET_PODS_DIRECTORY_H_
#define WAYBILL_MIGRATIONS_KUBELET_PODS_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "store/userns/import.h"
#include "waybill/result.h"

namespace waybill::internal {

// The ID mappings of all pods that have a userns file, sorted by pod UID. As in the kubelet, each
// directory is a pod, whatever its name; symlinks do not count. A file that is forbidden or not
// regular is a problem of that pod. Empty if `pods` does not exist. kUnsafePath: `pods` is not a
// directory. kIo: it can't be listed, or the disk refuses a file, unless that counts as damage (a
// problem of that pod).
Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& pods,
                                                  OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_PODS_DIRECTORY_H_
