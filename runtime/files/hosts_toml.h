// containerd's hosts.toml: which hosts are asked for a registry's images.
//
//   server = "https://registry-1.docker.io"       asked last; missing: the registry itself
//   [host."https://mirror.example.com"]           asked first, in the order of the file
//     capabilities = ["pull", "resolve"]          missing: all
//     skip_verify = false
//     override_path = false                       the URL's path is not completed with /v2
//     client = [["a.crt", "a.key"]]
//     [host."https://mirror.example.com".header]
//       Authorization = "Basic …"

#ifndef WAYBILL_RUNTIME_FILES_HOSTS_TOML_H_
#define WAYBILL_RUNTIME_FILES_HOSTS_TOML_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/registry_endpoint.h"

namespace waybill::internal {

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

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_HOSTS_TOML_H_
