// Which pull credentials of a pod apply to an image, as the kubelet chooses them
// (pkg/credentialprovider/keyring.go, kubelet v1.36.3). Hashes only; credentials never get here.
//
//   registry in the docker config        key                        applies to
//   registry.example.com                 registry.example.com       every repository there
//   https://registry.example.com/v1/     registry.example.com       the same; so with /v2/
//   registry.example.com/team            registry.example.com/team  repositories that begin so
//   *.example.com:5000                   as it is                   each host of three parts, that
//   port index.docker.io                      as it is                   Docker Hub, if no key
//   applies
//
// A registry that Go does not take for a URL is ignored.

#ifndef WAYBILL_BINDINGS_CLI_KEYRING_H_
#define WAYBILL_BINDINGS_CLI_KEYRING_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/for_the_command.h"
#include "waybill/values.h"

namespace waybill::cli {

// Under which key a keyring keeps what is for `registry`. nullopt: it is ignored.
std::optional<std::string> KeyOfRegistry(std::string_view registry);

// Whether `key` applies to `repository`, an image's full name without tag and digest.
bool KeyMatches(std::string_view key, std::string_view repository);

// The pull Secrets of one pod.
class Keyring {
 public:
  // `secret`: the coordinates.
  void Add(const ImagePullSecret& secret, const std::vector<internal::RegistryHash>& registries);

  // Those that the kubelet would try for `image`, the most specific key first, with the hash of
  // what they have for it. A Secret with several matching registries is there several times. An
  // image that does not parse: none.
  std::vector<ImagePullSecret> Lookup(std::string_view image) const;

 private:
  std::map<std::string, std::vector<ImagePullSecret>, std::greater<>> secrets_;  // by key
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_KEYRING_H_
