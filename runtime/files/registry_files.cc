#include "runtime/files/registry_files.h"

#include <algorithm>
#include <filesystem>

#include "runtime/files/config_fields.h"
#include "runtime/files/containerd_config.h"
#include "store/base/ascii.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

bool HasOnly(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'z') ||
           others.find(c) != std::string_view::npos;
  });
}

// In lower case, without the usual port; Docker Hub by one name.
std::string Canonical(std::string_view host, std::string_view port) {
  std::string name = ToLower(host);
  if (name.ends_with(port)) name.resize(name.size() - port.size());
  return name == "index.docker.io" || name == "registry-1.docker.io" ? "docker.io" : name;
}

// --- hosts.toml ----------------------------------------------------------------------------------

void ReadCapabilities(const ConfigFields& host, HostsTomlEntry& entry) {
  const auto capabilities = host.Texts("capabilities");
  if (capabilities.empty()) return;
  entry.pulls = entry.resolves = false;
  for (const std::string& capability : capabilities) {
    const std::string name = ToLower(capability);
    if (name == "pull") entry.pulls = true;
    if (name == "resolve") entry.resolves = true;
    if (name != "pull" && name != "resolve" && name != "push" && name != "referrers") {
      host.Refuse("a capability that containerd does not know");
    }
  }
}

// `url` empty: the registry itself.
HostsTomlEntry ReadHost(std::string_view url, const ConfigFields& host) {
  HostsTomlEntry entry = {.skip_verify = host.Bool("skip_verify"), .line = host.line()};
  ReadCapabilities(host, entry);
  if (const toml::node* client = host.Node("client")) {
    const toml::array* pairs = client->as_array();
    if (pairs == nullptr || !pairs->empty()) entry.own_credentials = "a client certificate";
  }
  for (const std::string& header : host.Table("header").Keys()) {
    if (ShowsCredentials(header)) entry.own_credentials = "the header " + header;
  }
  const bool override_path = host.Bool("override_path");
  if (url.empty()) return entry;
  auto endpoint = ParseRegistryEndpoint(url, true);
  if (!endpoint) {
    host.Refuse(endpoint.error().message);
    return entry;
  }
  entry.endpoint = *std::move(endpoint);
  // As Go's path.Clean, after which containerd adds /v2.
  std::string path = std::filesystem::path(entry.endpoint.path).lexically_normal().string();
  while (path.ends_with('/')) path.pop_back();
  entry.usual_path = path == "/v2" || (path.empty() && !override_path);
  return entry;
}

// --- registries.conf -----------------------------------------------------------------------------

std::string ReadLocation(const ConfigFields& table, std::string_view name) {
  std::string location = table.Text(name);
  while (location.ends_with('/')) location.pop_back();
  // A scheme, too.
  if (location.find("://") != std::string::npos || !HasOnly(location, "*.-_:/@[]")) {
    table.Refuse(std::string(name) + " is not the name of a registry");
  }
  return location;
}

RegistriesConfMirror ReadMirror(const ConfigFields& table, const std::string& place,
                                bool digest_only) {
  const std::string pulls = table.Text("pull-from-mirror");
  RegistriesConfMirror mirror = {.location = ReadLocation(table, "location"),
                                 .insecure = table.Bool("insecure"),
                                 .where = table.Where(place),
                                 .by_digest = pulls != "tag-only",
                                 .by_tag = pulls != "digest-only" && !digest_only};
  if (mirror.location.empty()) table.Refuse("a mirror without a location");
  if (!pulls.empty() && digest_only) {
    table.Refuse("pull-from-mirror beside mirror-by-digest-only");
  } else if (!pulls.empty() && pulls != "all" && pulls != "digest-only" && pulls != "tag-only") {
    table.Refuse("pull-from-mirror is none of all, digest-only and tag-only");
  }
  return mirror;
}

std::pair<std::string, std::vector<RegistriesConfMirror>> ReadRegistry(const ConfigFields& table,
                                                                       const std::string& place) {
  const std::string location = ReadLocation(table, "location");
  std::string prefix = ReadLocation(table, "prefix");
  const bool wild = prefix.starts_with("*.");
  if (location.empty() && !wild) table.Refuse("a registry without a location");
  if (wild && prefix.find_first_of("/@:") != std::string::npos) {
    table.Refuse("a prefix with * is not of the form *.example.com");
  }
  if (prefix.empty()) prefix = location;
  table.Bool("blocked");
  if (!table.Text("pull-from-mirror").empty()) {
    table.Refuse("pull-from-mirror is not in a mirror");
  }
  const bool digest_only = table.Bool("mirror-by-digest-only");
  std::vector<RegistriesConfMirror> asked;
  table.EachIn("mirror", [&](const ConfigFields& mirror) {
    asked.push_back(ReadMirror(mirror, place, digest_only));
  });
  const bool insecure = table.Bool("insecure");
  if (!location.empty()) asked.push_back({location, insecure, table.Where(place)});
  return {std::move(prefix), std::move(asked)};
}

void ReadVersion1(const ConfigFields& registries, RegistriesConf& conf) {
  for (const std::string_view list : {"search", "insecure", "block"}) {
    auto names = registries.Table(list).Texts("registries");
    if (list == "search" && !names.empty()) conf.search = std::move(names);
  }
}

}  // namespace

Result<RegistryEndpoint> ParseRegistryEndpoint(std::string_view url, bool https) {
  RegistryEndpoint endpoint = {.https = https};
  std::string_view rest = url;
  const std::size_t scheme = rest.find("://");
  const bool is_known = rest.starts_with("http://") || rest.starts_with("https://");
  if (is_known) {
    endpoint.https = rest.starts_with("https");
    rest.remove_prefix(scheme + 3);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.host = rest.substr(0, slash);
  endpoint.path = rest.substr(slash);
  if ((scheme == std::string_view::npos || is_known) && !endpoint.host.empty() &&
      HasOnly(endpoint.host, "-._:[]") &&
      endpoint.path.find_first_of("?#\\") == std::string::npos) {
    return endpoint;
  }
  return Error{
      ErrorCode::kInvalidArgument, QuoteForMessage(url) + " is not the address of a registry", {}};
}

bool IsSameRegistry(std::string_view host, std::string_view registry, bool https) {
  return Canonical(host, https ? ":443" : ":80") == Canonical(registry, ":443");
}

bool IsOnThisNode(std::string_view host) {
  const std::string name = ToLower(host);
  return name.starts_with("127.") || name == "localhost" || name.starts_with("localhost:") ||
         name.starts_with("[::1]") || name == "::1";
}

Result<std::vector<HostsTomlEntry>> ReadHostsToml(std::string_view text) {
  const toml::table table = TRY(ReadToml(text, kMaxPullConfigBytes));
  ConfigFields::Document document;
  const ConfigFields root(&table, document);
  std::vector<HostsTomlEntry> entries;
  root.Each("host", [&](const std::string& url, const ConfigFields& host) {
    if (url.empty()) host.Refuse("a host without a name");
    entries.push_back(ReadHost(url, host));
  });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  entries.push_back(ReadHost(root.Text("server"), root));
  if (const toml::node* server = root.Node("server")) {
    entries.back().line = server->source().begin.line;
  }
  TRY(document.sound);
  return entries;
}

Result<void> ReadRegistriesConf(std::string_view text, const std::string& place, bool drop_in,
                                RegistriesConf& conf) {
  const toml::table table = TRY(ReadToml(text, kMaxPullConfigBytes));
  ConfigFields::Document document;
  const ConfigFields root(&table, document);
  // Within a file, the first of a prefix counts.
  std::map<std::string, std::vector<RegistriesConfMirror>> here;
  root.EachIn("registry",
              [&](const ConfigFields& registry) { here.insert(ReadRegistry(registry, place)); });
  if (const ConfigFields version1 = root.Table("registries"); version1.is_there()) {
    if (drop_in || !here.empty()) {
      version1.Refuse("version 1 of the format, where only version 2 may be");
    }
    ReadVersion1(version1, conf);
  }
  for (auto& [prefix, mirrors] : here) conf.by_prefix[prefix] = std::move(mirrors);
  if (root.Node("unqualified-search-registries") != nullptr) {
    conf.search = root.Texts("unqualified-search-registries");
  }
  root.EachText("aliases", [&](const std::string& name, const std::string& image) {
    conf.aliases[name] = image;
  });
  return document.sound;
}

std::size_t MatchRegistryPrefix(std::string_view image, std::string_view prefix) {
  std::size_t end = prefix.size();
  if (prefix.starts_with("*.")) {
    const std::string_view suffix = prefix.substr(1);
    const std::size_t at = image.find(suffix);
    if (at == std::string_view::npos || image.substr(0, at).find('/') != std::string_view::npos) {
      return std::string_view::npos;
    }
    end = at + suffix.size();
  } else if (!image.starts_with(prefix)) {
    return std::string_view::npos;
  }
  if (end == image.size() || image[end] == ':' || image[end] == '/' || image[end] == '@') {
    return end;
  }
  return std::string_view::npos;
}

const std::pair<const std::string, std::vector<RegistriesConfMirror>>* FindRegistry(
    const RegistriesConf& conf, std::string_view image) {
  const std::pair<const std::string, std::vector<RegistriesConfMirror>>* found = nullptr;
  for (const auto& entry : conf.by_prefix) {
    const bool matches = MatchRegistryPrefix(image, entry.first) != std::string_view::npos;
    if (matches && (found == nullptr || entry.first.size() > found->first.size())) found = &entry;
  }
  return found;
}

}  // namespace waybill::internal
