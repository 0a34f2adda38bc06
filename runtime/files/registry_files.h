// What runtimes are told of registries: containerd's hosts.toml, and containers-registries.conf(5),
// which CRI-O and podman read.
//
//   server = "https://registry-1.docker.io"       asked last; missing: the registry itself
//   [host."https://mirror.example.com"]           asked first, in the order of the file
//     capabilities = ["pull", "resolve"]          missing: all
//     skip_verify = false
//     override_path = false                       the URL's path is not completed with /v2
//     client = [["a.crt", "a.key"]]
//     [host."https://mirror.example.com".header]
//       Authorization = "Basic …"
//
//   unqualified-search-registries = ["registry.example.com"]
//   [[registry]]
//   prefix = "*.example.com"        missing: the location
//   location = "other.example.com"  where such images really are
//   blocked = false
//   mirror-by-digest-only = false
//   [[registry.mirror]]             asked first, in order
//   location = "mirror.example.com/hub"
//   insecure = false
//   pull-from-mirror = "all"        "digest-only", "tag-only"
//   [aliases]
//   "short" = "registry.example.com/short"
//
// In version 1 of the latter, [registries.search], [registries.insecure] and [registries.block]
// have lists `registries`.

#ifndef WAYBILL_RUNTIME_FILES_REGISTRY_FILES_H_
#define WAYBILL_RUNTIME_FILES_REGISTRY_FILES_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

struct RegistryEndpoint {
  bool https = true;
  std::string host = {};  // with the port, if it is named
  std::string path = {};  // of the URL; may be empty
};

// https://host:port/path, or without the scheme, which is then `https`. Anything that readers of
// URLs could take for another host is refused.
Result<RegistryEndpoint> ParseRegistryEndpoint(std::string_view url, bool https);

// Whether `host` is that of `registry`, an image's: regardless of case, of a usual port, and of
// Docker Hub's names.
bool IsSameRegistry(std::string_view host, std::string_view registry, bool https = true);
// 127.0.0.0/8, ::1 or localhost.
bool IsOnThisNode(std::string_view host);

struct HostsTomlEntry {
  RegistryEndpoint endpoint = {};  // without a host: the registry itself
  bool usual_path = true;          // /v2
  bool pulls = true;
  bool resolves = true;
  bool skip_verify = false;
  // How the runtime shows it who it is, whoever the pod is; empty: it does not.
  std::string own_credentials = {};
  unsigned line = 1;
};

// In the order in which they are asked. kInvalidArgument, with the line, for what containerd
// refuses, and for what its versions read differently.
Result<std::vector<HostsTomlEntry>> ReadHostsToml(std::string_view text);

struct RegistriesConfMirror {
  std::string location = {};
  bool insecure = false;
  std::string where = {};
  bool by_digest = true;  // asked for images by digest; by tag
  bool by_tag = true;
};

struct RegistriesConf {
  // By prefix: the mirrors, and at last where the images are, unless that is their own place.
  std::map<std::string, std::vector<RegistriesConfMirror>> by_prefix = {};
  std::vector<std::string> search = {};             // unqualified-search-registries
  std::map<std::string, std::string> aliases = {};  // an empty one is none
};

// Reads one file into `conf`, over what earlier files say: a prefix, an alias and the list of
// registries to search are replaced. `place` is how messages name the file. kInvalidArgument, with
// the line, for what the runtimes refuse; `conf` is then of no use.
Result<void> ReadRegistriesConf(std::string_view text, const std::string& place, bool drop_in,
                                RegistriesConf& conf);

// How much of `image`, a name with its host, `prefix` matches; npos: it does not.
std::size_t MatchRegistryPrefix(std::string_view image, std::string_view prefix);
// The longest prefix that matches; null: none does.
const std::pair<const std::string, std::vector<RegistriesConfMirror>>* FindRegistry(
    const RegistriesConf& conf, std::string_view image);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_REGISTRY_FILES_H_
