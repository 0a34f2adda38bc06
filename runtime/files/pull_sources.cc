
#include "runtime/files/pull_sources.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/files/registry_files.h"
#include "runtime/files/rooted_files.h"
#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::HostsTomlEntry;
using internal::RegistriesConf;
using internal::RootedFiles;

constexpr std::string_view kOnThisNode =
    "it is on this node, where peers and caches ask pods for nothing";

// "a.example.com:5000/team/app:1" in two: the host, and what follows it.
std::pair<std::string_view, std::string_view> AtHost(std::string_view image) {
  const std::size_t slash = std::min(image.find('/'), image.size());
  return {image.substr(0, slash), image.substr(slash)};
}

class Search {
 public:
  Search(const RuntimePulls& pulls, std::string_view image)
      : pulls_(pulls), files_(pulls.root, sources_.problems), image_(image) {}

  PullSources Run(std::string_view handler) {
    if (!Complete()) return Finish(false);
    for (const std::string& problem : pulls_.problems) Problem(problem);
    const bool in_guest = IsPulledInGuest(handler);
    switch (pulls_.runtime) {
      case PullRuntime::kContainerd:
        AskContainerd();
        break;
      case PullRuntime::kCriO:
        AskCriO();
        break;
      case PullRuntime::kUnknown:
        if (pulls_.problems.empty()) Problem("it is not known which runtime pulls");
        break;
    }
    return Finish(in_guest);
  }

 private:
  template <typename... Args>
  void Problem(Args&&... args) {
    files_.Problem(std::forward<Args>(args)...);
  }

  // False: the image does not parse.
  bool Complete() {
    auto full = NormaliseImage(image_);
    const auto parts = full ? PartsOfImage(*full) : std::nullopt;
    if (!parts) {
      Problem(internal::QuoteForMessage(image_) + " is not the name of an image");
      return false;
    }
    by_digest_ = !parts->digest.empty();
    full_ = *std::move(full);
    sources_.registry = AtHost(full_).first;
    return true;
  }

  bool IsPulledInGuest(std::string_view handler) {
    const std::string_view name = handler.empty() ? pulls_.default_handler : handler;
    if (std::ranges::count(pulls_.guest_pullers, name, &GuestPuller::handler) != 0) return true;
    if (!handler.empty() && std::ranges::count(pulls_.handlers, handler) == 0) {
      Problem("the runtime's configuration has no handler " + internal::QuoteForMessage(handler));
    }
    return false;
  }

  PullSources Finish(bool in_guest) {
    const bool elsewhere = std::ranges::any_of(sources_.others, &PullSource::serves_manifests);
    sources_.checker = in_guest                     ? VerifiedBy::kGuest
                       : !sources_.problems.empty() ? VerifiedBy::kUnknown
                       : elsewhere                  ? VerifiedBy::kMirror
                                                    : VerifiedBy::kRegistry;
    return std::move(sources_);
  }

  void Add(PullSource source, const std::string& own_credentials) {
    if (!own_credentials.empty()) {
      source.open = true;
      source.open_because = "the runtime shows it " + own_credentials + ", whoever the pod is";
    } else if (internal::IsOnThisNode(source.host)) {
      source.open = true;
      source.open_because = kOnThisNode;
    }
    sources_.others.push_back(std::move(source));
  }

  void RegistrySees(const std::string& own_credentials, const std::string& where) {
    Problem("the runtime shows " + sources_.registry + " " + own_credentials +
            ", so it may not have checked the pod's credentials (" + where + ")");
  }

  // --- containerd -------------------------------------------------------------------------------

  void AskContainerd() {
    if (!pulls_.config_path.empty() && !pulls_.mirrors.empty()) {
      Problem("config_path and registry.mirrors are both set, which containerd refuses");
    }
    for (const std::string& host : pulls_.own_credentials) {
      if (host == "*" || internal::IsSameRegistry(host, sources_.registry)) {
        RegistrySees("credentials of its own", "registry.headers or registry.configs");
      }
    }
    AskMirrors();
    for (const std::string& root : pulls_.config_path) {
      const std::string folder = HostFolder(root);
      if (!folder.empty()) return AskFolder(folder);
    }
  }

  void AskMirrors() {
    const auto is_named = [&](const auto& mirror) { return mirror.registry == sources_.registry; };
    const bool named = std::ranges::any_of(pulls_.mirrors, is_named);
    for (const RegistryEndpoints& mirror : pulls_.mirrors) {
      if (named ? !is_named(mirror) : mirror.registry != "*") continue;
      for (const std::string& endpoint : mirror.endpoints) AddEndpoint(endpoint, mirror.where);
    }
  }

  void AddEndpoint(const std::string& url, const std::string& where) {
    const auto endpoint =
        internal::ParseRegistryEndpoint(url, !internal::IsOnThisNode(AtHost(url).first));
    if (!endpoint) return Problem(where, endpoint.error());
    const bool usual = endpoint->path.empty() || endpoint->path == "/" || endpoint->path == "/v2" ||
                       endpoint->path == "/v2/";
    if (usual && internal::IsSameRegistry(endpoint->host, sources_.registry, endpoint->https))
      return;
    const bool shown = std::ranges::count(pulls_.own_credentials, endpoint->host) != 0;
    Add({.host = endpoint->host + (usual ? "" : endpoint->path),
         .serves_manifests = true,
         .serves_layers = true,
         .insecure = !endpoint->https,
         .where = where},
        shown ? "credentials of its own" : "");
  }

  // The first of a registry's folders that is there; empty: none is.
  std::string HostFolder(const std::string& root) {
    std::vector<std::string> names = {sources_.registry, "_default"};
    if (const auto port = sources_.registry.rfind(':'); port != std::string::npos && port > 0) {
      std::string with_port = sources_.registry + "_";
      with_port[port] = '_';
      names.insert(names.begin(), std::move(with_port));
    }
    for (const std::string& name : names) {
      std::string folder = root + "/" + name;
      if (files_.IsThere(folder)) return folder;
    }
    return {};
  }

  void AskFolder(const std::string& folder) {
    const std::string path = folder + "/hosts.toml";
    const auto text = files_.Read(path);
    // Without hosts.toml, or with an empty one, there may be certificates for the registry.
    if (!text || text->empty()) return LookForCertificates(folder);
    const auto entries = internal::ReadHostsToml(*text);
    if (!entries) return Problem(path, entries.error());
    for (const HostsTomlEntry& entry : *entries) AddEntry(entry, path);
  }

  void AddEntry(const HostsTomlEntry& entry, const std::string& path) {
    const std::string where = path + ", line " + std::to_string(entry.line);
    const auto& endpoint = entry.endpoint;
    if (endpoint.host.empty() ||
        (entry.usual_path &&
         internal::IsSameRegistry(endpoint.host, sources_.registry, endpoint.https))) {
      if (!entry.own_credentials.empty()) RegistrySees(entry.own_credentials, where);
      return;
    }
    if (!entry.pulls) return;
    Add({.host = endpoint.host + (entry.usual_path ? "" : endpoint.path),
         // By digest whoever has the manifest is asked; a tag only who may resolve.
         .serves_manifests = by_digest_ || entry.resolves,
         .serves_layers = true,
         .insecure = !endpoint.https || entry.skip_verify,
         .where = where},
        entry.own_credentials);
  }

  void LookForCertificates(const std::string& folder) {
    for (const std::string& name : files_.List(folder)) {
      if (name.ends_with(".cert")) {
        return RegistrySees("a client certificate", folder + "/" + name);
      }
    }
  }

  // --- CRI-O ------------------------------------------------------------------------------------

  void AskCriO() {
    RegistriesConf conf;
    if (!ReadFiles(conf)) return;
    for (const std::string& candidate : Candidates(conf)) AskFor(candidate, conf);
    for (const std::string_view root : {"/etc/containers/certs.d/", "/etc/docker/certs.d/"}) {
      LookForCertificates(std::string(root) + sources_.registry);
    }
  }

  // False: something can't be read.
  bool ReadFiles(RegistriesConf& conf) {
    const std::size_t problems = sources_.problems.size();
    std::vector<std::string> paths;
    if (!pulls_.registries_conf.empty()) paths.push_back(pulls_.registries_conf);
    for (const std::string& folder : pulls_.registries_conf_dirs) {
      for (const std::string& name : files_.List(folder)) {
        if (name.ends_with(".conf")) paths.push_back(folder + "/" + name);
      }
    }
    for (const std::string& path : paths) {
      const auto text = files_.Read(path);
      if (!text) continue;
      const bool drop_in = path != pulls_.registries_conf;
      const auto read = internal::ReadRegistriesConf(*text, path, drop_in, conf);
      if (!read) Problem(path, read.error());
    }
    return sources_.problems.size() == problems;
  }

  // The full names that CRI-O tries for the image: one, unless it is a short name.
  std::vector<std::string> Candidates(const RegistriesConf& conf) {
    const internal::NamedImage named = internal::ReadName(image_);
    if (named.has_host) return {full_};
    const std::string suffix = named.digest.empty() ? (":" + named.tag) : ("@" + named.digest);
    std::vector<std::string> names;
    if (const auto alias = conf.aliases.find(named.written);
        alias != conf.aliases.end() && !alias->second.empty()) {
      names = {alias->second};
    } else {
      for (const std::string& registry : conf.search) {
        names.push_back(registry + "/" + named.written);
      }
    }
    std::vector<std::string> candidates;
    for (const std::string& name : names) {
      auto full = NormaliseImage(name + suffix);
      if (!full) {
        Problem("the short name " + internal::QuoteForMessage(named.written) + " stands for " +
                internal::QuoteForMessage(name) + ", which is not the name of an image");
        continue;
      }
      if (*full != full_) {
        Add({.host = std::string(AtHost(*full).first),
             .serves_manifests = true,
             .serves_layers = true,
             .where = "what " + pulls_.registries_conf + " says of short names"},
            "");
      }
      candidates.push_back(*std::move(full));
    }
    if (candidates.empty()) candidates.push_back(full_);
    return candidates;
  }

  void AskFor(const std::string& candidate, const RegistriesConf& conf) {
    const auto* found = internal::FindRegistry(conf, ImageName(candidate).value_or(candidate));
    if (found == nullptr) return;
    const auto& [prefix, mirrors] = *found;
    const std::size_t matched = internal::MatchRegistryPrefix(candidate, prefix);
    const auto [own_host, own_rest] = AtHost(candidate);
    for (const auto& mirror : mirrors) {
      if (by_digest_ ? !mirror.by_digest : !mirror.by_tag) continue;
      if (matched == std::string_view::npos) {
        Problem(mirror.where + ": the prefix matches the image's name in two ways");
        continue;
      }
      const std::string rewritten = mirror.location + candidate.substr(matched);
      const auto [host, rest] = AtHost(rewritten);
      if (rest == own_rest && internal::IsSameRegistry(host, own_host)) continue;
      Add({.host = mirror.location,
           .serves_manifests = true,
           .serves_layers = true,
           .insecure = mirror.insecure,
           .where = mirror.where},
          "");
    }
  }

  const RuntimePulls& pulls_;
  PullSources sources_;
  const RootedFiles files_;
  const std::string_view image_;
  std::string full_;
  bool by_digest_ = false;
};

}  // namespace

Result<PullSources> PullSourcesOf(const RuntimePulls& pulls, std::string_view image,
                                  std::string_view runtime_handler) {
  return internal::Guarded(
      [&]() -> Result<PullSources> { return Search(pulls, image).Run(runtime_handler); });
}

}  // namespace waybill
