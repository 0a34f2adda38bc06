#include "runtime/files/pull_sources.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "runtime/files/config_fields.h"
#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::ConfigFields;
using internal::QuoteForMessage;
using internal::ToLower;

// "a.example.com:5000/team/app:1" in two: the host, and what follows it.
std::pair<std::string_view, std::string_view> AtHost(std::string_view image) {
  const std::size_t slash = std::min(image.find('/'), image.size());
  return {image.substr(0, slash), image.substr(slash)};
}

bool HasOnly(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return internal::IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'z') ||
           others.find(c) != std::string_view::npos;
  });
}

// In lower case, without the usual port; Docker Hub by one name.
std::string Canonical(std::string_view host, std::string_view port) {
  std::string name = ToLower(host);
  if (name.ends_with(port)) name.resize(name.size() - port.size());
  return name == "index.docker.io" || name == "registry-1.docker.io" ? "docker.io" : name;
}

// An address as 16 bytes; IPv4, in any form that a resolver takes, as IPv6 has it.
using Address = std::array<unsigned char, 16>;
constexpr Address kV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr Address kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
std::optional<Address> AddressOf(std::string host) {
  Address address = kV4;
  in_addr v4 = {};
  host.resize(std::min(host.find('%'), host.size()));
  if (::inet_pton(AF_INET6, host.c_str(), address.data()) == 1) return address;
  if (::inet_aton(host.c_str(), &v4) == 0) return std::nullopt;
  std::memcpy(&address[12], &v4, sizeof v4);
  return address;
}

std::string WithoutPort(std::string_view host) {
  const bool is_v6 = host.starts_with('[');
  const std::size_t end = is_v6 ? host.find(']') : host.find(':');
  // Without brackets, too.
  if (!is_v6 && end != std::string_view::npos &&
      host.find(':', end + 1) != std::string_view::npos) {
    return std::string(host);
  }
  return std::string(host.substr(is_v6 ? 1 : 0, end - (is_v6 ? 1 : 0)));
}

struct Endpoint {
  bool https = true;
  std::string host = {};   // with the port, if it is named; empty: the registry itself
  std::string path = {};   // of the URL; may be empty
  bool usual_path = true;  // /v2
};

// https://host:port/path, or without the scheme. What readers of URLs could take for another host
// is refused: nullopt.
std::optional<Endpoint> EndpointOf(std::string_view url, bool https) {
  Endpoint endpoint = {.https = https};
  std::string_view rest = url;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    endpoint.https = scheme == "https://";
    rest.remove_prefix(scheme.size());
  }
  std::tie(endpoint.host, endpoint.path) = AtHost(rest);
  if (endpoint.host.empty() || rest.find("://") != std::string_view::npos ||
      !HasOnly(endpoint.host, "-._:[]") ||
      endpoint.path.find_first_of("?#\\") != std::string_view::npos) {
    return std::nullopt;
  }
  return endpoint;
}

// --- registries.conf -----------------------------------------------------------------------------

struct Mirror {
  std::string location = {};
  bool insecure = false;
  std::string where = {};
  bool by_digest = true;  // asked for images by digest; by tag
  bool by_tag = true;
};

struct RegistriesConf {
  // By prefix: the mirrors, and at last where the images are, unless that is their own place.
  std::map<std::string, std::vector<Mirror>> by_prefix = {};
  std::vector<std::string> search = {};             // unqualified-search-registries
  std::map<std::string, std::string> aliases = {};  // an empty one is none
};

std::string ReadLocation(const ConfigFields& table, std::string_view name) {
  std::string location = table.Text(name);
  while (location.ends_with('/')) location.pop_back();
  // A scheme, too, and patterns.
  if (location.find("://") != std::string::npos || !HasOnly(location, ".-_:/@[]")) {
    table.Refuse(std::string(name) + " is not understood");
  }
  return location;
}

Mirror ReadMirror(const ConfigFields& table, const std::string& place, bool digest_only) {
  const std::string pulls = table.Text("pull-from-mirror");
  Mirror mirror = {.location = ReadLocation(table, "location"),
                   .insecure = table.Bool("insecure"),
                   .where = table.Where(place),
                   .by_digest = pulls != "tag-only",
                   .by_tag = pulls != "digest-only" && !digest_only};
  if (mirror.location.empty()) table.Refuse("a mirror without a location");
  if (!pulls.empty() &&
      (digest_only || (pulls != "all" && pulls != "digest-only" && pulls != "tag-only"))) {
    table.Refuse("pull-from-mirror is not understood");
  }
  return mirror;
}

void ReadRegistriesConf(const ConfigFields& root, const std::string& place, RegistriesConf& conf) {
  if (root.Node("registries") != nullptr) root.Refuse("version 1 of the format is not understood");
  // Within a file, the first of a prefix counts; over files, the last.
  std::map<std::string, std::vector<Mirror>> here;
  root.EachIn("registry", [&](const ConfigFields& registry) {
    const std::string location = ReadLocation(registry, "location");
    std::string prefix = ReadLocation(registry, "prefix");
    if (location.empty()) registry.Refuse("a registry without a location");
    registry.Bool("blocked");
    if (registry.Node("pull-from-mirror") != nullptr)
      registry.Refuse("pull-from-mirror is not in a mirror");
    const bool digest_only = registry.Bool("mirror-by-digest-only");
    std::vector<Mirror> asked;
    registry.EachIn("mirror", [&](const ConfigFields& mirror) {
      asked.push_back(ReadMirror(mirror, place, digest_only));
    });
    asked.push_back({location, registry.Bool("insecure"), registry.Where(place)});
    here.try_emplace(prefix.empty() ? location : std::move(prefix), std::move(asked));
  });
  for (auto& [prefix, mirrors] : here) conf.by_prefix[prefix] = std::move(mirrors);
  if (root.Node("unqualified-search-registries") != nullptr) {
    conf.search = root.Texts("unqualified-search-registries");
  }
  const ConfigFields aliases = root.Table("aliases");
  if (!aliases.is_there()) return;
  for (const auto& [name, image] : *aliases.table()) {
    if (!image.is_string()) aliases.Refuse(&image, "an alias is not a string");
    conf.aliases[std::string(name.str())] = image.value_or(std::string());
  }
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
    const bool elsewhere = std::ranges::any_of(sources().others, &PullSource::serves_manifests);
    sources().checker = in_guest                      ? VerifiedBy::kGuest
                        : !sources().problems.empty() ? VerifiedBy::kUnknown
                        : elsewhere                   ? VerifiedBy::kMirror
                                                      : VerifiedBy::kRegistry;
    return std::move(found_);
  }

  bool IsRegistry(const Endpoint& endpoint) const {
    return endpoint.host.empty() ||
           (endpoint.usual_path && Canonical(endpoint.host, endpoint.https ? ":443" : ":80") ==
                                       Canonical(sources_registry(), ":443"));
  }
  const std::string& sources_registry() const { return found_.sources.registry; }

  // One that is asked for manifests if `resolves`. The registry itself is no other.
  void Ask(const Endpoint& endpoint, bool verifies, bool resolves, const std::string& own,
           const std::string& where) {
    const bool insecure = !endpoint.https || !verifies;
    if (IsRegistry(endpoint)) {
      // To itself nobody is on the way.
      if (insecure && !IsOnThisNode(sources_registry(), pulls_.own_names)) {
        found_.registry_is_insecure = where;
      }
      if (own.empty()) return;
      found_.shown_by.push_back(where);
      return Problem("the runtime shows " + sources_registry() + " " + own +
                     ", so it may not have checked the pod's credentials (" + where + ")");
    }
    PullSource source = {.host = endpoint.host + (endpoint.usual_path ? "" : endpoint.path),
                         .serves_manifests = resolves,
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
        Ask({}, true, true, "credentials of its own", own.where);
      }
    }
    AskMirrors();
    for (const std::string& root : pulls_.config_path) {
      const std::string folder = HostFolder(root);
      if (!folder.empty()) return AskFolder(folder);
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
        Ask(*endpoint, true, true, shown ? "credentials of its own" : "", mirror.where);
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

  void AskFolder(const std::string& folder) {
    const std::string path = folder + "/hosts.toml";
    bool is_empty = false;
    const bool is_said = config_.ReadToml(path, [&](const ConfigFields& root) {
      is_empty = root.table()->empty();
      std::vector<std::pair<std::string, ConfigFields>> hosts;
      root.Each("host", [&](const std::string& url, const ConfigFields& host) {
        if (url.empty()) host.Refuse("a host without a name");
        hosts.emplace_back(url, host);
      });
      std::ranges::stable_sort(hosts, {}, [](const auto& host) { return host.second.line(); });
      for (const auto& [url, host] : hosts) AskHost(url, host, path, host.line());
      const toml::node* server = root.Node("server");
      AskHost(root.Text("server"), root, path, server == nullptr ? 1 : server->source().begin.line);
    });
    // Without hosts.toml, or with an empty one, there may be certificates for the registry.
    if (!is_said || is_empty) LookForCertificates(folder);
  }

  // `url` empty: the registry itself.
  void AskHost(const std::string& url, const ConfigFields& host, const std::string& path,
               unsigned line) {
    std::string own;
    if (const toml::node* client = host.Node("client")) {
      const toml::array* pairs = client->as_array();
      if (pairs == nullptr || !pairs->empty()) own = "a client certificate";
    }
    if (internal::ShowsCredentials(host.Table("header"))) own = "a header with credentials";
    // k3s' containerd has it: what it pulls is another repository's.
    if (host.Node("rewrite") != nullptr) host.Refuse("rewrite is not understood");
    const auto capabilities = host.Texts("capabilities");
    bool pulls = capabilities.empty();
    bool resolves = pulls;
    for (const std::string& capability : capabilities) {
      const std::string name = ToLower(capability);
      pulls = pulls || name == "pull";
      resolves = resolves || name == "resolve";
      if (name != "pull" && name != "resolve" && name != "push" && name != "referrers") {
        host.Refuse("a capability that containerd does not know");
      }
    }
    Endpoint endpoint;
    if (!url.empty()) {
      const auto read = EndpointOf(url, true);
      if (!read) return host.Refuse(QuoteForMessage(url) + " is not the address of a registry");
      endpoint = *read;
      // As Go's path.Clean, after which containerd adds /v2.
      std::string clean = std::filesystem::path(endpoint.path).lexically_normal().string();
      while (clean.ends_with('/')) clean.pop_back();
      endpoint.usual_path = clean == "/v2" || (clean.empty() && !host.Bool("override_path"));
    }
    if (!pulls && !IsRegistry(endpoint)) return;
    // By digest whoever has the manifest is asked; a tag only who may resolve.
    Ask(endpoint, !host.Bool("skip_verify"), by_digest_ || resolves, own,
        path + ", line " + std::to_string(line));
  }

  void LookForCertificates(const std::string& folder) {
    for (const std::string& name : config_.List(folder)) {
      if (name.ends_with(".cert")) Ask({}, true, true, "a client certificate", folder + "/" + name);
    }
  }

  // --- CRI-O ------------------------------------------------------------------------------------

  void AskCriO() {
    RegistriesConf conf;
    const std::size_t problems = sources().problems.size();
    std::vector<std::string> paths;
    if (!pulls_.registries_conf.empty()) paths.push_back(pulls_.registries_conf);
    for (const std::string& folder : pulls_.registries_conf_dirs) {
      for (const std::string& name : config_.List(folder)) {
        if (name.ends_with(".conf")) paths.push_back(folder + "/" + name);
      }
    }
    for (const std::string& path : paths) {
      config_.ReadToml(path,
                       [&](const ConfigFields& root) { ReadRegistriesConf(root, path, conf); });
    }
    if (sources().problems.size() != problems) return;
    AskShortName(conf);
    AskFor(full_, conf);
    for (const std::string root : {"/etc/containers/certs.d/", "/etc/docker/certs.d/"}) {
      LookForCertificates(root + sources_registry());
    }
  }

  // A name without a registry is another's where an alias, or the list of registries, says so.
  void AskShortName(const RegistriesConf& conf) {
    const internal::NamedImage named = internal::ReadName(image_);
    if (named.has_host) return;
    std::vector<std::string> names;
    for (const auto& registry : conf.search) names.push_back(registry + "/" + named.written);
    const auto alias = conf.aliases.find(named.written);
    if (alias != conf.aliases.end() && !alias->second.empty()) names = {alias->second};
    for (const std::string& name : names) {
      const auto full = NormaliseImage(name);
      if (!full) Problem("what a short name stands for is not the name of an image");
      if (!full || ImageName(*full) == ImageName(full_)) continue;
      Ask({.host = std::string(AtHost(*full).first), .usual_path = false}, true, true, "",
          "what " + pulls_.registries_conf + " says of short names");
    }
  }

  void AskFor(const std::string& candidate, const RegistriesConf& conf) {
    const std::pair<const std::string, std::vector<Mirror>>* found = nullptr;
    const std::string name(ImageName(candidate).value_or(candidate));
    for (const auto& entry : conf.by_prefix) {
      const std::string& prefix = entry.first;
      const bool matches = name == prefix || name.starts_with(prefix + "/");
      if (matches && (found == nullptr || prefix.size() > found->first.size())) found = &entry;
    }
    if (found == nullptr) return;
    for (const Mirror& mirror : found->second) {
      if (by_digest_ ? !mirror.by_digest : !mirror.by_tag) continue;
      const auto [host, path] = AtHost(mirror.location);
      const auto [own_host, own_path] = AtHost(candidate);
      const bool same = std::string(path) + candidate.substr(found->first.size()) == own_path &&
                        Canonical(host, ":443") == Canonical(own_host, ":443");
      Ask({.host = std::string(host), .path = std::string(path), .usual_path = same},
          !mirror.insecure, true, "", mirror.where);
    }
  }

  const RuntimePulls& pulls_;
  PullSourcesInDetail found_;
  const internal::ConfigReader config_;
  const std::string_view image_;
  std::string full_;
  bool by_digest_ = false;
};

}  // namespace

bool IsOnThisNode(std::string_view host, const std::vector<std::string>& own_names) {
  std::string name = ToLower(WithoutPort(host));
  if (name.ends_with('.')) name.pop_back();
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  const auto address = AddressOf(name);
  const bool is_own = std::ranges::any_of(own_names, [&](const std::string& own) {
    return name == ToLower(own) || (address && address == AddressOf(own));
  });
  if (is_own || !address) return is_own;
  const bool is_v4 = std::equal(address->begin(), address->begin() + 12, kV4.begin());
  return is_v4 ? (*address)[12] == 127 || *address == kV4
               : *address == Address{} || *address == kLoopback;
}

Result<PullSourcesInDetail> PullSourcesInDetailOf(const RuntimePulls& pulls, std::string_view image,
                                                  std::string_view runtime_handler) {
  return internal::Guarded(
      [&]() -> Result<PullSourcesInDetail> { return Search(pulls, image).Run(runtime_handler); });
}

Result<PullSources> PullSourcesOf(const RuntimePulls& pulls, std::string_view image,
                                  std::string_view runtime_handler) {
  auto found = TRY(PullSourcesInDetailOf(pulls, image, runtime_handler));
  return std::move(found.sources);
}

}  // namespace waybill
