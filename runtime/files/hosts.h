// Which host a name or an address means: a registry by one name, this node under each of its own.

#ifndef WAYBILL_RUNTIME_FILES_HOSTS_H_
#define WAYBILL_RUNTIME_FILES_HOSTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/rooted_files.h"

namespace waybill::internal {

class ConfigReader;

// "a.example.com:5000/team/app:1" in two: the host, and what follows it.
std::pair<std::string_view, std::string_view> AtHost(std::string_view image);

// Whether the text has only letters, digits, and `others`.
bool HasOnly(std::string_view text, std::string_view others);

// Without the port, and without the brackets of an IPv6 address.
std::string WithoutPort(std::string_view host);

// In lower case, without the usual port; docker.io for each name of Docker Hub.
std::string RegistryName(std::string_view host, std::string_view usual_port = ":443");

// Where a registry is asked.
struct Endpoint {
  bool https = true;
  std::string host = {};   // with the port, if it is named; empty: the registry itself
  std::string path = {};   // of the URL; may be empty
  bool usual_path = true;  // /v2

  // Whether it is the registry itself, under any of its names.
  bool Serves(std::string_view registry) const;
};
// https://host:port/path, or without the scheme. What readers of URLs could take for another host
// is refused: nullopt.
std::optional<Endpoint> EndpointOf(std::string_view url, bool https);

// Names and addresses of the node: those that are known, and by its files and its interfaces.
std::vector<std::string> NamesOfThisNode(const RootedFiles& files, std::vector<std::string> known);
// Whether the host (with or without a port) is the machine itself: 127.0.0.0/8, 0.0.0.0, ::1, :: in
// any form, localhost, or one of its names and addresses.
bool IsOnThisNode(std::string_view host, const std::vector<std::string>& own_names);

// One that is asked for a registry's images.
struct Asked {
  Endpoint endpoint = {};  // without a host, the registry itself
  bool verifies = true;    // its certificate
  // For manifests of images that are named by digest, or by tag, and for layers.
  bool by_digest = true;
  bool by_tag = true;
  bool layers = true;
  std::string own = {};    // what the runtime shows it, whoever the pod is
  std::string where = {};  // the file that says so
};

// What a folder with hosts.toml says of its registry, in the order in which they are asked.
std::vector<Asked> HostsIn(const ConfigReader& config, const std::string& folder);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_HOSTS_H_
