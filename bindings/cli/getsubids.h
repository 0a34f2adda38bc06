// The host IDs that the node is configured to give to pods: the subordinate IDs of the user
// `kubelet`.

#ifndef WAYBILL_BINDINGS_CLI_GETSUBIDS_H_
#define WAYBILL_BINDINGS_CLI_GETSUBIDS_H_

#include <cstddef>
#include <string>

#include "waybill/result.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

// The output is one line, and never longer.
inline constexpr std::size_t kMaxSubordinateIdBytes = 4096;

// Looks for the user, and for getsubids in PATH, and runs it if both exist. kIo, in the kubelet's
// words: it failed. Tests pass another user.
Result<SubordinateIds> FindSubordinateIds(const std::string& user = "kubelet");

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_GETSUBIDS_H_
