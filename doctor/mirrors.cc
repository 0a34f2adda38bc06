// Whether another host than the registry may serve a pull, and so say whose credentials are good.

#include <algorithm>
#include <map>
#include <set>

#include "doctor/checks.h"
#include "doctor/kubelet_records.h"
#include "store/base/image_name.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

constexpr const char* kAnyDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000";
// Names that are looked at. A node has a few hundred images.
constexpr std::size_t kMaxNames = 2000;
constexpr std::size_t kMaxShown = 20;

// Of a registry: the hosts beside it, by how bad they are.
struct Served {
  std::map<std::string, PullSource> open = {};
  std::map<std::string, PullSource> unsure = {};
  std::set<std::string> problems = {};
};

// What records and intents name; where there are none, what is on the node.
std::set<std::string> NamesOn(const Node& node) {
  std::set<std::string> images = ReadKubeletRecords(node).images;
  if (images.empty()) {
    if (const auto& listed = node.Images()) {
      for (const ListedImage& image : *listed) {
        images.insert(image.repo_tags.begin(), image.repo_tags.end());
        images.insert(image.repo_digests.begin(), image.repo_digests.end());
      }
    }
  }
  std::set<std::string> names;
  for (const std::string& image : images) {
    if (const auto name = ImageName(image)) names.emplace(*name);
  }
  return names;
}

void Take(const PullSources& sources, Served& served) {
  served.problems.insert(sources.problems.begin(), sources.problems.end());
  for (const PullSource& other : sources.others) {
    if (other.serves_manifests)
      (other.open ? served.open : served.unsure).emplace(other.host, other);
  }
}

void Report(const std::string& registry, const Served& served, Findings& findings) {
  for (const auto& [host, source] : served.open) {
    findings.push_back(
        Fail("images of " + registry + " may come from " + host + " (" + source.where +
                 "): " + source.open_because + ", so any Secret proves itself",
             "take it out, let it only pull (capabilities = [\"pull\"] in hosts.toml) where images "
             "are used by tag, or keep private images in a registry without it"));
  }
  for (const auto& [host, source] : served.unsure) {
    findings.push_back(Warn(
        "images of " + registry + " may come from " + host + " (" + source.where +
            "), and nothing says whether it asks pods for credentials" +
            (source.insecure ? "; it is not asked who it is, so others can answer for it" : ""),
        "ask it for a private image without credentials (GET https://" + host +
            "/v2/REPOSITORY/manifests/TAG): an answer other than 401 lets any Secret prove "
            "itself"));
  }
}

}  // namespace

Findings CredentialsMirrorsCheck(const Node& node) {
  const auto& pulls = node.Pulls();
  if (!pulls) return {Unknown(pulls.error())};
  const std::set<std::string> names = NamesOn(node);
  std::map<std::string, Served> by_registry;
  std::size_t looked = 0;
  for (const std::string& name : names) {
    if (++looked > kMaxNames) break;
    for (const std::string& image : {name, name + kAnyDigest}) {
      const auto sources = PullSourcesOf(*pulls, image, "");
      if (!sources) return {Unknown(sources.error())};
      Take(*sources, by_registry[sources->registry]);
    }
  }
  Findings findings;
  // What hides the configuration hides it for all.
  std::set<std::string> problems(pulls->problems.begin(), pulls->problems.end());
  std::string alone;
  for (const auto& [registry, served] : by_registry) {
    problems.insert(served.problems.begin(), served.problems.end());
    Report(registry, served, findings);
    if (served.open.empty() && served.unsure.empty()) {
      alone += (alone.empty() ? "" : ", ") + registry;
    }
  }
  for (const std::string& problem : problems) {
    findings.push_back(Unknown("who serves pulls is not known: " + problem,
                               "put it right, or give --cri the runtime that the kubelet uses"));
  }
  if (names.size() > kMaxNames) {
    findings.push_back(Unknown("only the first " + std::to_string(kMaxNames) + " of " +
                                   std::to_string(names.size()) + " image names were looked at",
                               "prune records of images that are gone"));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.verdict > b.verdict; });
  if (findings.size() > kMaxShown) findings.resize(kMaxShown);
  if (!findings.empty()) return findings;
  return {Ok(alone.empty()
                 ? "no mirror is configured that is known of, and no image names a registry"
                 : "no other host serves images of " + alone)};
}

}  // namespace waybill::doctor
