// The pods' directories of a kubelet, <kubelet-dir>/pods/<pod-uid>/, as far as ID mappings go.

#ifndef WAYBILL_MIGRATIONS_PODS_DIRECTORY_H_
#define WAYBILL_MIGRATIONS_PODS_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/userns/import.h"
#include "waybill/result.h"

namespace waybill::internal {

// The ID mappings of all pods that have such a file, sorted by pod UID. As for the kubelet, each
// directory is a pod, whatever its name, and a symlink to one is none. A file that can't be read,
// or is no regular one, is a problem of that pod. None where there is no directory `pods`.
// kUnsafePath, kIo: it is none, or can't be listed.
Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& pods);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_PODS_DIRECTORY_H_
