// URLs by RFC 3986: TakeApart looks for nothing but the ends of the parts, so that messages can
// name the part that is wrong; then one table of rules is gone through. The judge is uriparser, in
// tests/unit/stream_url_judge_test.cc.

#include "store/streams/stream_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/quote.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::IsDigit, internal::IsLetter, internal::IsMadeOf, internal::QuoteForMessage,
    internal::ToLower;
using Answer = CheckStreamUrl::Answer;

constexpr std::size_t kMaxHostNameBytes = 253;
constexpr std::string_view kUrl = "the streaming server's URL";
constexpr std::string_view kLocation = "the location of the redirect";

bool IsHexDigit(char c) { return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'f'); }
bool Has(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }
bool AreDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

Answer Refused(std::string_view refusal, std::string_view name, std::string_view says) {
  Answer answer;
  answer.refusal = refusal;
  answer.message.append(name).append(" ").append(says);
  return answer;
}

// --- Hosts ---------------------------------------------------------------------------------------

// An IPv4 address as the IPv6 address that maps it, so that both spellings are one.
using Address = std::array<unsigned char, 16>;
constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kMappedBytes = 12;

bool IsMapped(const Address& address) {
  return std::equal(kMapped.begin(), kMapped.begin() + kMappedBytes, address.begin());
}

bool IsLoopback(const Address& address) {
  constexpr Address kOne = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return address == kOne || (IsMapped(address) && address[kMappedBytes] == 127);
}

// inet_pton takes four decimal numbers without leading zeros, or an IPv6 address without a zone.
std::optional<Address> ReadAddress(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || Has(text, '\0')) return {};
  std::copy(text.begin(), text.end(), terminated.begin());
  Address address{};
  if (inet_pton(AF_INET6, terminated.data(), address.data()) == 1) return address;
  address = kMapped;
  if (inet_pton(AF_INET, terminated.data(), address.data() + kMappedBytes) == 1) return address;
  return {};
}

std::string ShowAddress(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped = IsMapped(address);
  inet_ntop(mapped ? AF_INET : AF_INET6, address.data() + (mapped ? kMappedBytes : 0), text.data(),
            text.size());
  return text.data();
}

// A host that some resolvers take for an IPv4 address: its last label is a number, also in hex.
bool EndsInNumber(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string_view label = host.substr(host.rfind('.') + 1);
  return AreDigits(label) || (label.size() >= 2 && label[0] == '0' && ToLower(label[1]) == 'x' &&
                              std::all_of(label.begin() + 2, label.end(), IsHexDigit));
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxHostNameBytes && name.front() != '.' &&
         name.find("..") == std::string_view::npos && !EndsInNumber(name) && IsMadeOf(name, "-_.");
}

// What is wrong with the policy; empty: nothing.
std::string PolicyProblem(const StreamUrlPolicy& policy) {
  if (policy.hosts.size() > kMaxStreamHosts || policy.ports.size() > kMaxStreamPorts) {
    return "lists more than " + std::to_string(kMaxStreamHosts) + " hosts or " +
           std::to_string(kMaxStreamPorts) + " ports";
  }
  for (const std::string& host : policy.hosts) {
    if (!ReadAddress(host) && !IsHostName(host)) {
      return "lists " + QuoteForMessage(host) + ", which is neither an IP address nor a host name";
    }
  }
  const bool has_zero = std::ranges::find(policy.ports, 0) != policy.ports.end();
  return has_zero ? "lists port 0, to which nobody can connect" : "";
}

// --- Parts ---------------------------------------------------------------------------------------

std::string_view UpToPath(std::string_view text) {
  return text.substr(0, text.find_first_of("/?#"));
}

// The parts of a URL or a relative reference as views into it, whatever is in them (RFC 3986,
// appendix B).
struct Parts {
  std::string_view scheme;  // empty: none
  std::optional<std::string_view> authority;
  std::string_view path;
  std::optional<std::string_view> query;
  std::optional<std::string_view> fragment;
};

Parts TakeApart(std::string_view text) {
  Parts parts;
  const std::size_t colon = text.find_first_of(":/?#");
  if (colon != std::string_view::npos && colon > 0 && text[colon] == ':' && IsLetter(text[0]) &&
      IsMadeOf(text.substr(0, colon), "+-.")) {
    parts.scheme = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    parts.authority = UpToPath(text.substr(2));
    text.remove_prefix(2 + parts.authority->size());
  }
  const auto cut_off = [&text](char begin) -> std::optional<std::string_view> {
    const std::size_t at = text.find(begin);
    if (at == std::string_view::npos) return {};
    const std::string_view part = text.substr(at + 1);
    text = text.substr(0, at);
    return part;
  };
  parts.fragment = cut_off('#');
  parts.query = cut_off('?');
  parts.path = text;
  return parts;
}

// RFC 3986, section 5.2.2, but for the segments "." and "..", which are refused. The base has an
// authority.
std::string Resolve(const Parts& base, std::string_view location) {
  const Parts reference = TakeApart(location);
  if (!reference.scheme.empty()) return std::string(location);
  std::string url = std::string(base.scheme) + ":";
  if (!reference.authority) {
    url.append("//").append(*base.authority);
    if (reference.path.empty()) {
      url.append(base.path);
      if (base.query && !reference.query) url.append("?").append(*base.query);
    } else if (!reference.path.starts_with('/')) {
      url.append(base.path.substr(0, base.path.rfind('/') + 1));
      if (base.path.empty()) url += '/';
    }
  }
  return url.append(location);
}

// Whether a part has nothing but unreserved characters, sub-delimiters, `more`, and bytes that are
// percent-encoded.
bool HasOnly(std::string_view part, std::string_view more) {
  for (std::size_t at = 0; at < part.size(); ++at) {
    const char c = part[at];
    if (IsMadeOf({&c, 1}, "-._~!$&'()*+,;=") || Has(more, c)) continue;
    if (c != '%' || part.size() - at < 3 || !IsHexDigit(part[at + 1]) ||
        !IsHexDigit(part[at + 2])) {
      return false;
    }
    at += 2;
  }
  return true;
}

// --- Rules ---------------------------------------------------------------------------------------

// 0: the text is no port.
std::uint16_t ReadPort(std::string_view text) {
  std::uint16_t port = 0;
  if (!AreDigits(text) || text.front() == '0') return 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
}

struct Url {
  Url(std::string_view url, const StreamUrlPolicy& its_policy)
      : policy(its_policy), parts(TakeApart(url)), scheme(parts.scheme) {
    authority = parts.authority.value_or("");
    std::size_t end = authority.find(authority.starts_with('[') ? ']' : ':');
    if (authority.starts_with('[') && end != std::string_view::npos) ++end;
    host = authority.substr(0, end);
    port = authority.substr(host.size());
    number = port.empty() ? (IsHttps() ? 443 : 80) : ReadPort(port.substr(1));
    const bool in_brackets = host.starts_with('[') && host.ends_with(']') && Has(host, ':');
    address = ReadAddress(in_brackets ? host.substr(1, host.size() - 2) : host);
  }

  bool IsHttps() const { return ToLower(scheme) == "https"; }
  bool IsHttp() const { return IsHttps() || ToLower(scheme) == "http"; }
  bool IsFutureAddress() const { return ToLower(host.substr(0, 2)) == "[v"; }
  bool HasSyntax() const {
    const bool is_host = host.starts_with('[') ? address || IsFutureAddress() : HasOnly(host, {});
    return is_host && HasOnly(parts.path, ":@/") && HasOnly(parts.query.value_or(""), ":@/?") &&
           HasOnly(parts.fragment.value_or(""), ":@/?");
  }
  bool IsListed() const {
    return std::ranges::any_of(policy.hosts, [&](const std::string& listed) {
      return address ? ReadAddress(listed) == address : ToLower(listed) == ToLower(host);
    });
  }
  bool IsUnspecified() const { return address == kMapped || address == Address{}; }

  const StreamUrlPolicy& policy;
  Parts parts;
  std::string_view scheme;
  std::string_view authority;
  std::string_view host;           // with its brackets; if they are not closed, all of it
  std::string_view port;           // what follows the host: ":80"
  std::uint16_t number = 0;        // of the port; 0: it has none
  std::optional<Address> address;  // that the host is
};

struct Rule {
  std::string_view refusal;
  bool (*is_broken)(const Url& url);
  std::string_view says;  // behind the URL's name; $ is the part that is wrong
  std::string_view Url::*part = &Url::host;
};

// In this order: the first that a URL breaks is the reason. Before them come "policy", "tooLong"
// and "character"; of redirects also "redirect", "redirectHost" and "redirectDowngrade".
constexpr Rule kRules[] = {
    // The runtime's streaming server was configured without a scheme. A kubelet from 1.36 on dials
    // the URL itself, which needs one (KEP-4006; the URLs of cri-dockerd up to 0.4.4,
    // Mirantis/cri-dockerd#569).
    {"noScheme", [](const Url& u) { return u.scheme.empty(); },
     "has no scheme: configure the runtime's streaming server with a base URL that begins with "
     "http:// or https:// (in Go, Config.BaseURL with its Scheme)"},
    {"scheme", [](const Url& u) { return !u.IsHttp(); },
     "has the scheme $: streams go over http or https", &Url::scheme},
    {"notHttps", [](const Url& u) { return u.policy.require_https && !u.IsHttps(); },
     "has the scheme http, but the policy asks for https"},
    // It would go to the server, or hide the host.
    {"userInfo", [](const Url& u) { return Has(u.authority, '@'); },
     "has user information ('@' before the path): the streaming server needs none"},
    // "http:/path", "http:path", "http://:80/".
    {"noHost", [](const Url& u) { return u.host.empty(); },
     "has no host: give the runtime's streaming server a loopback address, such as 127.0.0.1"},
    {"zone", [](const Url& u) { return Has(u.host, '%') && u.host.front() == '['; },
     "has the host $ with a zone: an address that depends on the interface is not loopback"},
    {"encodedHost", [](const Url& u) { return Has(u.host, '%'); },
     "has the host $ with a percent-encoded byte"},
    {"syntax", [](const Url& u) { return !u.port.empty() && u.port.front() != ':'; },
     "has text after the brackets of its host $"},
    {"port", [](const Url& u) { return u.number == 0; },
     "has the port $, not a number from 1 to 65535 (an IPv6 address needs brackets)", &Url::port},
    {"syntax", [](const Url& u) { return !u.HasSyntax(); },
     "is not a URL (RFC 3986): a character stands where it may not, in its host, path or query"},
    {"fragment", [](const Url& u) { return u.parts.fragment.has_value(); },
     "has a fragment ('#'), which no client sends"},
    // 127.1, 0177.0.0.1, 2130706433, 0x7f.1, [v1.x]. Resolvers take these for different addresses.
    {"addressForm",
     [](const Url& u) { return !u.address && (EndsInNumber(u.host) || u.IsFutureAddress()); },
     "has the host $, which resolvers read differently: write an IPv4 address as four decimal "
     "numbers, or an IPv6 address in brackets"},
    // `localhost`, too.
    {"hostName", [](const Url& u) { return !u.address && !u.IsListed(); },
     "has the host name $, which leads where the resolver says: give the runtime's streaming "
     "server a loopback address, such as 127.0.0.1, or list the name"},
    {"unspecified", [](const Url& u) { return u.IsUnspecified() && !u.IsListed(); },
     "has the unspecified address $: the runtime listens on every interface; give its streaming "
     "server a loopback address, such as 127.0.0.1"},
    {"notAllowed",
     [](const Url& u) { return u.address && !IsLoopback(*u.address) && !u.IsListed(); },
     "has the address $, which is neither loopback nor listed: give the runtime's streaming server "
     "a loopback address, such as 127.0.0.1, or list this one"},
    {"portNotAllowed",
     [](const Url& u) {
       const auto& ports = u.policy.ports;
       return !ports.empty() && std::ranges::find(ports, u.number) == ports.end();
     },
     "has a port behind its host $ that the policy does not list"},
};

// Readers of URLs disagree about these bytes.
std::optional<Answer> ByteProblem(std::string_view text, std::string_view name) {
  if (text.size() > kMaxStreamUrlBytes) {
    return Refused("tooLong", name,
                   "has " + std::to_string(text.size()) + " bytes, more than " +
                       std::to_string(kMaxStreamUrlBytes));
  }
  const auto* const bad = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7f || c == '\\';
  });
  if (bad == text.end()) return {};
  return Refused("character", name,
                 "has a control character, a space, a backslash or a byte that is not ASCII as "
                 "byte " +
                     std::to_string(bad - text.begin() + 1) +
                     ": URLs have none unless percent-encoded");
}

Answer Check(std::string_view text, std::string_view name, const StreamUrlPolicy& policy) {
  if (const std::string problem = PolicyProblem(policy); !problem.empty()) {
    return Refused("policy", "the policy for streaming URLs", problem + "; no URL was checked");
  }
  if (auto problem = ByteProblem(text, name)) return *std::move(problem);
  const Url url(text, policy);
  for (const Rule& rule : kRules) {
    if (!rule.is_broken(url)) continue;
    std::string says(rule.says);
    if (const std::size_t at = says.find('$'); at != std::string::npos) {
      says.replace(at, 1, QuoteForMessage(url.*rule.part));
    }
    return Refused(rule.refusal, name, says);
  }
  Answer answer;
  answer.scheme = ToLower(url.scheme);
  answer.host = url.address ? ShowAddress(*url.address) : ToLower(url.host);
  answer.port = url.number;
  answer.path = url.parts.path.empty() ? "/" : url.parts.path;
  if (url.parts.query) answer.path.append("?").append(*url.parts.query);
  return answer;
}

// A path that begins with "//", or has the segment "." or "..": readers of URLs disagree.
bool IsAmbiguous(std::string_view path) {
  path = path.substr(0, path.find('?'));
  if (path.starts_with("//")) return true;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(segment.size());
  }
  return false;
}

}  // namespace

Answer JudgeStreamUrl(const CheckStreamUrl& call) {
  if (call.redirect_from.empty()) return Check(call.url, kUrl, call.policy);
  const std::string_view location = call.url;
  Answer from = Check(call.redirect_from, kUrl, call.policy);
  if (!from.refusal.empty()) return from;
  if (!call.policy.same_host_redirects) {
    return Refused("redirect", "the streaming server",
                   "answered with a redirect, and the policy follows none");
  }
  if (auto problem = ByteProblem(location, kLocation)) return *std::move(problem);
  if (location.empty()) return Refused("redirectHost", kLocation, "is empty");
  const Parts reference = TakeApart(location);
  // It would be a scheme.
  if (reference.scheme.empty() && !reference.authority &&
      Has(reference.path.substr(0, reference.path.find('/')), ':')) {
    return Refused("syntax", kLocation, "is not a URL (RFC 3986)");
  }
  Answer to = Check(Resolve(TakeApart(call.redirect_from), location), kLocation, call.policy);
  if (!to.refusal.empty()) return to;
  if (to.host != from.host) {
    return Refused("redirectHost", kLocation,
                   "has the host " + QuoteForMessage(to.host) + ", the streaming server has " +
                       QuoteForMessage(from.host) + ": redirects stay on their host");
  }
  if (IsAmbiguous(to.path)) {
    return Refused("redirectHost", kLocation,
                   "has a path that begins with '//' or has the segment '.' or '..', of which "
                   "readers make different things");
  }
  if (from.scheme == "https" && to.scheme != "https") {
    return Refused("redirectDowngrade", kLocation, "goes from https to http");
  }
  return to;
}

}  // namespace waybill
