// URLs by RFC 3986, in two steps: TakeApart looks for nothing but the ends of the parts, so that
// messages can name the part that is wrong; then IsReference holds each part against the grammar.
// The judge is uriparser, in tests/unit/stream_url_judge_test.cc.

#include "store/streaming/stream_url.h"

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
#include "store/base/names.h"
#include "store/base/quote.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::IsDigit, internal::QuoteForMessage, internal::ToLower;

// An IPv4 address as the IPv6 address that maps it, so that both spellings are one.
using Address = std::array<unsigned char, 16>;
constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

constexpr std::size_t kMaxHostNameBytes = 253;

bool IsLetter(char c) { return ToLower(c) >= 'a' && ToLower(c) <= 'z'; }
bool IsHexDigit(char c) { return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'f'); }

bool IsMapped(const Address& address) {
  return std::equal(kMapped.begin(), kMapped.end(), address.begin());
}

bool IsLoopback(const Address& address) {
  Address one{};
  one[15] = 1;
  return address == one || (IsMapped(address) && address[12] == 127);
}

bool IsUnspecified(const Address& address) {
  return std::all_of(address.begin() + (IsMapped(address) ? 12 : 0), address.end(),
                     [](unsigned char byte) { return byte == 0; });
}

// inet_pton takes four decimal numbers without leading zeros, or an IPv6 address without a zone.
std::optional<Address> ReadAddress(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) return {};
  std::copy(text.begin(), text.end(), terminated.begin());
  Address address{};
  if (inet_pton(AF_INET6, terminated.data(), address.data()) == 1) return address;
  std::copy(kMapped.begin(), kMapped.end(), address.begin());
  if (inet_pton(AF_INET, terminated.data(), address.data() + kMapped.size()) == 1) return address;
  return {};
}

std::string ShowAddress(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped = IsMapped(address);
  inet_ntop(mapped ? AF_INET : AF_INET6, address.data() + (mapped ? kMapped.size() : 0),
            text.data(), text.size());
  return text.data();
}

// A host that some resolvers take for an IPv4 address: its last label is a number, also in hex.
bool EndsInNumber(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string_view label = host.substr(host.rfind('.') + 1);
  if (label.empty()) return false;
  if (std::all_of(label.begin(), label.end(), IsDigit)) return true;
  return label.size() >= 2 && label[0] == '0' && ToLower(label[1]) == 'x' &&
         std::all_of(label.begin() + 2, label.end(), IsHexDigit);
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxHostNameBytes && name.front() != '.' &&
         name.find("..") == std::string_view::npos && !EndsInNumber(name) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
         });
}

StreamUrlCheck Refused(StreamUrlRefusal refusal, std::string message) {
  return {.refusal = refusal, .message = std::move(message)};
}

// What is wrong with the policy; empty: nothing.
std::string PolicyProblem(const StreamUrlPolicy& policy) {
  if (policy.hosts.size() > kMaxStreamHosts) {
    return "lists " + std::to_string(policy.hosts.size()) + " hosts, more than " +
           std::to_string(kMaxStreamHosts);
  }
  if (policy.ports.size() > kMaxStreamPorts) {
    return "lists " + std::to_string(policy.ports.size()) + " ports, more than " +
           std::to_string(kMaxStreamPorts);
  }
  for (const std::string& host : policy.hosts) {
    if (!ReadAddress(host) && !IsHostName(host)) {
      return "lists " + QuoteForMessage(host) + ", which is neither an IP address nor a host name";
    }
  }
  if (std::find(policy.ports.begin(), policy.ports.end(), 0) != policy.ports.end()) {
    return "lists port 0, to which nobody can connect";
  }
  return {};
}

bool Lists(const StreamUrlPolicy& policy, const Address& address) {
  return std::any_of(policy.hosts.begin(), policy.hosts.end(),
                     [&](const std::string& host) { return ReadAddress(host) == address; });
}

bool Lists(const StreamUrlPolicy& policy, std::string_view name_in_lower_case) {
  return std::any_of(policy.hosts.begin(), policy.hosts.end(),
                     [&](const std::string& host) { return ToLower(host) == name_in_lower_case; });
}

// A URL, and what messages call it.
struct Subject {
  std::string_view text;
  const char* name;
};

// Empty: the URL has none.
std::string_view SchemeOf(std::string_view url) {
  if (url.empty() || !IsLetter(url[0])) return {};
  const auto* const end = std::find_if_not(url.begin(), url.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '+' || c == '-' || c == '.';
  });
  return end != url.end() && *end == ':'
             ? url.substr(0, static_cast<std::size_t>(end - url.begin()))
             : std::string_view();
}

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
  parts.scheme = SchemeOf(text);
  if (!parts.scheme.empty()) text.remove_prefix(parts.scheme.size() + 1);
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

// With the brackets of an IPv6 address; if they are not closed, all of it.
std::string_view HostOf(std::string_view authority) {
  std::size_t end = authority.find(':');
  if (authority.starts_with('[')) {
    end = authority.find(']');
    if (end != std::string_view::npos) ++end;
  }
  return authority.substr(0, end);
}

// "host:port", up to the path.
bool BeginsWithHostAndPort(std::string_view text) {
  text = UpToPath(text);
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(), IsDigit);
}

std::optional<StreamUrlCheck> CharacterProblem(const Subject& url) {
  if (url.text.size() > kMaxStreamUrlBytes) {
    return Refused(StreamUrlRefusal::kTooLong,
                   std::string(url.name) + " has " + std::to_string(url.text.size()) +
                       " bytes, more than " + std::to_string(kMaxStreamUrlBytes));
  }
  for (std::size_t at = 0; at < url.text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(url.text[at]);
    const char* what = nullptr;
    if (byte < 0x20 || byte == 0x7f) what = "a control character";
    if (byte == ' ') what = "a space";
    if (byte == '\\') what = "a backslash";
    if (byte >= 0x80) what = "a byte that is not ASCII";
    if (what != nullptr) {
      return Refused(StreamUrlRefusal::kCharacter, std::string(url.name) + " has " + what +
                                                       " as byte " + std::to_string(at + 1) +
                                                       ": URLs have none unless percent-encoded");
    }
  }
  return {};
}

StreamUrlCheck NoScheme(const Subject& url) {
  const bool has_authority = url.text.starts_with("//");
  std::string_view where = UpToPath(url.text.substr(has_authority ? 2 : 0));
  where.remove_prefix(where.rfind('@') + 1);
  // Anything else may be the path, with the token.
  const bool show = has_authority || BeginsWithHostAndPort(where);
  return Refused(StreamUrlRefusal::kNoScheme,
                 std::string(url.name) + " has no scheme" +
                     (show ? " before " + QuoteForMessage(where) : std::string()) +
                     ": configure the runtime's streaming server with a base URL that begins with "
                     "http:// or https:// (in Go, Config.BaseURL with its Scheme)");
}

// What is wrong with scheme and authority, by which messages are told apart.
std::optional<StreamUrlCheck> OriginProblem(const Subject& url, const Parts& parts,
                                            const StreamUrlPolicy& policy) {
  const std::string name = url.name;
  const std::string scheme = ToLower(parts.scheme);
  if (scheme != "http" && scheme != "https") {
    if (scheme.empty() || BeginsWithHostAndPort(url.text)) return NoScheme(url);
    return Refused(StreamUrlRefusal::kScheme, name + " has the scheme " +
                                                  QuoteForMessage(parts.scheme) +
                                                  ": streams go over http or https");
  }
  if (policy.require_https && scheme != "https") {
    return Refused(StreamUrlRefusal::kNotHttps,
                   name + " has the scheme http, but the policy asks for https");
  }
  const std::string_view authority = parts.authority.value_or("");
  if (authority.find('@') != std::string_view::npos) {
    return Refused(StreamUrlRefusal::kUserInfo, name +
                                                    " has user information ('@' before the path): "
                                                    "the streaming server needs none");
  }
  if (authority.empty() || authority.front() == ':') {
    return Refused(StreamUrlRefusal::kNoHost, name +
                                                  " has no host: give the runtime's streaming "
                                                  "server a loopback address, such as 127.0.0.1");
  }
  const std::string_view host = HostOf(authority);
  if (host.find('%') != std::string_view::npos) {
    if (host.front() == '[') {
      return Refused(StreamUrlRefusal::kZone,
                     name + " has the host " + QuoteForMessage(host) +
                         " with a zone: an address that depends on the interface is not loopback");
    }
    return Refused(StreamUrlRefusal::kEncodedHost, name + " has the host " + QuoteForMessage(host) +
                                                       " with a percent-encoded byte");
  }
  if (host.size() < authority.size() && authority[host.size()] != ':') {
    return Refused(StreamUrlRefusal::kSyntax,
                   name + " has text after the brackets of its host " + QuoteForMessage(host));
  }
  return {};
}

// 0: the text is no port.
std::uint16_t ReadPort(std::string_view text) {
  std::uint16_t port = 0;
  if (text.empty() || text.front() == '0' || !std::all_of(text.begin(), text.end(), IsDigit)) {
    return 0;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
}

bool IsUnreservedOrSubDelimiter(char c) {
  return IsLetter(c) || IsDigit(c) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

// Whether a part has nothing but these characters, `more`, and bytes that are percent-encoded.
bool HasOnly(std::string_view part, std::string_view more) {
  for (std::size_t at = 0; at < part.size(); ++at) {
    if (IsUnreservedOrSubDelimiter(part[at]) || more.find(part[at]) != std::string_view::npos) {
      continue;
    }
    if (part[at] != '%' || part.size() - at < 3 || !IsHexDigit(part[at + 1]) ||
        !IsHexDigit(part[at + 2])) {
      return false;
    }
    at += 2;
  }
  return true;
}

// "[::1]", "[v1.x]".
bool IsIpLiteral(std::string_view host) {
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  host = host.substr(1, host.size() - 2);
  if (ToLower(host.substr(0, 1)) != "v") {
    return host.find(':') != std::string_view::npos && ReadAddress(host).has_value();
  }
  const std::size_t dot = host.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view version = host.substr(1, dot - 1);
  const std::string_view address = host.substr(dot + 1);
  return !version.empty() && std::all_of(version.begin(), version.end(), IsHexDigit) &&
         !address.empty() && std::all_of(address.begin(), address.end(), [](char c) {
           return c == ':' || IsUnreservedOrSubDelimiter(c);
         });
}

bool IsAuthority(std::string_view authority) {
  if (const std::size_t at = authority.find('@'); at != std::string_view::npos) {
    if (!HasOnly(authority.substr(0, at), ":")) return false;
    authority.remove_prefix(at + 1);
  }
  const std::string_view host = HostOf(authority);
  const std::string_view port = authority.substr(host.size());
  if (!port.empty() &&
      (port.front() != ':' || !std::all_of(port.begin() + 1, port.end(), IsDigit))) {
    return false;
  }
  return host.starts_with('[') ? IsIpLiteral(host) : HasOnly(host, {});
}

// Whether the whole is a URI reference of RFC 3986. A relative one whose first segment has a ':' is
// none: it would be a scheme.
bool IsReference(const Parts& parts) {
  const bool is_relative_path = parts.scheme.empty() && !parts.authority;
  return (!is_relative_path ||
          parts.path.substr(0, parts.path.find('/')).find(':') == std::string_view::npos) &&
         (!parts.authority || IsAuthority(*parts.authority)) && HasOnly(parts.path, ":@/") &&
         HasOnly(parts.query.value_or(""), ":@/?") && HasOnly(parts.fragment.value_or(""), ":@/?");
}

// RFC 3986, section 5.2.4.
std::string RemoveDotSegments(std::string_view path) {
  std::string kept;
  const auto remove_last = [&kept] {
    const std::size_t slash = kept.rfind('/');
    kept.resize(slash == std::string::npos ? 0 : slash);
  };
  while (!path.empty()) {
    if (path.starts_with("../")) {
      path.remove_prefix(3);
    } else if (path.starts_with("./") || path.starts_with("/./")) {
      path.remove_prefix(2);
    } else if (path.starts_with("/../")) {
      path.remove_prefix(3);
      remove_last();
    } else if (path == "/.") {
      path = "/";
    } else if (path == "/..") {
      path = "/";
      remove_last();
    } else if (path == "." || path == "..") {
      path = {};
    } else {
      const std::string_view segment = path.substr(0, path.find('/', 1));
      kept += segment;
      path.remove_prefix(segment.size());
    }
  }
  return kept;
}

// RFC 3986, sections 5.2.2 and 5.3; the base has an authority.
std::string Resolve(const Parts& base, const Parts& reference) {
  Parts to = reference;
  std::string path;
  if (!reference.scheme.empty() || reference.authority || reference.path.starts_with('/')) {
    path = RemoveDotSegments(reference.path);
  } else if (reference.path.empty()) {
    path = base.path;
    if (!to.query) to.query = base.query;
  } else {
    const std::string_view folder = base.path.substr(0, base.path.rfind('/') + 1);
    path = RemoveDotSegments((folder.empty() ? "/" : std::string(folder)).append(reference.path));
  }
  if (reference.scheme.empty()) {
    to.scheme = base.scheme;
    if (!reference.authority) to.authority = base.authority;
  }
  std::string url = std::string(to.scheme) + ":";
  if (to.authority) {
    url.append("//").append(*to.authority);
  } else if (path.starts_with("//")) {
    url += "/.";  // or the path would be read as an authority
  }
  url += path;
  if (to.query) url.append("?").append(*to.query);
  if (to.fragment) url.append("#").append(*to.fragment);
  return url;
}

// `written` is as the URL has it; `host` is to be what the answer has.
std::optional<StreamUrlCheck> HostProblem(const std::string& name, std::string_view written,
                                          const StreamUrlPolicy& policy, std::string& host) {
  const bool in_brackets = written.starts_with('[');
  if (in_brackets) written = written.substr(1, written.size() - 2);
  const std::string shown = QuoteForMessage(written);
  const auto address = ReadAddress(written);
  if (!address && !in_brackets) {
    host = ToLower(written);
    if (EndsInNumber(host)) {
      return Refused(StreamUrlRefusal::kAddressForm,
                     name + " has the host " + shown +
                         ", a number that resolvers read differently: write an IPv4 address as "
                         "four decimal numbers");
    }
    if (Lists(policy, host)) return {};
    return Refused(StreamUrlRefusal::kHostName,
                   name + " has the host name " + shown +
                       ", which leads where the resolver says: give the runtime's streaming "
                       "server a loopback address, such as 127.0.0.1, or list the name");
  }
  if (!address) {
    return Refused(StreamUrlRefusal::kAddressForm,
                   name + " has the host " + shown + ", which is not an IPv4 or IPv6 address");
  }
  host = ShowAddress(*address);
  if (IsLoopback(*address) || Lists(policy, *address)) return {};
  if (IsUnspecified(*address)) {
    return Refused(StreamUrlRefusal::kUnspecified,
                   name + " has the unspecified address " + shown +
                       ": the runtime listens on every interface; give its streaming server a "
                       "loopback address, such as 127.0.0.1");
  }
  return Refused(StreamUrlRefusal::kNotAllowed,
                 name + " has the address " + shown +
                     ", which is neither loopback nor listed: give the runtime's streaming server "
                     "a loopback address, such as 127.0.0.1, or list this one");
}

// After resolving, a path that begins with "//", or still has the segment "." or "..", as it does
// if only the query was replaced.
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

StreamUrlCheck Check(const Subject& url, const StreamUrlPolicy& policy) {
  const std::string name = url.name;
  if (const std::string problem = PolicyProblem(policy); !problem.empty()) {
    return Refused(StreamUrlRefusal::kPolicy,
                   "the policy for streaming URLs " + problem + "; no URL was checked");
  }
  if (auto problem = CharacterProblem(url)) return *std::move(problem);
  const Parts parts = TakeApart(url.text);
  if (auto problem = OriginProblem(url, parts, policy)) return *std::move(problem);

  StreamAddress address;
  address.scheme = parts.scheme.size() == 5 ? StreamScheme::kHttps : StreamScheme::kHttp;
  address.port = address.scheme == StreamScheme::kHttps ? 443 : 80;
  const std::string_view host = HostOf(*parts.authority);
  if (host.size() < parts.authority->size()) {
    const std::string_view port = parts.authority->substr(host.size() + 1);
    address.port = ReadPort(port);
    if (address.port == 0) {
      return Refused(StreamUrlRefusal::kPort, name + " has the port " + QuoteForMessage(port) +
                                                  ", not a number from 1 to 65535 (an IPv6 address "
                                                  "needs brackets)");
    }
  }
  if (!IsReference(parts)) {
    return Refused(StreamUrlRefusal::kSyntax,
                   name +
                       " is not a URL (RFC 3986): a character stands where it may not, in its "
                       "host, path or query");
  }
  if (parts.fragment) {
    return Refused(StreamUrlRefusal::kFragment,
                   name + " has a fragment ('#'), which no client sends");
  }
  if (auto problem = HostProblem(name, host, policy, address.host)) return *std::move(problem);
  if (!policy.ports.empty() &&
      std::find(policy.ports.begin(), policy.ports.end(), address.port) == policy.ports.end()) {
    return Refused(StreamUrlRefusal::kPortNotAllowed, name + " has the port " +
                                                          std::to_string(address.port) +
                                                          ", which the policy does not list");
  }
  address.path = parts.path.empty() ? "/" : parts.path;
  if (parts.query) address.path.append("?").append(*parts.query);
  return {.address = std::move(address)};
}

}  // namespace

std::string_view StreamUrlRefusalName(StreamUrlRefusal refusal) {
  constexpr std::string_view kNames[] = {"none",           "policy",
                                         "tooLong",        "character",
                                         "noScheme",       "scheme",
                                         "notHttps",       "noHost",
                                         "userInfo",       "zone",
                                         "encodedHost",    "port",
                                         "syntax",         "fragment",
                                         "addressForm",    "hostName",
                                         "unspecified",    "notAllowed",
                                         "portNotAllowed", "redirect",
                                         "redirectHost",   "redirectDowngrade"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastStreamUrlRefusal) + 1);
  return internal::NameIn(kNames, refusal);
}

std::string_view StreamSchemeName(StreamScheme scheme) {
  constexpr std::string_view kNames[] = {"http", "https"};
  return internal::NameIn(kNames, scheme);
}

StreamUrlCheck StreamUrlChecked(std::string_view url, const StreamUrlPolicy& policy) {
  return Check({.text = url, .name = "the streaming server's URL"}, policy);
}

StreamUrlCheck CheckStreamRedirect(std::string_view original, std::string_view location,
                                   const StreamUrlPolicy& policy) {
  StreamUrlCheck from = StreamUrlChecked(original, policy);
  if (!from.allowed()) return from;
  if (!policy.same_host_redirects) {
    return Refused(StreamUrlRefusal::kRedirect,
                   "the streaming server at " + QuoteForMessage(from.address.host) +
                       " answered with a redirect, and the policy follows none");
  }
  constexpr const char* kName = "the location of the redirect";
  if (auto problem = CharacterProblem({.text = location, .name = kName})) {
    return *std::move(problem);
  }
  if (location.empty()) {
    return Refused(StreamUrlRefusal::kRedirectHost, "the redirect names no location");
  }
  const Parts reference = TakeApart(location);
  if (!IsReference(reference)) {
    return Refused(StreamUrlRefusal::kSyntax, std::string(kName) + " is not a URL (RFC 3986)");
  }
  const std::string url = Resolve(TakeApart(original), reference);
  StreamUrlCheck to = Check({.text = url, .name = kName}, policy);
  if (!to.allowed()) return to;
  if (to.address.host != from.address.host) {
    return Refused(StreamUrlRefusal::kRedirectHost,
                   std::string(kName) + " has the host " + QuoteForMessage(to.address.host) +
                       ", the streaming server has " + QuoteForMessage(from.address.host) +
                       ": redirects stay on their host");
  }
  if (IsAmbiguous(to.address.path)) {
    return Refused(StreamUrlRefusal::kRedirectHost,
                   std::string(kName) +
                       " resolves to a path that begins with '//' or has the segment '.' or '..', "
                       "of which readers make different things");
  }
  if (from.address.scheme == StreamScheme::kHttps && to.address.scheme != StreamScheme::kHttps) {
    return Refused(StreamUrlRefusal::kRedirectDowngrade,
                   std::string(kName) + " goes from https to http");
  }
  return to;
}

}  // namespace waybill
