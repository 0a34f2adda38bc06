// The runtime: which it is, how it names images, who pulls, what short names stand for.

#include <algorithm>
#include <map>
#include <set>

#include "doctor/checks.h"
#include "doctor/kubelet_records.h"
#include "doctor/runtime_process.h"
#include "doctor/text.h"
#include "runtime/files/pull_sources.h"
#include "store/base/image_spellings.h"

namespace waybill::doctor {
namespace {

// Which runtime pulls is not known, so nothing is said of how.
Finding NotSaid(const RuntimePulls& pulls) {
  return Unknown("how images are pulled is not known" +
                     (pulls.problems.empty() ? std::string() : ": " + pulls.problems.front()),
                 "give --cri the runtime that the kubelet uses");
}

// A name that no list of aliases has.
constexpr const char* kShortName = "short-name-that-nobody-has";

std::string Listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Findings RuntimeVersionCheck(const Node& node) {
  if (!node.runtime()) return {Unknown(node.runtime().error())};
  const std::string& name = node.runtime_name();
  if (!name.starts_with("containerd ") && !name.starts_with("cri-o ")) {
    return {Warn(name + " is not a runtime whose pulls are understood: containerd and CRI-O are",
                 "what the other checks of the runtime say may lack something")};
  }
  std::string seen = name;
  if (const auto& pulls = node.Pulls(); pulls && !pulls->handlers.empty()) {
    seen += ", handlers " + Listed(pulls->handlers);
  }
  if (const auto& images = node.Images()) {
    const auto pinned = std::count_if(images->begin(), images->end(),
                                      [](const ListedImage& image) { return image.pinned; });
    seen += ", " + Count(images->size(), "image") + ", " + std::to_string(pinned) + " pinned";
  }
  return {Ok(seen)};
}

Findings RuntimeImageRefsCheck(const Node& node) {
  const auto& images = node.Images();
  if (!images) return {Unknown(images.error())};
  const KubeletRecords records = ReadKubeletRecords(node);
  // What the record of an image is found under, by what it spells.
  std::map<std::string, std::string> by_spelling;
  for (const ListedImage& image : *images) by_spelling[internal::SpellingOf(image.id)] = image.id;
  std::size_t missed = 0;
  std::string example;
  for (const std::string& ref : records.refs) {
    const auto image = by_spelling.find(internal::SpellingOf(ref));
    if (image == by_spelling.end() || image->second == ref ||
        records.refs.contains(image->second)) {
      continue;
    }
    ++missed;
    example = "a record of " + ref + ", an image " + image->second;
  }
  if (missed != 0) {
    return {Fail(
        "the runtime spells image refs otherwise than " + Count(missed, "record") + ": " + example,
        "a kubelet does not find these records, and may take the images for preloaded: "
        "pull them again, or guard the node with waybill, which knows both spellings")};
  }
  const bool prefixed = std::all_of(images->begin(), images->end(), [](const ListedImage& image) {
    return image.id.starts_with("sha256:");
  });
  return {Ok(prefixed ? "image refs are image IDs with sha256:" : "image refs are image IDs")};
}

Findings RuntimeGuestPullsCheck(const Node& node) {
  const auto& pulls = node.Pulls();
  if (!pulls) return {Unknown(pulls.error())};
  if (pulls->runtime == PullRuntime::kUnknown) return {NotSaid(*pulls)};
  Findings findings;
  for (const GuestPuller& puller : pulls->guest_pullers) {
    findings.push_back(
        Warn("images of handler " + puller.handler + " are pulled in the guest (" + puller.because +
                 "): what the kubelet records of them proves nothing",
             "let the guest check who may use an image (its policy and its attestation), and give "
             "tenants nodes of their own where it does not"));
  }
  if (findings.empty()) findings.push_back(Ok("no handler is known to pull in the guest"));
  return findings;
}

Findings RuntimeShortNamesCheck(const Node& node) {
  const auto& pulls = node.Pulls();
  if (!pulls) return {Unknown(pulls.error())};
  if (pulls->runtime == PullRuntime::kUnknown) return {NotSaid(*pulls)};
  const auto sources = PullSourcesOf(*pulls, kShortName, "");
  if (!sources) return {Unknown(sources.error())};
  std::set<std::string> hosts;
  for (const PullSource& other : sources->others) {
    if (other.where.find("short names") != std::string::npos) hosts.insert(other.host);
  }
  if (hosts.empty()) return {Ok("short names are docker.io's")};
  return {Warn("short names are looked for at " +
                   Listed(std::vector<std::string>(hosts.begin(), hosts.end())) +
                   ", and the kubelet takes them for docker.io's: Secrets for docker.io go there",
               "write images with their registry; let unqualified-search-registries of "
               "registries.conf have docker.io alone, or nothing")};
}

Findings RuntimeProxyCheck(const Node& node) {
  const auto process = FindRuntimeProcess(node);
  if (!process || process->proxy.empty()) return {Ok("the runtime is told of no proxy")};
  return {Warn("the runtime pulls through the proxy " + process->proxy,
               "make sure that it passes connections on as they are: one that answers registries' "
               "names itself, with a certificate that the node trusts, is a mirror")};
}

}  // namespace waybill::doctor
