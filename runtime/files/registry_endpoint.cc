#include "runtime/files/registry_endpoint.h"

#include <algorithm>

#include "store/base/ascii.h"
#include "store/base/quote.h"

namespace waybill::internal {
namespace {

bool IsUsual(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) ||
         std::string_view("-._:[]").find(c) != std::string_view::npos;
}

// In lower case, without the usual port; Docker Hub by one name.
std::string Canonical(std::string_view host, std::string_view port) {
  std::string name = ToLower(host);
  if (name.ends_with(port)) name.resize(name.size() - port.size());
  return name == "index.docker.io" || name == "registry-1.docker.io" ? "docker.io" : name;
}

}  // namespace

Result<RegistryEndpoint> ParseRegistryEndpoint(std::string_view url, bool https) {
  const auto refuse = [&] {
    return Error{ErrorCode::kInvalidArgument,
                 QuoteForMessage(url) + " is not the address of a registry",
                 {}};
  };
  RegistryEndpoint endpoint = {.https = https};
  std::string_view rest = url;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (!rest.starts_with("http://") && !rest.starts_with("https://")) return refuse();
    endpoint.https = rest.starts_with("https");
    rest.remove_prefix(scheme + 3);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view host = rest.substr(0, slash);
  const std::string_view path = rest.substr(slash);
  if (host.empty() || !std::all_of(host.begin(), host.end(), IsUsual)) return refuse();
  if (path.find_first_of("?#\\") != std::string_view::npos) return refuse();
  endpoint.host = host;
  endpoint.path = path;
  return endpoint;
}

bool IsSameRegistry(std::string_view host, std::string_view registry, bool https) {
  return Canonical(host, https ? ":443" : ":80") == Canonical(registry, ":443");
}

bool IsOnThisNode(std::string_view host) {
  const std::string name = ToLower(host);
  return name.starts_with("127.") || name == "localhost" || name.starts_with("localhost:") ||
         name.starts_with("[::1]") || name == "::1";
}

}  // namespace waybill::internal
