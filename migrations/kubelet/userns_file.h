// The file in which a kubelet keeps a pod's ID mappings, <kubelet-dir>/pods/<pod-uid>/userns:
//
//   {"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[…the same…]}
//
// Read as Go's encoding/json does for the kubelet: unknown fields pass, a field's name may be in
// any case, null and what is missing are the zero value. Where that is too trusting, nothing is
// taken: a key twice in an object (in another case, too), text that is not UTF-8, and a hostId or
// length that is missing. Nothing is ever read otherwise than Go reads it.

#ifndef WAYBILL_MIGRATIONS_KUBELET_USERNS_FILE_H_
#define WAYBILL_MIGRATIONS_KUBELET_USERNS_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "store/userns/import.h"

namespace waybill::internal {

// `mapping` is set where some kubelet takes the file: one UID and one GID mapping, the same, from
// container ID 0, and CheckMapping holds. Otherwise `ranges` has what all of them say, UIDs and
// GIDs, as long as each can be read: a hostId below 2^32, a length of 1 to 2^32, no more than
// kMaxMappingsPerFile of them, in no more than kMaxUsernsFileBytes. No ranges: who knows.
UsernsFile DecodeUsernsFile(std::string pod_uid, std::string source, std::string_view content);

// Byte for byte as a kubelet writes it.
std::string EncodeUsernsFile(std::uint32_t host_id, std::uint32_t length);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_USERNS_FILE_H_
