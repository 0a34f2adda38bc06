// What a kubelet's own configuration says (kubelet.config.k8s.io/v1beta1).

#ifndef WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_
#define WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/flags.h"

namespace waybill::cli {

// --kubelet-config: values for these flags, for as many of them as the command has. A kubelet with
// these files goes by them: a later file wins over an earlier one, and of a directory, as of
// --config-dir, the files that end in .conf count in the order of their names.
//
//   --policy              imagePullCredentialsVerificationPolicy
//   --allow               preloadedImagesVerificationAllowlist; both or neither from here
//   --ids-per-pod         userNamespaces.idsPerPod
//   --max-pods            maxPods
//   --no-user-namespaces  the gate UserNamespacesSupport is off
//   --image-gc-high-threshold, --image-gc-low-threshold, --image-minimum-gc-age,
//   --image-maximum-gc-age  imageGCHighThresholdPercent, imageGCLowThresholdPercent,
//                         imageMinimumGCAge, imageMaximumGCAge
//
// kInvalidArgument: a file can't be read or is no KubeletConfiguration; or the command asks for a
// policy, and the files turn verification off.
Flag& DeclareKubeletConfig(
    Flags& flags,
    std::string_view what = "the policy, the allowlist and the sizes of the pool of host IDs");

// The files that a kubelet takes of a file, which is itself, or of a directory of drop-ins, in the
// order in which it takes them. kInvalidArgument, kIo.
Result<std::vector<std::string>> KubeletConfigFiles(const std::string& path);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_
