// A runtime's configuration file has what its own list of handlers lacks: the name of the default
// handler, and guest platforms (KEP-4216). Containerd's TOML:
//
//   [plugins."io.containerd.cri.v1.runtime".containerd]        version 3 of the file;
//     default_runtime_name = "runc"                            in 2, "io.containerd.grpc.v1.cri"
//   [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.hyperv.guest_platform]
//     OS = "windows"                                           fields as in KEP-4216, or in the
//     Architecture = "amd64"                                   spelling of an image index
//     OSVersion = "10.0.17763"
//   [plugins."io.containerd.cri.v1.images".runtime_platforms.hyperv]
//     platform = "windows(10.0.17763)/amd64"                   the same, as containerd 2 has it
//
// Files that it imports are ignored.

#ifndef WAYBILL_BINDINGS_CLI_RUNTIME_CONFIG_H_
#define WAYBILL_BINDINGS_CLI_RUNTIME_CONFIG_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "waybill/values.h"

namespace waybill::cli {

inline constexpr std::size_t kMaxRuntimeConfigBytes = std::size_t{1} << 20;

// Merges `toml` into `handlers`, which are sorted by name and stay so. Other handlers in `toml` are
// ignored: the runtime knows what it serves. kInvalidArgument, with the line: not TOML, a value of
// the wrong type, an invalid platform, or a default handler or guest platform that contradicts
// `handlers`. kLimitExceeded: above kMaxRuntimeConfigBytes or a bound of limits.h. After an error
// `handlers` are as before.
Result<void> MergeRuntimeConfig(std::string_view toml, std::vector<RuntimeHandler>& handlers);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RUNTIME_CONFIG_H_
