// The files in which a kubelet keeps the ID mappings of pods, <kubelet-dir>/pods/<pod-uid>/userns:
//
//   {"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[…the same…]}
//
// Read as Go's encoding/json does for the kubelet: unknown fields are ignored, a field's name may
// be in any case, null and missing fields are the zero value. Where that is too lenient, the file
// is refused: a repeated key in an object (also in another case), invalid UTF-8, a missing hostId
// or length. No accepted file is read differently than Go reads it.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_FILE_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "store/pods/import.h"
#include "waybill/result.h"

namespace waybill::internal {

// `mapping` is set if some kubelet accepts the file: one UID and one GID mapping, equal, from
// container ID 0, and CheckMapping holds. Otherwise `ranges` has those of all mappings, UIDs and
// GIDs, if each is readable: a hostId below 2^32, a length of 1 to 2^32, at most
// kMaxMappingsPerFile of them, in at most kMaxUsernsFileBytes. No ranges: the pod's range is
// unknown.
UsernsFile DecodeUsernsFile(std::string pod_uid, std::string source, std::string_view content);

// Byte for byte as a kubelet writes it.
std::string EncodeUsernsFile(std::uint32_t host_id, std::uint32_t length);

// The ID mappings of all pods that have a userns file, sorted by pod UID. As in the kubelet, each
// directory is a pod, whatever its name; symlinks do not count. A file that is forbidden, not
// regular, or that somebody else may have written (kubelet_places.h) is a problem of that pod.
// Empty if `pods` does not exist. kUnsafePath: `pods` is not a directory, or a symlink that others
// can change. kIo: it can't be listed, or the disk refuses a file, unless that counts as damage (a
// problem of that pod).
Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& pods,
                                                  OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_FILE_H_
