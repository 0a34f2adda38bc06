#include "bindings/cli/kubelet_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/pull_message.h"
#include "bindings/cli/yaml_document.h"
#include "store/base/try.h"
#include "waybill/values.h"

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

constexpr std::string_view kUsernsGate = "UserNamespacesSupport";

// What the files say, the last word of each.
struct Said {
  std::map<std::string, Flags::Supplied> flags;
  std::optional<bool> gate;
  std::optional<bool> all_beta;

  void Set(std::string flag, Flag::Values values, const std::string& file) {
    flags[flag] = {flag, std::move(values), file};
  }
};

Result<Flag::Values> TakeAllowlist(const YamlNode& list) {
  if (!list.IsList()) return NotTaken("preloadedImagesVerificationAllowlist is no list");
  Flag::Values allow;
  for (const YamlNode& item : list.items) {
    if (!item.IsScalar()) {
      return NotTaken("preloadedImagesVerificationAllowlist holds what is no string");
    }
    allow.push_back(item.text);
  }
  return allow;
}

Result<std::string> TakeNumber(std::string_view key, const YamlNode& node) {
  if (IsNothing(node)) return Nothing(key);
  std::string number = node.IsScalar() ? JsonOfScalar(node) : "";
  const std::size_t digits = number.starts_with('-') ? 1 : 0;
  if (number.size() == digits ||
      number.find_first_not_of("0123456789", digits) != std::string::npos) {
    return NotTaken(fmt::format("{} is no whole number", key));
  }
  return number;
}

Result<void> TakePool(const YamlNode& root, const std::string& path, Said& said) {
  if (const YamlNode* pods = root.Find("maxPods")) {
    auto number = TRY(TakeNumber("maxPods", *pods));
    // A kubelet does not tell it from nothing.
    if (number != "0") said.Set("--max-pods", {std::move(number)}, path);
  }
  const YamlNode* userns = root.Find("userNamespaces");
  if (userns == nullptr) return {};
  if (IsNothing(*userns)) return Nothing("userNamespaces");
  if (!userns->IsMap()) return NotTaken("userNamespaces is no map");
  if (const YamlNode* ids = userns->Find("idsPerPod")) {
    auto number = TRY(TakeNumber("userNamespaces.idsPerPod", *ids));
    if (number == "0") number = std::to_string(IdPool().ids_per_pod);
    said.Set("--ids-per-pod", {std::move(number)}, path);
  }
  return {};
}

// A duration of Go's, in whole seconds: "2m0s", "1.5h".
Result<std::string> TakeDuration(std::string_view key, const YamlNode& node) {
  if (IsNothing(node)) return Nothing(key);
  constexpr std::int64_t kMostMilliseconds = 1'000'000'000'000;
  const auto milliseconds = ParseGoDuration(node.IsScalar() ? node.text : "");
  if (!milliseconds || *milliseconds > kMostMilliseconds) {
    return NotTaken(fmt::format("{} is no duration", key), "the form is 2m or 168h0m0s");
  }
  return fmt::format("{}s", *milliseconds / 1000);
}

Result<void> TakeImageGc(const YamlNode& root, const std::string& path, Said& said) {
  const auto take = [&](const char* key, const char* flag, auto parse) -> Result<void> {
    const YamlNode* const node = root.Find(key);
    if (node == nullptr) return {};
    auto value = TRY(parse(key, *node));
    said.Set(flag, {std::move(value)}, path);
    return {};
  };
  TRY(take("imageGCHighThresholdPercent", "--image-gc-high-threshold", TakeNumber));
  TRY(take("imageGCLowThresholdPercent", "--image-gc-low-threshold", TakeNumber));
  TRY(take("imageMinimumGCAge", "--image-minimum-gc-age", TakeDuration));
  TRY(take("imageMaximumGCAge", "--image-maximum-gc-age", TakeDuration));
  // To a kubelet that is its default.
  if (const auto minimum = said.flags.find("--image-minimum-gc-age");
      minimum != said.flags.end() && minimum->second.values.front() == "0s") {
    said.flags.erase(minimum);
  }
  return {};
}

Result<void> TakeGates(const YamlNode& root, const std::string& path, Said& said) {
  const YamlNode* gates = root.Find("featureGates");
  if (gates == nullptr) return {};
  if (!gates->IsMap()) return NotTaken("featureGates is no map");
  const auto find = [&](std::string_view name) -> std::optional<bool> {
    const YamlNode* its = gates->Find(name);
    if (its == nullptr) return std::nullopt;
    return its->IsScalar() && JsonOfScalar(*its) == "true";
  };
  if (const auto gate = find(kGate)) said.gate = gate;
  if (const auto all_beta = find("AllBeta")) said.all_beta = all_beta;
  if (const auto userns = find(kUsernsGate)) {
    said.Set("--no-user-namespaces", {*userns ? "false" : "true"}, path);
  }
  return {};
}

// `file` wins over what `said` has from earlier ones.
Result<void> TakeFile(std::string_view file, const std::string& path, Said& said) {
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
    said.Set("--policy", {mode->text}, path);
  }
  const YamlNode* allow = root.Find("preloadedImagesVerificationAllowlist");
  if (allow != nullptr) {
    if (IsNothing(*allow)) return Nothing("preloadedImagesVerificationAllowlist");
    said.Set("--allow", TRY(TakeAllowlist(*allow)), path);
  }
  TRY(TakePool(root, path, said));
  TRY(TakeImageGc(root, path, said));
  return TakeGates(root, path, said);
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

namespace {

Result<Said> ReadFiles(const Flag::Values& paths) {
  Said said;
  std::size_t files_read = 0;
  for (const std::string& path : paths) {
    if (path.empty() || path == "-") return BadFlag(kFlag, "it takes a file or a directory");
    auto files = TRY(KubeletConfigFiles(path));
    for (const std::string& file : files) {
      auto content = ReadOwnFile(file, kMaxYamlBytes);
      if (!content && content.error().code == ErrorCode::kIo) return content.error();
      if (!content) return BadFlag(kFlag, content.error().message, content.error().hint);
      ++files_read;
      if (auto taken = TakeFile(*content, file, said); !taken) {
        return AboutInput(file, taken.error(), "nothing was done");
      }
    }
  }
  if (files_read == 0) {
    return BadFlag(kFlag, fmt::format("{} has no file that ends in .conf", paths.front()),
                   "name the kubelet's config.yaml, too");
  }
  return said;
}

Result<std::vector<Flags::Supplied>> Supply(const Flags& flags, const Flag::Values& paths) {
  auto said = TRY(ReadFiles(paths));
  const auto has_values = [&](std::string_view name) {
    const Flag* flag = flags.Find(name);
    return flag != nullptr && !flag->values.empty();
  };
  const bool has_policy = has_values("--policy") || has_values("--allow");
  // AllBeta is for gates of that stage that are not named themselves.
  if (flags.Find("--policy") != nullptr && !has_policy &&
      !said.gate.value_or(said.all_beta.value_or(true))) {
    return BadFlag(kFlag,
                   fmt::format("the feature gate {} is off there: this kubelet verifies "
                               "nothing",
                               kGate),
                   "turn the gate on, or say with --policy what waybill is to go by");
  }
  std::vector<Flags::Supplied> supplied;
  for (auto& [name, values] : said.flags) {
    // Never half of a policy.
    const bool is_policy = name == "--policy" || name == "--allow";
    if (is_policy && has_policy && !has_values(name)) continue;
    supplied.push_back(std::move(values));
  }
  return supplied;
}

}  // namespace

Flag& DeclareKubeletConfig(Flags& flags, std::string_view what) {
  return flags.Source(
      std::string(kFlag), "FILE|DIR",
      fmt::format("take {}\n"
                  "from the kubelet's config.yaml, or the directory of its --config-dir",
                  what),

      Supply);
}

}  // namespace waybill::cli
