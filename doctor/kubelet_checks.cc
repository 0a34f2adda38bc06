// The checks of the kubelet but for its release (kubelet_version.cc).

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "doctor/gates.h"
#include "doctor/text.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/policy.h"
#include "store/base/timestamp.h"
#include "store/base/words.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

constexpr std::string_view kPolicy = "imagePullCredentialsVerificationPolicy";
constexpr std::string_view kAllowlist = "preloadedImagesVerificationAllowlist";
// More blobs than a node has; beyond, its newest one may be missed.
constexpr std::size_t kMaxBlobs = 200'000;
// A pull takes a while, and several may be of one image.
constexpr std::int64_t kPullTakes = 6 * 3600;

std::string RestartAfter(std::string_view change) {
  return std::string(change) + " in the kubelet's configuration, and restart it";
}

// The allowlist's patterns that hold all of a registry.
std::vector<std::string> WidePatterns(const std::vector<std::string>& patterns) {
  std::vector<std::string> wide;
  for (const std::string& pattern : patterns) {
    if (!pattern.ends_with("/*")) continue;
    const std::string_view before = std::string_view(pattern).substr(0, pattern.size() - 2);
    if (before.find('/') == std::string_view::npos) wide.push_back(pattern);
  }
  return wide;
}

// Of the files in a folder of the node.
std::optional<Timestamp> NewestIn(const Node& node, const std::string& folder) {
  const auto real = node.Resolve(folder);
  const auto names = node.List(folder);
  if (!real || !names) return std::nullopt;
  std::optional<Timestamp> newest;
  for (std::size_t i = 0; i < std::min(names->size(), kMaxBlobs); ++i) {
    const auto changed = ChangedAt(*real / (*names)[i]);
    if (changed && (!newest || *changed > *newest)) newest = *changed;
  }
  return newest;
}

// Where runtimes keep what a pull brings: a file, or a folder, for each.
constexpr const char* kImageFolders[] = {
    "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256",
    "/var/lib/containers/storage/overlay-images"};

// By the file's date, or the record's own.
std::optional<Timestamp> NewestRecord(const Node& node, const std::string& folder,
                                      std::size_t& records) {
  std::optional<Timestamp> newest;
  const auto names = node.List(folder);
  const auto real = node.Resolve(folder);
  if (!names || !real) return newest;
  for (const std::string& name : *names) {
    if (!name.starts_with("sha256-") || name.size() != 71) continue;
    ++records;
    auto changed = ChangedAt(*real / name);
    if (const auto text = node.Read(folder + "/" + name)) {
      const auto updated = ParseTimestamp(internal::Json::Parse(*text).TextAt("lastUpdatedTime"));
      if (updated && (!changed || *updated > *changed)) changed = *updated;
    }
    if (changed && (!newest || *changed > *newest)) newest = *changed;
  }
  return newest;
}

}  // namespace

Findings KubeletGateCheck(const Node& node) {
  const auto gate = StateOf(kVerifies, node);
  if (!gate) return {Unknown(gate.error())};
  if (gate->on) return {Ok("on " + gate->by)};
  // kubelet-version says so.
  if (node.Version() && node.Version()->minor < kOldestMinor) return {Ok("not in this release")};
  return {VerifiesNothing(
      std::string(kVerifies.name) + " is off " + gate->by + ": the kubelet verifies nothing",
      RestartAfter("turn it on (featureGates)"))};
}

Findings KubeletPolicyCheck(const Node& node) {
  if (!node.settings()) return {Unknown(node.settings().error())};
  const auto text = node.settings()->Text(kPolicy);
  std::vector<std::string> patterns;
  if (const cli::YamlNode* const list = node.settings()->Find(kAllowlist)) {
    for (const cli::YamlNode& item : list->items) patterns.push_back(item.text);
  }
  const auto gate = StateOf(kVerifies, node);
  if (gate && !gate->on) {
    if (!text || text->empty()) return {Ok("none: the gate is off")};
    return {Fail("the policy is " + *text + " and the gate is off: such a kubelet does not start",
                 RestartAfter("turn the gate on (featureGates)"))};
  }
  const std::string name = text && !text->empty() ? *text : "NeverVerifyPreloadedImages";
  const auto mode = FromWord<Verification>(name, "credential verification policy");
  if (!mode) {
    return {Fail(name + " is no policy: such a kubelet does not start",
                 RestartAfter("correct " + std::string(kPolicy)))};
  }
  if (*mode == Verification::kNeverVerify) {
    return {VerifiesNothing("NeverVerify: the kubelet verifies nothing",
                            RestartAfter("take NeverVerify out"))};
  }
  if (const auto made = VerificationPolicy::Make(*mode, patterns); !made) {
    return {Fail("the kubelet does not start: " + made.error().message,
                 RestartAfter("correct " + std::string(kAllowlist)))};
  }
  if (*mode != Verification::kNeverVerifyAllowlistedImages) return {Ok(name)};
  const auto wide = WidePatterns(patterns);
  if (wide.empty()) return {Ok(name + ", " + Count(patterns.size(), "pattern"))};
  return {Warn("all images of " + wide.front() + " are open to every pod" +
                   (wide.size() == 1
                        ? ""
                        : ", and of " + std::to_string(wide.size() - 1) + " more such patterns"),
               "name the repositories that are public, instead of whole registries")};
}

Findings KubeletDirectoryCheck(const Node& node) {
  const std::string& directory = node.kubelet_directory();
  const auto real = node.Resolve(directory);
  if (!real) {
    return {Unknown(directory + " is not there",
                    "name the kubelet's root directory with --kubelet-dir")};
  }
  if (node.kubelet() == nullptr && !node.kubelets().empty()) {
    const std::string its = node.kubelets().front().RootDirectory();
    return {Fail("the kubelet that runs keeps its files in " + its + ", not in " + directory,
                 "say so: kubelet-dir = \"" + its + "\" in /etc/waybill/config.toml")};
  }
  for (const char* folder : {"/image_manager", "/image_manager/pulled", "/image_manager/pulling"}) {
    const auto path = node.Resolve(directory + folder);
    struct stat status = {};
    if (!path || ::stat(path->c_str(), &status) != 0) continue;
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) continue;
    return {Fail(directory + folder + " can be written by others: they can write records",
                 "chmod 0700 " + directory + folder + ", and find out who did that")};
  }
  if (node.kubelet() == nullptr) {
    return {Unknown(directory + "; no kubelet runs",
                    "run it again when the kubelet runs, to see how it was started")};
  }
  return {Ok(directory)};
}

Findings KubeletRecordsCheck(const Node& node) {
  const auto gate = StateOf(kVerifies, node);
  if (gate && !gate->on) return {Ok("none: the gate is off")};
  if (node.IsInside()) return {Ok("waybill inside the kubelet keeps them")};
  const std::string folder = node.kubelet_directory() + "/image_manager/pulled";
  if (!node.Has(folder)) {
    if (node.kubelet() == nullptr) {
      return {Unknown("there is no " + folder, "start a kubelet with the gate on, and look again")};
    }
    return {VerifiesNothing("the kubelet runs and made no " + folder + ": it keeps no records",
                            "see whether the gate is on in the process that runs, and restart it")};
  }
  std::size_t records = 0;
  const auto record = NewestRecord(node, folder, records);
  std::optional<Timestamp> image;
  for (const char* place : kImageFolders) {
    const auto newest = NewestIn(node, place);
    if (newest && (!image || *newest > *image)) image = newest;
  }
  if (!image) {
    return {Ok(Count(records, "record") + (record ? ", the newest of " + Day(*record) : ""))};
  }
  if (!record || record->seconds + kPullTakes < image->seconds) {
    return {Warn((record ? "the newest record is of " + Day(*record) : "there is no record") +
                     ", and an image came on " + Day(*image),
                 "if a pod pulled it, no record was written: see the kubelet's log; an import by "
                 "hand writes none")};
  }
  return {Ok(Count(records, "record") + ", as new as the images")};
}

Findings KubeletRuntimeClassesCheck(const Node& node) {
  const auto gate = StateOf(kRuntimeClasses, node);
  if (!gate) return {Unknown(gate.error())};
  if (!gate->on) return {Ok("off " + gate->by)};
  return {Warn(std::string(kRuntimeClasses.name) + " is on " + gate->by +
                   ": the kubelet's records are the same for all classes",
               "one image of two classes has one record; a kubelet with waybill inside tells them "
               "apart")};
}

Findings KubeletPullsCheck(const Node& node) {
  if (!node.settings()) return {Unknown(node.settings().error())};
  const auto at_once = node.settings()->Number("maxParallelImagePulls");
  std::optional<std::string> serial;
  if (node.kubelet() != nullptr) serial = node.kubelet()->BooleanFlag("serialize-image-pulls");
  if (!serial) serial = node.settings()->Text("serializeImagePulls");
  const bool is_serial = serial ? *serial == "true" : !at_once || *at_once < 2;
  if (is_serial && at_once && *at_once > 1) {
    return {Fail("maxParallelImagePulls is " + std::to_string(*at_once) +
                     " and serializeImagePulls is on: such a kubelet does not start",
                 RestartAfter("take one of them out"))};
  }
  if (is_serial) return {Ok("one at a time")};
  if (at_once) return {Ok("at most " + std::to_string(*at_once) + " at a time")};
  return {Warn("as many at a time as pods ask for",
               RestartAfter("set maxParallelImagePulls, so that a start can't fill the disk"))};
}

}  // namespace waybill::doctor
