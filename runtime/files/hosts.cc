#include "runtime/files/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <sstream>
#include <tuple>

#include "store/base/ascii.h"

namespace waybill::internal {
namespace {

// An address as 16 bytes; IPv4, in any form that a resolver takes, as IPv6 has it.
using Address = std::array<unsigned char, 16>;
constexpr Address kV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr Address kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
std::optional<Address> AddressOf(std::string host) {
  Address address = kV4;
  in_addr v4 = {};
  host.resize(std::min(host.find('%'), host.size()));
  if (::inet_pton(AF_INET6, host.c_str(), address.data()) == 1) return address;
  if (::inet_aton(host.c_str(), &v4) == 0) return std::nullopt;
  std::memcpy(&address[12], &v4, sizeof v4);
  return address;
}

// The words of each line, without comments.
std::vector<std::vector<std::string>> RowsOf(const RootedFiles& files, const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(files.Read(path).value_or(""));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    rows.emplace_back(std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
    if (rows.back().empty()) rows.pop_back();
  }
  return rows;
}

}  // namespace

std::pair<std::string_view, std::string_view> AtHost(std::string_view image) {
  const std::size_t slash = std::min(image.find('/'), image.size());
  return {image.substr(0, slash), image.substr(slash)};
}

bool HasOnly(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'z') ||
           others.find(c) != std::string_view::npos;
  });
}

std::string WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  // Several colons are an IPv6 address without brackets.
  const std::size_t colon = host.find(':');
  return std::string(host.substr(0, colon == host.rfind(':') ? colon : host.size()));
}

std::string RegistryName(std::string_view host, std::string_view usual_port) {
  std::string name = ToLower(host);
  if (name.ends_with(usual_port)) name.resize(name.size() - usual_port.size());
  return name == "index.docker.io" || name == "registry-1.docker.io" ? "docker.io" : name;
}

bool Endpoint::Serves(std::string_view registry) const {
  return host.empty() ||
         (usual_path && RegistryName(host, https ? ":443" : ":80") == RegistryName(registry));
}

std::optional<Endpoint> EndpointOf(std::string_view url, bool https) {
  Endpoint endpoint = {.https = https};
  std::string_view rest = url;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    endpoint.https = scheme == "https://";
    rest.remove_prefix(scheme.size());
  }
  std::tie(endpoint.host, endpoint.path) = AtHost(rest);
  if (endpoint.host.empty() || rest.find("://") != std::string_view::npos ||
      !HasOnly(endpoint.host, "-._:[]") ||
      endpoint.path.find_first_of("?#\\") != std::string_view::npos) {
    return std::nullopt;
  }
  return endpoint;
}

std::vector<std::string> NamesOfThisNode(const RootedFiles& files, std::vector<std::string> known) {
  std::vector<std::string> names = std::move(known);
  for (const auto& row : RowsOf(files, "/etc/hostname")) names.push_back(row[0]);
  for (const std::string net : {"/proc/1/net/", "/proc/net/"}) {
    // |-- 10.0.17.4, and below it: /32 host LOCAL
    std::string last;
    for (const auto& row : RowsOf(files, net + "fib_trie")) {
      if (row.size() == 2 && row[0] == "|--") last = row[1];
      if (row.size() == 3 && row[2] == "LOCAL") names.push_back(last);
    }
    for (const auto& row : RowsOf(files, net + "if_inet6")) {
      std::string address = row[0];
      for (std::size_t at = 4; at < address.size(); at += 5) address.insert(at, 1, ':');
      names.push_back(address);
    }
  }
  for (const auto& row : RowsOf(files, "/etc/hosts")) {
    if (IsOnThisNode(row[0], names)) names.insert(names.end(), row.begin() + 1, row.end());
  }
  return names;
}

bool IsOnThisNode(std::string_view host, const std::vector<std::string>& own_names) {
  std::string name = ToLower(WithoutPort(host));
  if (name.ends_with('.')) name.pop_back();
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  const auto address = AddressOf(name);
  const bool is_own = std::ranges::any_of(own_names, [&](const std::string& own) {
    return name == ToLower(own) || (address && address == AddressOf(own));
  });
  if (is_own || !address) return is_own;
  const bool is_v4 = std::equal(address->begin(), address->begin() + 12, kV4.begin());
  return is_v4 ? (*address)[12] == 127 || *address == kV4
               : *address == Address{} || *address == kLoopback;
}

}  // namespace waybill::internal
