// The pods' directories of a kubelet, <kubelet-dir>/pods/<pod-uid>/, as far as ID mappings go.

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

// The ID mappings of all pods that have such a file, sorted by pod UID. As for the kubelet, each
// directory is a pod, whatever its name, and a symlink to one is none. A file that may not be read,
// or is no regular one, is a problem of that pod. None where there is no directory `pods`.
// kUnsafePath, kIo: it is none, or can't be listed. kIo also where the disk refuses a file, unless
// that is damage: then it is a problem of that pod.
Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& pods,
                                                  OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_PODS_DIRECTORY_H_
