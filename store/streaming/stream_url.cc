// Two readers must agree on every URL: RFC 3986's grammar by uriparser, and the split below, which
// looks for nothing but the ends of scheme, authority, host and port. What only one of them accepts
// is refused.

#include "waybill/stream_url.h"

#include <arpa/inet.h>
#include <uriparser/Uri.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/names.h"
#include "store/base/quote.h"
#include "waybill/limits.h"

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

// Where the parts of a URL end, as views into it.
struct Split {
  std::string_view scheme;
  std::string_view authority;
  std::string_view host;  // with the brackets of an IPv6 address
  std::optional<std::string_view> port;
  std::string_view path;  // with query and fragment
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

// Fills `into`, or says why not.
std::optional<StreamUrlCheck> SplitUrl(const Subject& url, const StreamUrlPolicy& policy,
                                       Split& into) {
  const std::string name = url.name;
  into.scheme = SchemeOf(url.text);
  const std::string scheme = ToLower(into.scheme);
  if (scheme != "http" && scheme != "https") {
    if (scheme.empty() || BeginsWithHostAndPort(url.text)) return NoScheme(url);
    return Refused(StreamUrlRefusal::kScheme, name + " has the scheme " +
                                                  QuoteForMessage(into.scheme) +
                                                  ": streams go over http or https");
  }
  if (policy.require_https && scheme != "https") {
    return Refused(StreamUrlRefusal::kNotHttps,
                   name + " has the scheme http, but the policy asks for https");
  }
  std::string_view rest = url.text.substr(into.scheme.size() + 1);
  const bool has_authority = rest.starts_with("//");
  if (has_authority) rest.remove_prefix(2);
  into.authority = has_authority ? UpToPath(rest) : std::string_view();
  into.path = rest.substr(into.authority.size());
  if (into.authority.find('@') != std::string_view::npos) {
    return Refused(StreamUrlRefusal::kUserInfo, name +
                                                    " has user information ('@' before the path): "
                                                    "the streaming server needs none");
  }
  if (into.authority.empty() || into.authority.front() == ':') {
    return Refused(StreamUrlRefusal::kNoHost, name +
                                                  " has no host: give the runtime's streaming "
                                                  "server a loopback address, such as 127.0.0.1");
  }
  std::size_t host_end = into.authority.find(':');
  if (into.authority.front() == '[') {
    host_end = into.authority.find(']');
    if (host_end != std::string_view::npos) ++host_end;
  }
  into.host = into.authority.substr(0, host_end);
  if (into.host.find('%') != std::string_view::npos) {
    if (into.host.front() == '[') {
      return Refused(StreamUrlRefusal::kZone,
                     name + " has the host " + QuoteForMessage(into.host) +
                         " with a zone: an address that depends on the interface is not loopback");
    }
    return Refused(
        StreamUrlRefusal::kEncodedHost,
        name + " has the host " + QuoteForMessage(into.host) + " with a percent-encoded byte");
  }
  const std::string_view after_host = into.authority.substr(into.host.size());
  if (after_host.starts_with(':')) {
    into.port = after_host.substr(1);
  } else if (!after_host.empty()) {
    return Refused(StreamUrlRefusal::kSyntax,
                   name + " has text after the brackets of its host " + QuoteForMessage(into.host));
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

// What uriparser makes of a URL, as views into it. Its recursion is bounded by kMaxStreamUrlBytes.
class Uri {
 public:
  Uri() = default;
  ~Uri() { uriFreeUriMembersA(&uri_); }
  Uri(const Uri&) = delete;
  Uri& operator=(const Uri&) = delete;

  // False: not a URI reference of RFC 3986.
  bool Parse(std::string_view text) {
    return Succeeded(uriParseSingleUriExA(&uri_, text.data(), text.data() + text.size(), nullptr));
  }
  // RFC 3986, section 5.2.
  bool Resolve(const Uri& reference, const Uri& base) {
    return Succeeded(uriAddBaseUriA(&uri_, &reference.uri_, &base.uri_));
  }
  std::optional<std::string> ToString() const {
    int length = 0;
    if (!Succeeded(uriToStringCharsRequiredA(&uri_, &length)) || length < 0) return {};
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    int written = 0;
    if (!Succeeded(uriToStringA(text.data(), &uri_, length + 1, &written))) return {};
    text.resize(std::strlen(text.c_str()));
    return text;
  }

  std::string_view scheme() const { return View(uri_.scheme); }
  std::string_view host() const { return View(uri_.hostText); }
  std::string_view port() const { return View(uri_.portText); }
  bool has_port() const { return uri_.portText.first != nullptr; }
  bool has_user() const { return uri_.userInfo.first != nullptr; }
  bool has_fragment() const { return uri_.fragment.first != nullptr; }
  bool is_name() const {
    const auto& data = uri_.hostData;
    return data.ip4 == nullptr && data.ip6 == nullptr && data.ipFuture.first == nullptr;
  }
  // Whether it read the very same address.
  bool Is(const Address& address) const {
    if (uri_.hostData.ip4 != nullptr) {
      return IsMapped(address) && std::memcmp(uri_.hostData.ip4->data, &address[12], 4) == 0;
    }
    return uri_.hostData.ip6 != nullptr &&
           std::memcmp(uri_.hostData.ip6->data, address.data(), address.size()) == 0;
  }

 private:
  static bool Succeeded(int code) {
    if (code == URI_ERROR_MALLOC) throw std::bad_alloc();
    return code == URI_SUCCESS;
  }
  static std::string_view View(const UriTextRangeA& range) {
    if (range.first == nullptr) return {};
    return {range.first, static_cast<std::size_t>(range.afterLast - range.first)};
  }

  UriUriA uri_{};
};

std::optional<StreamUrlCheck> HostProblem(const std::string& name, const Uri& uri,
                                          const StreamUrlPolicy& policy, std::string& host) {
  const std::string shown = QuoteForMessage(uri.host());
  if (uri.is_name()) {
    host = ToLower(uri.host());
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
  const auto address = ReadAddress(uri.host());
  if (!address || !uri.Is(*address)) {
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

// After resolving, a path that begins with "//", or still has the segment "." or "..": the latter
// if only the query was replaced, or where uriparser writes "//" as "/.//".
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
  Split split;
  if (auto problem = SplitUrl(url, policy, split)) return *std::move(problem);

  StreamAddress address;
  address.scheme = split.scheme.size() == 5 ? StreamScheme::kHttps : StreamScheme::kHttp;
  address.port = address.scheme == StreamScheme::kHttps ? 443 : 80;
  if (split.port) {
    address.port = ReadPort(*split.port);
    if (address.port == 0) {
      return Refused(StreamUrlRefusal::kPort, name + " has the port " +
                                                  QuoteForMessage(*split.port) +
                                                  ", not a number from 1 to 65535 (an IPv6 address "
                                                  "needs brackets)");
    }
  }

  Uri uri;
  std::string_view bare_host = split.host;
  if (bare_host.starts_with('[') && bare_host.ends_with(']')) {
    bare_host = bare_host.substr(1, bare_host.size() - 2);
  }
  if (!uri.Parse(url.text) || uri.has_user() || uri.scheme() != split.scheme ||
      uri.host() != bare_host || uri.has_port() != split.port.has_value() ||
      uri.port() != split.port.value_or("")) {
    return Refused(StreamUrlRefusal::kSyntax,
                   name +
                       " is not a URL (RFC 3986): a character stands where it may not, in its "
                       "host, path or query");
  }
  if (uri.has_fragment()) {
    return Refused(StreamUrlRefusal::kFragment,
                   name + " has a fragment ('#'), which no client sends");
  }
  if (auto problem = HostProblem(name, uri, policy, address.host)) return *std::move(problem);
  if (!policy.ports.empty() &&
      std::find(policy.ports.begin(), policy.ports.end(), address.port) == policy.ports.end()) {
    return Refused(StreamUrlRefusal::kPortNotAllowed, name + " has the port " +
                                                          std::to_string(address.port) +
                                                          ", which the policy does not list");
  }
  if (!split.path.starts_with('/')) address.path = "/";
  address.path += split.path;
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

StreamUrlCheck CheckStreamUrl(std::string_view url, const StreamUrlPolicy& policy) {
  return Check({.text = url, .name = "the streaming server's URL"}, policy);
}

StreamUrlCheck CheckStreamRedirect(std::string_view original, std::string_view location,
                                   const StreamUrlPolicy& policy) {
  StreamUrlCheck from = CheckStreamUrl(original, policy);
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
  Uri base;
  Uri reference;
  Uri resolved;
  std::optional<std::string> url;
  if (base.Parse(original) && reference.Parse(location) && resolved.Resolve(reference, base)) {
    url = resolved.ToString();
  }
  if (!url) {
    return Refused(StreamUrlRefusal::kSyntax, std::string(kName) + " is not a URL (RFC 3986)");
  }
  StreamUrlCheck to = Check({.text = *url, .name = kName}, policy);
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
