// What a command reads: a file or standard input, never more than a bound.

#ifndef WAYBILL_BINDINGS_CLI_INPUT_H_
#define WAYBILL_BINDINGS_CLI_INPUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "waybill/result.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"

namespace waybill::cli {

// The content of the file at `path`, or of standard input for "-". kInvalidArgument where it can't
// be read, kLimitExceeded above `most` bytes; both name the file.
Result<std::string> ReadInput(const std::string& path, std::size_t most);

// The images in `path`, which holds what `crictl images -o json` prints. Errors name the file.
Result<std::vector<ImageOnNode>> ReadImageList(const std::string& path);

// The runtime handlers in `status`, which holds what `crictl info` prints, and what `config`, a
// configuration file of containerd, says of them. Errors name the file.
Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const std::string& status,
                                                        const std::optional<std::string>& config);

// The UIDs in `path`, which holds what `kubectl get pods -o json`, the kubelet's /pods or `crictl
// pods -o json` prints. Errors name the file.
Result<std::vector<std::string>> ReadPodList(const std::string& path);

// A mistyped --kubelet-dir would look like a node that never pulled anything.
Result<void> CheckKubeletDirectory(const std::string& directory);
// A mistyped --pods-dir like one without pods in user namespaces.
Result<void> CheckPodsDirectory(const std::string& directory);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_INPUT_H_
