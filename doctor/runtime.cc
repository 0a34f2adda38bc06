// The checks of the runtime, and of who has and who checks credentials.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "store/base/ascii.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"

namespace waybill::doctor {
namespace {

constexpr const char* kAnyDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000";
// A name that no list of aliases has.
constexpr const char* kShortName = "short-name-that-nobody-has";
// Names that are looked at. A node has a few hundred images.
constexpr std::size_t kMaxNames = 2000;
constexpr std::size_t kMaxShown = 20;

std::string Listed(const auto& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// What is on the node, and what records and intents name.
std::set<std::string> NamesOn(const Node& node) {
  std::set<std::string> images = node.records.images;
  for (const ListedImage& image : node.images.value_or(std::vector<ListedImage>())) {
    images.insert(image.repo_tags.begin(), image.repo_tags.end());
    images.insert(image.repo_digests.begin(), image.repo_digests.end());
  }
  std::set<std::string> names;
  for (const std::string& image : images) {
    if (const auto name = ImageName(image)) names.emplace(*name);
  }
  return names;
}

// Worst first, each once, and no more than a screen.
void ShowWorst(Findings& findings) {
  std::set<std::string> said;
  std::erase_if(findings, [&](const Finding& one) { return !said.insert(one.seen).second; });
  std::ranges::stable_sort(findings, std::greater(), &Finding::verdict);
  if (findings.size() > kMaxShown) findings.resize(kMaxShown);
}

// scheme://host:port of a URL that may have a password.
std::string WithoutPassword(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t from = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::string_view authority = url.substr(from, url.find('/', from) - from);
  return std::string(url.substr(0, from)) + std::string(authority.substr(authority.rfind('@') + 1));
}

void NotKnown(const std::vector<std::string>& problems, Report& report) {
  for (const std::string& problem : problems) {
    report.Unknown("who serves pulls is not known: " + problem,
                   "put it right, or give --cri the runtime that the kubelet uses");
  }
}

// What is said of the hosts that are asked for images of a registry.
void SayWhoServes(const PullSourcesInDetail& found, Report& report) {
  const PullSources& sources = found.sources;
  NotKnown(found.problems, report);
  if (!found.registry_is_insecure.empty()) {
    report.Warn(sources.registry + " is not asked by HTTPS with a certificate that is verified (" +
                    found.registry_is_insecure + "): anybody on the way can answer for it",
                "use https, and put the registry's authority in `ca`");
  }
  for (std::size_t i = 0; i < sources.others.size(); ++i) {
    const PullSource& other = sources.others[i];
    if (!other.serves_manifests) continue;
    const std::string seen =
        "images of " + sources.registry + " may come from " + other.host + " (" + other.where + ")";
    if (other.open) {
      report.Fail(seen + ": " + other.open_because + ", so any Secret proves itself",
                  "take it out, let it only pull (capabilities = [\"pull\"] in hosts.toml) where "
                  "images are used by tag, or keep private images in a registry without it");
    } else {
      report.Warn(
          seen + ", and nothing says whether it asks pods for credentials" +
              (other.insecure ? "; it is not asked who it is, so others can answer for it" : ""),
          "ask it for a private image without credentials (GET " + found.urls[i] +
              "/v2/REPOSITORY/manifests/TAG): an answer other than 401 lets any Secret prove "
              "itself");
    }
  }
}

}  // namespace

Result<void> RuntimeVersionCheck(const Node& node, Report& report) {
  if (!node.runtime) return node.runtime.error();
  const std::string& name = node.runtime_name;
  if (!name.starts_with("containerd ") && !name.starts_with("cri-o ")) {
    return report.Warn(
        name + " is not a runtime whose pulls are understood: containerd and CRI-O are",
        "what the other checks of the runtime say may lack something");
  }
  std::string seen = name;
  if (node.pulls && !node.pulls->handlers.empty()) {
    seen += ", handlers " + Listed(node.pulls->handlers);
  }
  if (const auto& images = node.images) {
    const auto pinned = std::ranges::count(*images, true, &ListedImage::pinned);
    seen += ", " + Count(images->size(), "image") + ", " + std::to_string(pinned) + " pinned";
  }
  return report.Ok(seen);
}

Result<void> RuntimeImageRefsCheck(const Node& node, Report& report) {
  const auto images = TRY(node.images);
  // What the record of an image is found under, by what it spells.
  std::map<std::string, std::string> by_spelling;
  for (const ListedImage& image : images) by_spelling[internal::SpellingOf(image.id)] = image.id;
  std::size_t missed = 0;
  std::string example;
  for (const std::string& ref : node.records.refs) {
    const auto image = by_spelling.find(internal::SpellingOf(ref));
    if (image == by_spelling.end() || node.records.refs.contains(image->second)) continue;
    ++missed;
    example = "a record of " + ref + ", an image " + image->second;
  }
  if (missed != 0) {
    return report.Fail(
        "the runtime spells image refs otherwise than " + Count(missed, "record") + ": " + example,
        "a kubelet does not find these records, and may take the images for preloaded: pull them "
        "again, or guard the node with waybill, which knows both spellings");
  }
  if (images.empty()) return report.Ok("there are no images");
  const bool prefixed = std::ranges::all_of(
      images, [](const ListedImage& image) { return image.id.starts_with("sha256:"); });
  return report.Ok(prefixed ? "image refs are image IDs with sha256:" : "image refs are image IDs");
}

Result<void> RuntimeGuestPullsCheck(const Node& node, Report& report) {
  const auto pulls = TRY(node.pulls);
  for (const GuestPuller& puller : pulls.guest_pullers) {
    report.Warn("images of handler " + puller.handler + " are pulled in the guest (" +
                    puller.because + "): what the kubelet records of them proves nothing",
                "let the guest check who may use an image (its policy and its attestation), and "
                "give tenants nodes of their own where it does not");
  }
  if (pulls.runtime == PullRuntime::kUnknown || !pulls.problems.empty()) {
    report.Unknown("how images are pulled is not known" +
                       (pulls.problems.empty() ? "" : ": " + pulls.problems.front()),
                   "give --cri the runtime that the kubelet uses");
  }
  return report.Ok("no handler is known to pull in the guest");
}

Result<void> RuntimeProxyCheck(const Node& node, Report& report) {
  const std::string place = "/proc/" + TRY(node.runtime_process).pid;
  for (const std::string& variable : LinesOf(TRY(node.Read(place + "/environ")), '\0')) {
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name = internal::ToLower(variable.substr(0, equals));
    const bool is_proxy = name == "http_proxy" || name == "https_proxy" || name == "all_proxy";
    if (!is_proxy || equals + 1 >= variable.size()) continue;
    return report.Warn(
        "the runtime pulls through the proxy " +
            WithoutPassword(std::string_view(variable).substr(equals + 1)),
        "make sure that it passes connections on as they are: one that answers registries' names "
        "itself, with a certificate that the node trusts, is a mirror");
  }
  return report.Ok("the runtime is told of no proxy");
}

Result<void> CredentialsNodeCheck(const Node& node, Report& report) {
  const NodeCredentials& credentials = node.credentials;
  for (const std::string& problem : credentials.problems) {
    report.Unknown("whether the node has credentials of its own is not known: " + problem,
                   "put it right, or run it on the node, when the kubelet runs");
  }
  std::set<std::string> images;
  for (const ListedImage& image : node.images.value_or(std::vector<ListedImage>())) {
    images.insert(image.repo_tags.begin(), image.repo_tags.end());
  }
  for (const NodeCredential& one : credentials.held) {
    const std::string registry = one.registry == "*" ? "any registry" : one.registry;
    if (!one.is_sure) {
      report.Unknown(one.where + " may have credentials of the node's for " + registry +
                         ", and is not understood",
                     "if it has, every pod can use every image that is pulled with them: take "
                     "them out");
      continue;
    }
    const NodeCredentials alone{.held = {one}};
    const auto here = std::ranges::count_if(
        images, [&](const std::string& image) { return alone.MayHaveFor(image); });
    report.Fail("this node pulls from " + registry + " with credentials of its own (" + one.where +
                    "), so every pod can use every image that is pulled with them; from there "
                    "came " +
                    Count(static_cast<std::uint64_t>(here), "image"),
                "give tenants pull Secrets, take " + registry +
                    " out of it, and restart the kubelet; then let those images be pulled again");
  }
  std::vector<std::string> both;
  std::ranges::set_intersection(node.records.open, node.records.guarded, std::back_inserter(both));
  if (!both.empty()) {
    report.Warn("records say that every pod may use images of " + FirstOf(both) +
                    ", and other records of the same repository ask for credentials",
                "somebody pulled them without a Secret, as by credentials of the node: find out "
                "how, and let the images be pulled again");
  }
  ShowWorst(report.findings);
  return report.Ok("none in " + Count(credentials.files.size(), "place"));
}

Result<void> CredentialsMirrorsCheck(const Node& node, Report& report) {
  const auto pulls = TRY(node.pulls);
  const std::set<std::string> names = NamesOn(node);
  std::set<std::string> registries;
  NotKnown(pulls.problems, report);
  if (names.size() > kMaxNames) {
    report.Unknown("only the first " + std::to_string(kMaxNames) + " of " +
                       std::to_string(names.size()) + " image names were looked at",
                   "prune records of images that are gone");
  }
  std::size_t looked = 0;
  for (const std::string& name : names) {
    if (++looked > kMaxNames) break;
    for (const std::string& image : {name, name + kAnyDigest}) {
      const auto found = TRY(PullSourcesOf(pulls, image, ""));
      registries.insert(found.sources.registry);
      SayWhoServes(found, report);
    }
  }
  const auto short_name = TRY(PullSourcesOf(pulls, kShortName, "")).sources;
  for (const PullSource& other : short_name.others) {
    if (other.where.find("short names") == std::string::npos) continue;
    report.Warn("short names are looked for at " + other.host +
                    ", and the kubelet takes them for docker.io's: Secrets for docker.io go there",
                "write images with their registry; let unqualified-search-registries of "
                "registries.conf have docker.io alone, or nothing");
  }
  ShowWorst(report.findings);
  // What is on the node may come from other registries than those of records.
  if (!node.images) return node.images.error();
  return report.Ok(registries.empty() ? "no image names a registry"
                                      : "no other host serves images of " + Listed(registries));
}

}  // namespace waybill::doctor
