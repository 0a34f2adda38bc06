// Addresses of registries in a runtime's configuration.

#ifndef WAYBILL_RUNTIME_FILES_REGISTRY_ENDPOINT_H_
#define WAYBILL_RUNTIME_FILES_REGISTRY_ENDPOINT_H_

#include <string>
#include <string_view>

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

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_REGISTRY_ENDPOINT_H_
