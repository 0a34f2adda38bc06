// Which hosts may serve a pull, by the configuration of the container runtime, and so who checked
// the credentials with which an image was pulled.
//
// A mirror answers in place of the registry. If it asks for no credentials, any Secret pulls the
// image, and so "proves" itself. The functions read what a runtime reads: containerd's
// configuration and hosts.toml, CRI-O's, registries.conf. What they can't see: a proxy in the
// runtime's environment, DNS and /etc/hosts, a runtime that was told of other files on its command
// line, or that has not yet read what changed since. Any bytes in the files are safe.

#ifndef WAYBILL_PULL_SOURCES_H_
#define WAYBILL_PULL_SOURCES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

enum class PullRuntime : std::uint8_t { kUnknown = 0, kContainerd = 1, kCriO = 2 };

// What ReadRuntimePulls begins with. What is empty is not known.
struct RuntimeAnswers {
  // Name and version, as CRI's VersionResponse has them: "containerd v2.4.2", "cri-o 1.33.1".
  std::string version = {};
  // CRI's StatusResponse, as `crictl info` prints it: containerd's says how it runs.
  std::string status = {};
  // The runtime's configuration file, where it is not at its usual place.
  std::string config = {};
  // Below which all files are looked for, symlinks too; empty: "/".
  std::string root = {};
};

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
  // containerd's config_path: folders with a folder for each registry.
  std::vector<std::string> config_path = {};
  std::vector<RegistryEndpoints> mirrors = {};  // instead of config_path
  // CRI-O's registries.conf, and its folders of drop-ins.
  std::string registries_conf = {};
  std::vector<std::string> registries_conf_dirs = {};
  std::string default_handler = {};
  std::vector<std::string> handlers = {};  // that are configured
  std::vector<GuestPuller> guest_pullers = {};
  // Hosts, "*" for any, that the runtime shows credentials or a certificate of its own.
  std::vector<std::string> own_credentials = {};
  std::vector<std::string> files = {};     // that were read
  std::vector<std::string> problems = {};  // what could not be read: the checker is unknown
  std::string root = {};
};

// Reads the runtime's configuration: from its own answers, and from files where these say less
// (containerd from 2.0 on leaves out registries). An answer or a file that can't be understood is
// one of `problems`. At most kMaxPullConfigBytes a file, and kMaxPullConfigFiles files. kInternal
// alone. Any thread may call this and PullSourcesOf at any time.
Result<RuntimePulls> ReadRuntimePulls(const RuntimeAnswers& answers);

// A host that may serve a pull instead of the registry.
struct PullSource {
  std::string host = {};  // with the port, if it is named, and a path that is not the usual
  // Of this image: by tag, or by digest. Who does checks credentials.
  bool serves_manifests = false;
  bool serves_layers = false;
  // Plain HTTP, or its certificate is not verified: whoever is on the way can answer.
  bool insecure = false;
  // Said to ask no pod for its credentials.
  bool open = false;
  std::string open_because = {};
  std::string where = {};  // "/etc/containerd/certs.d/_default/hosts.toml, line 3"
};

struct PullSources {
  std::string registry = {};            // of the image's full name: "docker.io"
  std::vector<PullSource> others = {};  // in the order in which they are asked
  VerifiedBy checker = VerifiedBy::kUnknown;
  std::vector<std::string> problems = {};  // why it is unknown
};

// Which hosts may serve a pull of `image`, as a pod writes it, for a runtime handler (empty: the
// default). The registry's own names are not others: docker.io is index.docker.io and
// registry-1.docker.io, and a port that is the usual one may be named. Unknown, never registry:
// where anything of the configuration can't be read, where the registry is shown the node's own
// credentials, and for an image that does not parse.
Result<PullSources> PullSourcesOf(const RuntimePulls& pulls, std::string_view image,
                                  std::string_view runtime_handler);

}  // namespace waybill

#endif  // WAYBILL_PULL_SOURCES_H_
