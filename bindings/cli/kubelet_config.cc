#include "bindings/cli/kubelet_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/yaml_document.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kFlag = "--kubelet-config";
constexpr std::string_view kVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kGate = "KubeletEnsureSecretPulledImages";
constexpr std::size_t kMaxDropIns = 1000;

Error NotTaken(std::string_view what, std::string_view hint = {}) {
  return {ErrorCode::kInvalidArgument, std::string(what), std::string(hint)};
}

bool IsText(const YamlNode* node, std::string_view text) {
  return node != nullptr && node->IsScalar() && node->text == text;
}

bool IsNull(const YamlNode& node) { return node.IsScalar() && JsonOfScalar(node) == "null"; }

Result<void> TakeAllowlist(const YamlNode& list, std::vector<std::string>& allow) {
  if (!list.IsList()) return NotTaken("preloadedImagesVerificationAllowlist is no list");
  allow.clear();
  for (const YamlNode& item : list.items) {
    if (!item.IsScalar()) {
      return NotTaken("preloadedImagesVerificationAllowlist holds what is no string");
    }
    allow.push_back(item.text);
  }
  return {};
}

// `file` wins over what `policy` has from earlier ones. `gate`: what the files say of the feature.
Result<void> TakeFile(std::string_view file, KubeletPolicy& policy, std::optional<bool>& gate) {
  auto root = ReadYaml(file);
  if (!root) return root.error();
  if (!root->IsMap() || !IsText(root->Find("kind"), "KubeletConfiguration") ||
      !IsText(root->Find("apiVersion"), kVersion)) {
    return NotTaken(
        "it is no KubeletConfiguration",
        fmt::format("it begins with apiVersion: {} and kind: KubeletConfiguration", kVersion));
  }
  const YamlNode* mode = root->Find("imagePullCredentialsVerificationPolicy");
  if (mode != nullptr && !IsNull(*mode)) {
    if (!mode->IsScalar()) return NotTaken("imagePullCredentialsVerificationPolicy is no string");
    // An empty one is unset.
    if (!mode->text.empty()) policy.policy = mode->text;
  }
  const YamlNode* allow = root->Find("preloadedImagesVerificationAllowlist");
  if (allow != nullptr && !IsNull(*allow)) {
    if (auto taken = TakeAllowlist(*allow, policy.allow); !taken) return taken;
  }
  const YamlNode* gates = root->Find("featureGates");
  const YamlNode* its = gates != nullptr && gates->IsMap() ? gates->Find(kGate) : nullptr;
  if (its != nullptr) gate = its->IsScalar() && JsonOfScalar(*its) == "true";
  return {};
}

Result<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (std::filesystem::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".conf") files.push_back(at->path().string());
    if (files.size() > kMaxDropIns) {
      return BadFlag(kFlag, fmt::format("{} has more than {} files", path, kMaxDropIns));
    }
  }
  if (error) return BadFlag(kFlag, fmt::format("{}: {}", path, error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void KubeletConfigFlag::Declare(Flags& flags, std::vector<std::string> unless) {
  flags.List(std::string(kFlag), &paths_, "FILE|DIR",
             "take the policy and the allowlist from the kubelet's own config.yaml, or\n"
             "from the directory of its --config-dir; may be repeated, the last wins");
  flags.TakesSetting(kFlag, {.unless = std::move(unless)});
}

Result<KubeletPolicy> KubeletConfigFlag::Read() const {
  KubeletPolicy policy;
  std::optional<bool> gate;
  for (const std::string& path : paths_) {
    if (path.empty() || path == "-") return BadFlag(kFlag, "it takes a file or a directory");
    auto files = FilesOf(path);
    if (!files) return files.error();
    for (const std::string& file : *files) {
      auto content = ReadInput(file, kMaxYamlBytes);
      if (!content) return content.error();
      if (auto taken = TakeFile(*content, policy, gate); !taken) {
        return AboutInput(file, taken.error(), "nothing was done");
      }
    }
  }
  if (gate == false) {
    return BadFlag(kFlag,
                   fmt::format("the feature gate {} is off there: this kubelet verifies "
                               "nothing",
                               kGate),
                   "turn the gate on, or say with --policy what waybill is to go by");
  }
  return policy;
}

}  // namespace waybill::cli
