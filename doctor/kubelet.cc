// The checks of the kubelet: which release it is, and whether it verifies who may use an image.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "store/base/files.h"
#include "store/base/policy.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

// What is known here: 1.33 to 1.38.
constexpr int kOldestMinor = 33;
constexpr int kNewestMinor = 38;
constexpr const char* kUsualPrograms[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet",
                                          "/opt/bin/kubelet"};
// More blobs than a node has; beyond, its newest one may be missed.
constexpr std::size_t kMaxBlobs = 200'000;
// A pull takes a while, and several may be of one image.
constexpr std::int64_t kPullTakes = 6 * 3600;
// Where runtimes keep what a pull brings: a file, or a folder, for each.
constexpr const char* kImageFolders[] = {
    "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256",
    "/var/lib/containers/storage/overlay-images"};

std::string RestartAfter(std::string_view change) {
  return std::string(change) + " in the kubelet's configuration, and restart it";
}

// --- Which release -------------------------------------------------------------------------------

std::optional<KubeletVersion> ParseKubeletVersion(std::string_view text) {
  KubeletVersion version{.text = std::string(text)};
  const char* const end = text.data() + text.size();
  if (!text.starts_with("v1.")) return std::nullopt;
  const auto dot = std::from_chars(text.data() + 3, end, version.minor);
  int patch = 0;
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return std::nullopt;
  if (std::from_chars(dot.ptr + 1, end, patch).ec != std::errc()) return std::nullopt;
  // What a Go program is made of has versions, too; the modules of Kubernetes count from 0.
  if (version.minor < 20 || version.minor > 999) return std::nullopt;
  return version;
}

// Adds each version that stands between `before` and `end`.
void Search(std::string_view bytes, std::string_view before, char end,
            std::set<std::string>& found) {
  constexpr std::size_t kMaxVersion = 64;
  for (auto at = bytes.find(before); at != std::string_view::npos;
       at = bytes.find(before, at + 1)) {
    const std::string_view rest = bytes.substr(at + before.size(), kMaxVersion + 1);
    const std::size_t size = rest.find_first_not_of(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_");
    if (size == std::string_view::npos || rest[size] != end) continue;
    if (ParseKubeletVersion(rest.substr(0, size))) found.emplace(rest.substr(0, size));
  }
}

// What a program says of itself: by the linker's -X, between zeros; else by Go, which says of which
// version of which module it is made.
Result<std::set<std::string>> VersionsIn(const Node& node, const std::filesystem::path& path) {
  using namespace std::string_view_literals;
  const internal::Fd fd = TRY(node.files.Open(path, 0));
  std::set<std::string> linked;
  std::set<std::string> module;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  constexpr std::size_t kOverlap = 256;
  std::string bytes;
  for (;;) {
    const std::size_t kept = bytes.size();
    bytes.resize(kept + kChunk);
    const ssize_t got = ::read(fd.get(), bytes.data() + kept, kChunk);
    if (got < 0 && errno != EINTR) return internal::SystemError(errno, "read", path);
    bytes.resize(kept + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return linked.empty() ? module : linked;
    Search(bytes, "\0"sv, '\0', linked);
    Search(bytes, "\nmod\tk8s.io/kubernetes\t"sv, '\t', module);
    Search(bytes, "\ndep\tk8s.io/kubernetes\t"sv, '\t', module);
    bytes.erase(0, bytes.size() - std::min(bytes.size(), kOverlap));
  }
}

// --- Gates ---------------------------------------------------------------------------------------

// As the releases that are known here have it (pkg/features/kube_features.go).
struct Gate {
  const char* name;
  int beta_since;  // the minor release, in which it is on; 0: it is alpha in all of them
};
// The kubelet verifies who may use an image that is there (KEP-2535).
constexpr Gate kVerifies = {"KubeletEnsureSecretPulledImages", 35};
// It tells the runtime which runtime class an image is for (KEP-4216).
constexpr Gate kRuntimeClasses = {"RuntimeClassInImageCriApi", 0};

struct GateState {
  bool on = false;
  std::string by = {};  // "by its command line", "by default in v1.34.2"
  bool by_default = false;
};

// As Go's strconv.ParseBool.
std::optional<bool> ParseBool(std::string_view text) {
  for (const char* word : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == word) return true;
  }
  for (const char* word : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

// --feature-gates=A=true,B=false, which may be repeated; it wins over the configuration.
std::optional<GateState> Said(const Node& node, const std::string& name) {
  std::optional<GateState> state;
  if (node.settings && node.settings->gates.contains(name)) {
    state = {node.settings->gates.at(name), "by its configuration"};
  }
  if (node.kubelet() == nullptr) return state;
  for (const std::string& value : node.kubelet()->Values("feature-gates")) {
    for (std::string pair : LinesOf(value, ',')) {
      std::erase(pair, ' ');
      const std::size_t sign = std::min(pair.find('='), pair.size() - 1);
      const auto on = ParseBool(std::string_view(pair).substr(sign + 1));
      if (pair.substr(0, sign) == name && on) state = {*on, "by its command line"};
    }
  }
  return state;
}

// An error: nobody says it, and the release is not known.
Result<GateState> StateOf(const Gate& gate, const Node& node) {
  if (const auto state = Said(node, gate.name)) return *state;
  // Nothing else can be told of files that say more than could be read.
  if (!node.settings) return node.settings.error();
  const auto version = TRY(node.version);
  // What is said of all gates of a stage is for those that are not named.
  const bool is_beta = gate.beta_since != 0 && version.minor >= gate.beta_since;
  const char* const stage = is_beta ? "AllBeta" : "AllAlpha";
  if (auto state = Said(node, stage)) {
    state->by = std::string("by ") + stage + ", " + state->by;
    return *state;
  }
  return GateState{is_beta, "by default in " + version.text, true};
}

// --- Records -------------------------------------------------------------------------------------

// The newest file of the folder, by its date; nullopt: it has none.
std::optional<std::int64_t> NewestIn(const Node& node, const std::string& folder,
                                     std::string_view beginning) {
  const auto real = node.files.Resolve(folder);
  const auto names = node.files.List(folder);
  std::optional<std::int64_t> newest;
  if (!real || !names) return newest;
  for (std::size_t i = 0; i < std::min(names->size(), kMaxBlobs); ++i) {
    struct stat status = {};
    if (!(*names)[i].starts_with(beginning) || ::stat((*real / (*names)[i]).c_str(), &status) != 0)
      continue;
    newest = std::max<std::int64_t>(newest.value_or(0), status.st_mtim.tv_sec);
  }
  return newest;
}

std::string Day(std::int64_t seconds) {
  return FormatTimestamp(Timestamp{.seconds = seconds}).substr(0, 10);
}

}  // namespace

Result<KubeletVersion> FindKubeletVersion(const Node& node) {
  const std::string advice =
      "give --node what `kubectl get node NAME -o json` prints, or - and pipe it in";
  if (!node.json.is_null()) {
    const internal::Json* const status = internal::FieldAt(node.json, "status");
    const internal::Json* const info =
        status == nullptr ? nullptr : internal::FieldAt(*status, "nodeInfo");
    const auto version =
        ParseKubeletVersion(info == nullptr ? "" : internal::TextAt(*info, "kubeletVersion"));
    if (version) return *version;
    return Error{ErrorCode::kNotFound, "--node: it has no status.nodeInfo.kubeletVersion", advice};
  }
  std::vector<std::string> programs(std::begin(kUsualPrograms), std::end(kUsualPrograms));
  const Process* const kubelet = node.kubelet();
  if (kubelet != nullptr) programs = {"/proc/" + kubelet->pid + "/exe", kubelet->words[0]};
  Error missing{ErrorCode::kNotFound, "no kubelet was found, running or installed", advice};
  for (const std::string& program : programs) {
    if (!program.starts_with('/')) continue;
    const auto versions = VersionsIn(node, program);
    if (!versions) {
      if (kubelet != nullptr) missing.message = versions.error().message;
      continue;
    }
    if (versions->size() == 1) return *ParseKubeletVersion(*versions->begin());
    missing.message = program + (versions->empty() ? " does not say which release it is"
                                                   : " names several releases");
    return missing;
  }
  return missing;
}

Result<void> KubeletVersionCheck(const Node& node, Report& report) {
  const auto version = TRY(node.version);
  if (version.minor < kOldestMinor) {
    return report.VerifiesNothing(version.text + " verifies nothing: the feature came with 1.33",
                                  "upgrade the kubelet to 1.35 or newer");
  }
  if (version.minor > kNewestMinor) {
    return report.Warn(
        version.text + " is newer than this waybill knows (1." + std::to_string(kNewestMinor) + ")",
        "look for a newer waybill, and read its notes on this release");
  }
  return report.Ok(version.text);
}

Result<void> KubeletGateCheck(const Node& node, Report& report) {
  const auto gate = TRY(StateOf(kVerifies, node));
  if (gate.on) return report.Ok("on " + gate.by);
  // kubelet-version says so.
  if (node.version && node.version->minor < kOldestMinor) return report.Ok("not in this release");
  // A flag may say otherwise.
  if (gate.by_default && !node.told) return report.Ok("off " + gate.by);
  return report.VerifiesNothing(
      std::string(kVerifies.name) + " is off " + gate.by + ": the kubelet verifies nothing",
      RestartAfter("turn it on (featureGates)"));
}

Result<void> KubeletPolicyCheck(const Node& node, Report& report) {
  const auto settings = TRY(node.settings);
  const std::string& policy = settings.policy;
  const auto gate = StateOf(kVerifies, node);
  if (gate && !gate->on) {
    if (policy.empty()) return report.Ok("none: the gate is off");
    return report.Fail(
        "the policy is " + policy + " and the gate is off: such a kubelet does not start",
        RestartAfter("turn the gate on (featureGates)"));
  }
  const std::string name = policy.empty() ? "NeverVerifyPreloadedImages" : policy;
  const auto mode = FromWord<Verification>(name, "credential verification policy");
  if (!mode) {
    return report.Fail(name + " is no policy: such a kubelet does not start",
                       RestartAfter("correct imagePullCredentialsVerificationPolicy"));
  }
  if (*mode == Verification::kNeverVerify) {
    return report.VerifiesNothing("NeverVerify: the kubelet verifies nothing",
                                  RestartAfter("take NeverVerify out"));
  }
  if (const auto made = VerificationPolicy::Make(*mode, settings.allowlist); !made) {
    return report.Fail("the kubelet does not start: " + made.error().message,
                       RestartAfter("correct preloadedImagesVerificationAllowlist"));
  }
  if (*mode != Verification::kNeverVerifyAllowlistedImages) return report.Ok(name);
  // Those that hold all of a registry.
  std::vector<std::string> wide = settings.allowlist;
  std::erase_if(wide, [](const std::string& pattern) {
    return !pattern.ends_with("/*") || pattern.find('/') != pattern.size() - 2;
  });
  if (wide.empty()) return report.Ok(name + ", " + Count(settings.allowlist.size(), "pattern"));
  return report.Warn("all images of " + FirstOf(wide) + " are open to every pod",
                     "name the repositories that are public, instead of whole registries");
}

Result<void> KubeletDirectoryCheck(const Node& node, Report& report) {
  const std::string& directory = node.kubelet_directory;
  if (const auto real = node.files.Resolve(directory); !real) {
    return report.Unknown(real.error().message,
                          "name the kubelet's root directory with --kubelet-dir");
  }
  if (node.kubelet() == nullptr && !node.kubelets.empty()) {
    const std::string its = node.kubelets.front().RootDirectory();
    return report.Fail("the kubelet that runs keeps its files in " + its + ", not in " + directory,
                       "say so: kubelet-dir = \"" + its + "\" in /etc/waybill/config.toml");
  }
  for (const char* folder : {"/image_manager", "/image_manager/pulled", "/image_manager/pulling"}) {
    if (!node.MayHave(directory + folder)) continue;
    const auto path = TRY(node.files.Resolve(directory + folder));
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) return internal::SystemError(errno, "look at", path);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) continue;
    return report.Fail(directory + folder + " can be written by others: they can write records",
                       "chmod 0700 " + directory + folder + ", and find out who did that");
  }
  return report.Ok(directory);
}

Result<void> KubeletRecordsCheck(const Node& node, Report& report) {
  const auto classes = StateOf(kRuntimeClasses, node);
  if (classes && classes->on) {
    report.Warn(std::string(kRuntimeClasses.name) + " is on " + classes->by +
                    ": the kubelet's records are the same for all classes",
                "one image of two classes has one record; a kubelet with waybill inside tells "
                "them apart");
  }
  const auto gate = StateOf(kVerifies, node);
  if (gate && !gate->on) return report.Ok("none: the gate is off");
  if (node.is_inside.value_or(false)) return report.Ok("waybill inside the kubelet keeps them");
  const std::string folder = node.kubelet_directory + "/image_manager/pulled";
  if (!node.MayHave(folder)) {
    if (node.kubelet() == nullptr) {
      return report.Unknown("there is no " + folder,
                            "start a kubelet with the gate on, and look "
                            "again");
    }
    return report.VerifiesNothing(
        "the kubelet runs and made no " + folder + ": it keeps no records",
        "see whether the gate is on in the process that runs, and restart it");
  }
  if (const auto names = node.files.List(folder); !names) return names.error();
  const KubeletRecords& records = node.records;
  if (records.unreadable != 0) {
    report.Warn(Count(records.unreadable, "file") + " of the kubelet's can't be read as a record",
                "a kubelet takes their images for preloaded: see its log; a guard puts them right");
  }
  const auto record = NewestIn(node, folder, "sha256-");
  std::optional<std::int64_t> image;
  for (const char* place : kImageFolders) {
    const auto newest = NewestIn(node, place, "");
    if (newest) image = std::max(image.value_or(0), *newest);
  }
  if (image && record.value_or(0) + kPullTakes < *image) {
    return report.Warn(
        (record ? "the newest record is of " + Day(*record) : "there is no record") +
            ", and an image came on " + Day(*image),
        "if a pod pulled it, no record was written: see the kubelet's log; an import by hand "
        "writes none");
  }
  return report.Ok(Count(records.refs.size(), "record") + (image ? ", as new as the images" : ""));
}

}  // namespace waybill::doctor
