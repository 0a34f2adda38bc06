#include "bindings/cli/kubelet_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bindings/cli/failed_path.h"
#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/yaml_document.h"
#include "store/base/try.h"

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

// Refused, since what the kubelet makes of an empty value depends on which of its files has it.
bool IsNothing(const YamlNode& node) {
  return node.IsScalar() && (JsonOfScalar(node) == "null" || node.text.empty());
}

Error Nothing(std::string_view key) {
  return NotTaken(fmt::format("{} has no value", key), "give it one, or leave it out");
}

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

// What the files say of the feature.
struct Gates {
  std::optional<bool> gate;
  std::optional<bool> all_beta;
};

// `file` wins over what `policy` and `said` have from earlier ones.
Result<void> TakeFile(std::string_view file, KubeletPolicy& policy, Gates& said) {
  auto root = TRY(ReadYaml(file));
  if (!root.IsMap() || !IsText(root.Find("kind"), "KubeletConfiguration") ||
      !IsText(root.Find("apiVersion"), kVersion)) {
    return NotTaken(
        "it is no KubeletConfiguration",
        fmt::format("it begins with apiVersion: {} and kind: KubeletConfiguration", kVersion));
  }
  const YamlNode* mode = root.Find("imagePullCredentialsVerificationPolicy");
  if (mode != nullptr) {
    if (IsNothing(*mode)) return Nothing("imagePullCredentialsVerificationPolicy");
    if (!mode->IsScalar()) return NotTaken("imagePullCredentialsVerificationPolicy is no string");
    policy.policy = mode->text;
  }
  const YamlNode* allow = root.Find("preloadedImagesVerificationAllowlist");
  if (allow != nullptr) {
    if (IsNothing(*allow)) return Nothing("preloadedImagesVerificationAllowlist");
    TRY(TakeAllowlist(*allow, policy.allow));
  }
  const YamlNode* gates = root.Find("featureGates");
  if (gates == nullptr) return {};
  if (!gates->IsMap()) return NotTaken("featureGates is no map");
  const auto take = [&](std::string_view name, std::optional<bool>& says) {
    const YamlNode* its = gates->Find(name);
    if (its != nullptr) says = its->IsScalar() && JsonOfScalar(*its) == "true";
  };
  take(kGate, said.gate);
  take("AllBeta", said.all_beta);
  return {};
}

}  // namespace

// In the order in which the kubelet walks a directory: by name, level for level, into no symbolic
// link.
Result<std::vector<std::string>> KubeletConfigFiles(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  if (fs::is_symlink(path, error)) {
    return BadFlag(
        kFlag, fmt::format("{} is a symbolic link, into which the kubelet does not look", path));
  }
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    const bool is_directory = fs::is_directory(at->symlink_status());
    if (!is_directory && at->path().filename().string().ends_with(".conf")) {
      found.push_back(at->path());
    }
    if (found.size() > kMaxDropIns) {
      return BadFlag(kFlag, fmt::format("{} has more than {} files", path, kMaxDropIns));
    }
  }
  if (error) {
    Error failed = FailedPath(path, error.value());
    failed.message = fmt::format("{}: {}: {}", kFlag, path, error.message());
    return failed;
  }
  // Component by component.
  std::sort(found.begin(), found.end());
  return std::vector<std::string>(found.begin(), found.end());
}

Flag& KubeletConfigFlag::Declare(Flags& flags) {
  return flags.List(std::string(kFlag), &paths_, "FILE|DIR",
                    "take the policy and the allowlist from the kubelet's own config.yaml, or\n"
                    "from the directory of its --config-dir; may be repeated, the last wins");
}

Result<KubeletPolicy> KubeletConfigFlag::Read() const {
  KubeletPolicy policy;
  Gates said;
  std::size_t files_read = 0;
  for (const std::string& path : paths_) {
    if (path.empty() || path == "-") return BadFlag(kFlag, "it takes a file or a directory");
    auto files = TRY(KubeletConfigFiles(path));
    for (const std::string& file : files) {
      auto content = ReadOwnFile(file, kMaxYamlBytes);
      if (!content && content.error().code == ErrorCode::kIo) return content.error();
      if (!content) return BadFlag(kFlag, content.error().message, content.error().hint);
      ++files_read;
      if (auto taken = TakeFile(*content, policy, said); !taken) {
        return AboutInput(file, taken.error(), "nothing was done");
      }
    }
  }
  if (files_read == 0) {
    return BadFlag(kFlag, fmt::format("{} has no file that ends in .conf", paths_.front()),
                   "name the kubelet's config.yaml, too");
  }
  // AllBeta is for gates of that stage that are not named themselves.
  if (!said.gate.value_or(said.all_beta.value_or(true))) {
    return BadFlag(kFlag,
                   fmt::format("the feature gate {} is off there: this kubelet verifies "
                               "nothing",
                               kGate),
                   "turn the gate on, or say with --policy what waybill is to go by");
  }
  return policy;
}

}  // namespace waybill::cli
