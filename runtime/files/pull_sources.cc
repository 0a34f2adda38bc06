#include "runtime/files/pull_sources.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/files/config_fields.h"
#include "runtime/files/hosts.h"
#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::Asked;
using internal::AtHost;
using internal::ConfigFields;
using internal::Endpoint;
using internal::EndpointOf;
using internal::HasOnly;
using internal::IsOnThisNode;
using internal::QuoteForMessage;
using internal::ToLower;

// --- hosts.toml ----------------------------------------------------------------------------------

using Hosts = std::vector<Asked>;

// A certificate in a folder is for the registry that has the folder's name.
void AddCertificates(const internal::ConfigReader& config, const std::string& folder,
                     Hosts& hosts) {
  for (const std::string& name : config.List(folder)) {
    if (!name.ends_with(".cert")) continue;
    hosts.push_back({.own = "a client certificate", .where = folder + "/" + name});
  }
}

// `url` empty: the registry itself.
void AddHost(const std::string& url, const ConfigFields& fields, const std::string& path,
             Hosts& hosts) {
  Asked host = {.verifies = !fields.Bool("skip_verify"), .where = path};
  const internal::Json* const client = fields.Node("client");
  if (client != nullptr && *client != internal::Json::array()) host.own = "a client certificate";
  if (internal::ShowsCredentials(fields.Table("header"))) host.own = "a header with credentials";
  // k3s' containerd has it: what it pulls is another repository's.
  if (fields.Node("rewrite") != nullptr) fields.Refuse("rewrite is not understood");
  const auto capabilities = fields.Texts("capabilities");
  bool pulls = capabilities.empty();
  bool resolves = pulls;
  for (const std::string& capability : capabilities) {
    const std::string name = ToLower(capability);
    pulls = pulls || name == "pull";
    resolves = resolves || name == "resolve";
    if (name != "pull" && name != "resolve" && name != "push" && name != "referrers") {
      fields.Refuse("a capability that containerd does not know");
    }
  }
  // By digest whoever has the manifest is asked; a tag only who may resolve.
  host.by_digest = host.layers = pulls;
  host.by_tag = pulls && resolves;
  if (!url.empty()) {
    const auto read = EndpointOf(url, true);
    if (!read) return fields.Refuse(QuoteForMessage(url) + " is not the address of a registry");
    host.endpoint = *read;
    // As Go's path.Clean, after which containerd adds /v2.
    std::string clean = std::filesystem::path(read->path).lexically_normal().string();
    while (clean.ends_with('/')) clean.pop_back();
    host.endpoint.usual_path = clean == "/v2" || (clean.empty() && !fields.Bool("override_path"));
  }
  hosts.push_back(std::move(host));
}

// --- Who is asked --------------------------------------------------------------------------------

class Search {
 public:
  Search(const RuntimePulls& pulls, std::string_view image)
      : pulls_(pulls), config_(pulls.root, found_.sources.problems), image_(image) {}

  PullSourcesInDetail Run(std::string_view handler) {
    if (!Complete()) return Finish(false);
    for (const std::string& problem : pulls_.problems) Problem(problem);
    const bool in_guest = IsPulledInGuest(handler);
    if (pulls_.runtime == PullRuntime::kContainerd) AskContainerd();
    if (pulls_.runtime == PullRuntime::kCriO) AskCriO();
    if (pulls_.runtime == PullRuntime::kUnknown && pulls_.problems.empty()) {
      Problem("it is not known which runtime pulls");
    }
    return Finish(in_guest);
  }

 private:
  PullSources& sources() { return found_.sources; }
  void Problem(std::string what) { sources().problems.push_back(std::move(what)); }

  // False: the image does not parse.
  bool Complete() {
    auto full = NormaliseImage(image_);
    const auto parts = full ? PartsOfImage(*full) : std::nullopt;
    if (!parts) Problem(QuoteForMessage(image_) + " is not the name of an image");
    if (!parts) return false;
    by_digest_ = !parts->digest.empty();
    full_ = *std::move(full);
    sources().registry = AtHost(full_).first;
    return true;
  }

  bool IsPulledInGuest(std::string_view handler) {
    const std::string_view name = handler.empty() ? pulls_.default_handler : handler;
    if (std::ranges::count(pulls_.guest_pullers, name, &GuestPuller::handler) != 0) return true;
    if (!handler.empty() && std::ranges::count(pulls_.handlers, handler) == 0) {
      Problem("the runtime's configuration has no handler " + QuoteForMessage(handler));
    }
    return false;
  }

  PullSourcesInDetail Finish(bool in_guest) {
    found_.problems = sources().problems;
    sources().problems.insert(sources().problems.end(), shown_.begin(), shown_.end());
    const bool elsewhere = std::ranges::any_of(sources().others, &PullSource::serves_manifests);
    sources().checker = in_guest                      ? VerifiedBy::kGuest
                        : !sources().problems.empty() ? VerifiedBy::kUnknown
                        : elsewhere                   ? VerifiedBy::kMirror
                                                      : VerifiedBy::kRegistry;
    return std::move(found_);
  }

  bool IsRegistry(const Endpoint& endpoint) const { return endpoint.Serves(sources_registry()); }
  const std::string& sources_registry() const { return found_.sources.registry; }

  // The registry itself is no other.
  void Ask(const Asked& host) {
    const auto& [endpoint, verifies, by_digest, by_tag, layers, own, where] = host;
    const bool manifests = by_digest_ ? by_digest : by_tag;
    const bool insecure = !endpoint.https || !verifies;
    if (IsRegistry(endpoint)) {
      // To itself nobody is on the way.
      if (insecure && !IsOnThisNode(sources_registry(), pulls_.own_names)) {
        found_.registry_is_insecure = where;
      }
      if (own.empty()) return;
      return shown_.push_back("the runtime shows " + sources_registry() + " " + own +
                              ", so it may not have checked the pod's credentials (" + where + ")");
    }
    if (!manifests && !layers) return;
    PullSource source = {.host = endpoint.host + (endpoint.usual_path ? "" : endpoint.path),
                         .serves_manifests = manifests,
                         .serves_layers = true,
                         .insecure = insecure,
                         .where = where};
    if (!own.empty()) {
      source.open_because = "the runtime shows it " + own + ", whoever the pod is";
    } else if (IsOnThisNode(endpoint.host, pulls_.own_names)) {
      source.open_because = "it is on this node, where peers and caches ask pods for nothing";
    }
    source.open = !source.open_because.empty();
    found_.urls.push_back((endpoint.https ? "https://" : "http://") + endpoint.host);
    sources().others.push_back(std::move(source));
  }

  // --- containerd -------------------------------------------------------------------------------

  void AskContainerd() {
    if (!pulls_.config_path.empty() && !pulls_.mirrors.empty()) {
      Problem("config_path and registry.mirrors are both set, which containerd refuses");
    }
    for (const NodeCredential& own : pulls_.own_credentials) {
      const auto endpoint = EndpointOf(own.registry, true);
      if (own.registry == "*" || (endpoint && IsRegistry(*endpoint))) {
        Ask({.own = "credentials of its own", .where = own.where});
      }
    }
    AskMirrors();
    for (const std::string& root : pulls_.config_path) {
      const std::string folder = HostFolder(root);
      if (!folder.empty()) return AskAll(internal::HostsIn(config_, folder));
    }
  }

  void AskMirrors() {
    const auto is_named = [&](const auto& mirror) { return mirror.registry == sources_registry(); };
    const bool named = std::ranges::any_of(pulls_.mirrors, is_named);
    for (const RegistryEndpoints& mirror : pulls_.mirrors) {
      if (named ? !is_named(mirror) : mirror.registry != "*") continue;
      for (const std::string& url : mirror.endpoints) {
        auto endpoint = EndpointOf(url, !IsOnThisNode(AtHost(url).first, {}));
        if (!endpoint) Problem(mirror.where + ": " + QuoteForMessage(url) + " is not understood");
        if (!endpoint) continue;
        const std::string& path = endpoint->path;
        endpoint->usual_path = path.empty() || path == "/" || path == "/v2" || path == "/v2/";
        const bool shown = std::ranges::count(pulls_.own_credentials, endpoint->host,
                                              &NodeCredential::registry) != 0;
        Ask({.endpoint = *endpoint,
             .own = shown ? "credentials of its own" : "",
             .where = mirror.where});
      }
    }
  }

  // The first of a registry's folders that is there; empty: none is.
  std::string HostFolder(const std::string& root) {
    std::vector<std::string> names = {sources_registry(), "_default"};
    if (const auto port = names[0].rfind(':'); port != std::string::npos && port > 0) {
      std::string with_port = names[0] + "_";
      with_port[port] = '_';
      names.insert(names.begin(), std::move(with_port));
    }
    for (const std::string& name : names) {
      const auto found = config_.files().Resolve(root + "/" + name);
      if (found) return root + "/" + name;
      if (found.error().code != ErrorCode::kNotFound) Problem(found.error().message);
    }
    return {};
  }

  void AskAll(const std::vector<Asked>& hosts) {
    for (const Asked& host : hosts) Ask(host);
  }

  // --- CRI-O ------------------------------------------------------------------------------------

  // Every prefix that fits counts, for tags and for digests: rather one mirror too many.
  void AskCriO() {
    for (const std::string& path : internal::RegistriesFilesOf(pulls_, config_)) {
      config_.ReadToml(path, [&](const ConfigFields& root) { AskRegistries(root, path); });
    }
    Hosts shown;
    for (const std::string root : {"/etc/containers/certs.d/", "/etc/docker/certs.d/"}) {
      AddCertificates(config_, root + sources_registry(), shown);
    }
    AskAll(shown);
  }

  void AskRegistries(const ConfigFields& root, const std::string& path) {
    if (root.Node("registries") != nullptr) root.Refuse("version 1 of it is not understood");
    for (const auto& [index, registry] : root.Tables("registry", internal::Json::value_t::array)) {
      for (const char* other : {"blocked", "mirror-by-digest-only"}) registry.Bool(other);
      if (registry.Node("pull-from-mirror") != nullptr) registry.Refuse("it is not in a mirror");
      const std::string location = LocationIn(registry, "location");
      const bool is_named = registry.Node("prefix") != nullptr;
      const std::string prefix = is_named ? LocationIn(registry, "prefix") : location;
      for (const auto& [at, mirror] : registry.Tables("mirror", internal::Json::value_t::array)) {
        AskPlace(mirror, LocationIn(mirror, "location"), prefix, path);
      }
      AskPlace(registry, location, prefix, path);
    }
    // A name without a registry is another's where an alias, or the list of registries, says so.
    const internal::NamedImage named = internal::ReadName(image_);
    std::vector<std::string> names = root.Texts("unqualified-search-registries");
    for (std::string& name : names) name += "/" + named.written;
    names.push_back(root.Table("aliases").Text(named.written));
    for (const std::string& name : names) {
      if (named.has_host || name.empty()) continue;
      const auto full = NormaliseImage(name);
      if (!full) root.Refuse("what a short name stands for is not the name of an image");
      if (!full || ImageName(*full) == ImageName(full_)) continue;
      Ask({.endpoint = {.host = std::string(AtHost(*full).first), .usual_path = false},
           .where = "what " + path + " says of short names"});
    }
  }

  // A host and a path. A scheme, and a pattern, are not understood.
  static std::string LocationIn(const ConfigFields& table, std::string_view name) {
    std::string location = table.Text(name);
    while (location.ends_with('/')) location.pop_back();
    if (location.empty() || location.find("://") != location.npos ||
        !HasOnly(location, ".-_:/@[]")) {
      table.Refuse(std::string(name) + " is not understood");
    }
    return location;
  }

  // `location` is asked in place of the prefix.
  void AskPlace(const ConfigFields& table, const std::string& location, const std::string& prefix,
                const std::string& where) {
    const std::string name(ImageName(full_).value_or(full_));
    const bool insecure = table.Bool("insecure");
    if (!name.starts_with(prefix)) return;
    // To CRI-O a port is something below the host, too.
    const std::string rest = name.substr(prefix.size());
    if (!rest.empty() && rest[0] != '/' && rest[0] != ':') return;
    const std::string there = location + rest;
    const auto host = AtHost(there).first;
    const auto path = AtHost(location).second;
    Ask({.endpoint = {.host = std::string(host),
                      .path = std::string(path),
                      .usual_path = path == AtHost(prefix).second},
         .verifies = !insecure,
         .where = where});
  }

  const RuntimePulls& pulls_;
  PullSourcesInDetail found_;
  const internal::ConfigReader config_;
  const std::string_view image_;
  std::string full_;
  bool by_digest_ = false;
  // What the registry is shown beside the pod's credentials.
  std::vector<std::string> shown_;
};

}  // namespace

std::vector<Asked> internal::HostsIn(const ConfigReader& config, const std::string& folder) {
  const std::string path = folder + "/hosts.toml";
  Hosts found;
  bool is_empty = false;
  const bool is_said = config.ReadToml(path, [&](const ConfigFields& root) {
    is_empty = root.table()->empty();
    for (const auto& [url, host] : root.Tables("host")) {
      if (url.empty()) host.Refuse("a host without a name");
      AddHost(url, host, path, found);
    }
    AddHost(root.Text("server"), root, path, found);
  });
  // Without hosts.toml, or with an empty one, there may be certificates for the registry.
  if (!is_said || is_empty) AddCertificates(config, folder, found);
  return found;
}

Result<PullSourcesInDetail> PullSourcesOf(const RuntimePulls& pulls, std::string_view image,
                                          std::string_view runtime_handler) {
  return internal::Guarded(
      [&]() -> Result<PullSourcesInDetail> { return Search(pulls, image).Run(runtime_handler); });
}

std::vector<std::string> internal::RegistriesFilesOf(const RuntimePulls& pulls,
                                                     const ConfigReader& config) {
  std::vector<std::string> paths;
  if (!pulls.registries_conf.empty()) paths.push_back(pulls.registries_conf);
  for (const std::string& folder : pulls.registries_conf_dirs) {
    for (const std::string& path : config.FilesIn(folder)) {
      if (path.ends_with(".conf")) paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace waybill
