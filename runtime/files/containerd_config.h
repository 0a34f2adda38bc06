// What containerd says of how it pulls: in its answer to CRI's Status, and in its configuration
// files.
//
//   version = 3                                    imports = ["conf.d/*.toml"]
//   [grpc]                                         address = "/run/containerd/containerd.sock"
//   [plugins."io.containerd.cri.v1.images"]        snapshotter = "overlayfs"
//     [….registry]                                 config_path = "/etc/containerd/certs.d"
//     [….registry.mirrors."docker.io"]             endpoint = ["https://mirror.example.com"]
//     [….runtime_platforms.kata]                   snapshotter = "nydus"
//   [plugins."io.containerd.cri.v1.runtime".containerd]
//     default_runtime_name = "runc"
//     [….runtimes.kata]                            runtime_type, snapshotter, options.ConfigPath
//
// In version 2 of the file all of it is in plugins."io.containerd.grpc.v1.cri", in version 1 in
// plugins.cri; from version 3 on these count no more.

#ifndef WAYBILL_RUNTIME_FILES_CONTAINERD_CONFIG_H_
#define WAYBILL_RUNTIME_FILES_CONTAINERD_CONFIG_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/pull_sources.h"
#include "waybill/result.h"

namespace waybill::internal {

struct ContainerdHandler {
  std::string type = {};
  std::string snapshotter = {};
  std::string kata_config = {};  // the file that Kata's shim is told of
};

struct ContainerdConfig {
  std::string default_handler = {};
  std::string snapshotter = {};
  std::map<std::string, ContainerdHandler> handlers = {};
  std::string socket = {};
  // The distinct values of config_path. More than one: which is in force depends on how containerd
  // merges files.
  std::set<std::string> config_path = {};
  std::vector<RegistryEndpoints> mirrors = {};
  std::vector<std::string> own_credentials = {};  // RuntimePulls::own_credentials
  bool registry_known = false;  // by its answer; containerd from 2.0 on leaves registries out
};

// Whether the header of a request shows who asks.
bool ShowsCredentials(std::string_view header);

Result<void> ReadContainerdStatus(std::string_view json, ContainerdConfig& config);

// Adds what one file says; `imports` gets what it imports. `place` is how messages name the file.
// kInvalidArgument, with the line; `config` is then incomplete.
Result<void> ReadContainerdToml(std::string_view text, const std::string& place,
                                ContainerdConfig& config, std::vector<std::string>& imports);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_CONTAINERD_CONFIG_H_
