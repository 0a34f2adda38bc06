// The verification policy of a kubelet's own configuration (kubelet.config.k8s.io/v1beta1).

#ifndef WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_
#define WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/flags.h"
#include "waybill/result.h"

namespace waybill::cli {

struct KubeletPolicy {
  std::optional<std::string> policy;  // imagePullCredentialsVerificationPolicy
  std::vector<std::string> allow;     // preloadedImagesVerificationAllowlist
};

// --kubelet-config.
class KubeletConfigFlag {
 public:
  Flag& Declare(Flags& flags);
  bool given() const { return !paths_.empty(); }
  // What a kubelet with these files goes by: a later file wins over an earlier one, and of a
  // directory, as of --config-dir, the files that end in .conf count in the order of their names.
  // kInvalidArgument: a file can't be read, is no KubeletConfiguration, or turns the feature off.
  Result<KubeletPolicy> Read() const;

 private:
  std::vector<std::string> paths_;
};

// The files that a kubelet takes of a file, which is itself, or of a directory of drop-ins, in the
// order in which it takes them. kInvalidArgument, kIo.
Result<std::vector<std::string>> KubeletConfigFiles(const std::string& path);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_KUBELET_CONFIG_H_
