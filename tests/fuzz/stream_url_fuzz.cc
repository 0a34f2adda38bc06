// Addresses of streaming servers: no crash; no message repeats a path; what is allowed is loopback
// or listed, also for the system's resolver, which knows more forms of an address; asking again
// about what is to be dialled gives the same. The bytes are a byte of flags and one of a port, then
// URL, location and hosts, each on a line.

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "store/streams/stream_url.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace {

using waybill::StreamUrlPolicy;
using Answer = waybill::CheckStreamUrl::Answer;

void Must(bool held) {
  if (!held) std::abort();
}

std::string_view NextLine(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  return line;
}

bool IsListed(const StreamUrlPolicy& policy, const std::string& host) {
  return std::any_of(policy.hosts.begin(), policy.hosts.end(), [&](const std::string& entry) {
    return entry.size() == host.size() && strcasecmp(entry.c_str(), host.c_str()) == 0;
  });
}

// Whether the system's resolver, without DNS, reads `host` as one address, and that is loopback.
bool IsLoopback(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool loopback = false;
  if (found->ai_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, found->ai_addr, sizeof in);
    loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  } else if (found->ai_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, found->ai_addr, sizeof in6);
    loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) != 0 && in6.sin6_scope_id == 0;
  }
  freeaddrinfo(found);
  return loopback;
}

// Addresses on the list in the form that an answer has.
StreamUrlPolicy InCanonicalForm(const StreamUrlPolicy& policy) {
  StreamUrlPolicy canonical;
  for (const std::string& host : policy.hosts) {
    const std::string bracketed = host.find(':') == std::string::npos ? host : "[" + host + "]";
    canonical.hosts.push_back(
        waybill::JudgeStreamUrl({.url = "http://" + bracketed + "/", .policy = {.hosts = {host}}})
            .host);
  }
  return canonical;
}

void Judge(const Answer& to, const StreamUrlPolicy& policy) {
  Must(to.refusal.empty() == to.message.empty());
  if (!to.refusal.empty()) {
    Must(to.scheme.empty() && to.host.empty() && to.port == 0 && to.path.empty());
    for (const char c : to.message) Must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    return;
  }
  Must(IsLoopback(to.host) || IsListed(InCanonicalForm(policy), to.host));
  Must(to.port != 0 && to.path.starts_with('/'));
  Must(to.scheme == "https" || (to.scheme == "http" && !policy.require_https));
  Must(policy.ports.empty() ||
       std::find(policy.ports.begin(), policy.ports.end(), to.port) != policy.ports.end());
  const bool v6 = to.host.find(':') != std::string::npos;
  const std::string again = to.scheme + "://" + (v6 ? "[" + to.host + "]" : to.host) + ":" +
                            std::to_string(to.port) + to.path;
  if (again.size() > waybill::kMaxStreamUrlBytes) return;
  const Answer second = waybill::JudgeStreamUrl({.url = again, .policy = policy});
  Must(second.scheme == to.scheme && second.host == to.host && second.port == to.port &&
       second.path == to.path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  StreamUrlPolicy policy;
  policy.require_https = (data[0] & 1) != 0;
  policy.same_host_redirects = (data[0] & 2) != 0;
  if ((data[0] & 4) != 0) policy.ports = {80, 443, data[1]};
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string url(NextLine(rest));
  const std::string location(NextLine(rest));
  while (!rest.empty()) policy.hosts.emplace_back(NextLine(rest));

  const Answer check = waybill::JudgeStreamUrl({.url = url, .policy = policy});
  Judge(check, policy);
  if (url.empty()) return 0;  // then nothing is redirected
  const Answer redirected =
      waybill::JudgeStreamUrl({.url = location, .redirect_from = url, .policy = policy});
  Judge(redirected, policy);
  if (!check.refusal.empty()) Must(redirected.refusal == check.refusal);
  if (redirected.refusal.empty()) {
    Must(policy.same_host_redirects && redirected.host == check.host);
  }
  return 0;
}
