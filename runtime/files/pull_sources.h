// Which hosts may serve a pull, by the configuration of the container runtime, and so who checked
// the credentials with which an image was pulled; and which credentials the runtime has itself.
//
// A mirror answers in place of the registry. If it asks for no credentials, any Secret pulls the
// image, and so "proves" itself. What the functions can't see: a proxy in the runtime's
// environment, DNS, a runtime that was told of other files on its command line, or that has not yet
// read what changed since. Any bytes in the files are safe. What is not understood is a problem,
// and the checker unknown: a pattern with *. in registries.conf, and version 1 of that, say. Of
// registries.conf each prefix that fits counts, in any file, for tags and for digests: rather one
// mirror too many.
//
//   containerd's config.toml            version 4 has its socket in server.v1.grpc
//     [grpc] address                    in version 2, all is in plugins."io.containerd.grpc.v1.cri"
//     [plugins."io.containerd.cri.v1.images".registry]  config_path, mirrors, configs, auths
//     [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.NAME]
//   hosts.toml, in a folder for each registry below config_path
//     server = "https://registry-1.docker.io"       asked last; missing: the registry itself
//     [host."https://mirror.example.com"]           asked first, in the order of the file
//       capabilities, skip_verify, override_path, client, header
//   crio.conf                           [crio.image] global_auth_file, namespaced_auth_dir
//   registries.conf                     unqualified-search-registries, aliases
//     [[registry]] prefix, location, insecure, [[registry.mirror]]

#ifndef WAYBILL_RUNTIME_FILES_PULL_SOURCES_H_
#define WAYBILL_RUNTIME_FILES_PULL_SOURCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/files/node_credentials.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

enum class PullRuntime : std::uint8_t { kUnknown = 0, kContainerd = 1, kCriO = 2 };

// containerd's registry.mirrors: the endpoints that are asked before a registry; "*": any other.
struct RegistryEndpoints {
  std::string registry = {};
  std::vector<std::string> endpoints = {};
  std::string where = {};  // the file, or what else says so
};

// A runtime handler whose images are pulled in the guest.
struct GuestPuller {
  std::string handler = {};
  std::string because = {};
};

// How a runtime is configured to pull. A plain value: keep it while the runtime runs. What it names
// (folders, registries.conf) is read again for each image.
struct RuntimePulls {
  PullRuntime runtime = PullRuntime::kUnknown;
  std::string socket = {};  // at which its configuration says that containerd listens
  // containerd's config_path: folders with a folder for each registry.
  std::vector<std::string> config_path = {};
  std::vector<RegistryEndpoints> mirrors = {};  // instead of config_path
  // CRI-O's registries.conf, and its folders of drop-ins.
  std::string registries_conf = {};
  std::vector<std::string> registries_conf_dirs = {};
  // The files with credentials that CRI-O is told of, and the folder of those for namespaces.
  std::vector<std::string> auth_files = {};
  std::string namespaced_auth_dir = {};
  std::string default_handler = {};
  std::vector<std::string> handlers = {};  // that are configured
  std::vector<GuestPuller> guest_pullers = {};
  // What the runtime shows to registries of its own: a password, or a certificate.
  std::vector<NodeCredential> own_credentials = {};
  // Names and addresses of this node, by its files and its interfaces.
  std::vector<std::string> own_names = {};
  std::vector<std::string> files = {};     // that were read
  std::vector<std::string> problems = {};  // what could not be read: the checker is unknown
  std::string root = {};
};

// Major and minor of "containerd v2.4.2", "containerd 1.6.20~ds1". nullopt: it names none.
std::optional<std::pair<unsigned, unsigned>> VersionOf(std::string_view runtime);

// Reads the runtime's configuration: from its own answers, and from files where these say less
// (containerd from 2.0 on leaves out registries). An answer or a file that can't be understood is
// one of `problems`. At most kMaxPullConfigBytes a file, and kMaxPullConfigFiles files. kInternal
// alone. Any thread may call this and PullSourcesOf at any time. `own_names`: names and addresses
// of this node that are known.
Result<RuntimePulls> ReadRuntimePulls(const RuntimeAnswers& answers,
                                      std::vector<std::string> own_names = {});

// Which hosts may serve a pull of `image`, as a pod writes it, for a runtime handler (empty: the
// default), and what the doctor alone says. The registry's own names are not others: docker.io is
// index.docker.io and registry-1.docker.io, and a port that is the usual one may be named. Unknown,
// never registry: where anything of the configuration can't be read, where the registry is shown
// the node's own credentials, and for an image that does not parse.
struct PullSourcesInDetail {
  PullSources sources = {};
  std::vector<std::string> urls = {};     // of the others: "http://10.0.0.1:5000"
  std::string registry_is_insecure = {};  // where it is said; empty: it is asked by HTTPS
  // Those of `sources`, but that the registry is shown credentials of the node's.
  std::vector<std::string> problems = {};
};
Result<PullSourcesInDetail> PullSourcesOf(const RuntimePulls& pulls, std::string_view image,
                                          std::string_view runtime_handler);

namespace internal {
class ConfigReader;
// CRI-O's registries.conf and its drop-ins. All count here: rather one mirror, or one credential,
// too many.
std::vector<std::string> RegistriesFilesOf(const RuntimePulls& pulls, const ConfigReader& config);
}  // namespace internal

}  // namespace waybill

#endif  // WAYBILL_RUNTIME_FILES_PULL_SOURCES_H_
