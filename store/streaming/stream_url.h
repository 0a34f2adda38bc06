// The addresses that a container runtime names for exec, attach and port-forward, checked before
// anyone dials them. Under KEP-1558 ("Proposal") the kubelet asks the runtime for the URL of its
// streaming server and connects there itself; the kubelet dials whatever the answer says. A runtime
// that was taken over, or a mistake in its configuration, must not send the kubelet elsewhere.
//
// The functions are pure and thread-safe: no DNS, no file, no clock. Any bytes are safe. They throw
// std::bad_alloc if memory runs out, and nothing else.
//
// The path of such a URL holds the token that opens the stream. No message repeats a path, a query,
// a fragment or user information.

#ifndef WAYBILL_STORE_STREAMING_STREAM_URL_H_
#define WAYBILL_STORE_STREAMING_STREAM_URL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/values.h"

namespace waybill {

enum class StreamScheme : std::uint8_t { kHttp = 0, kHttps = 1 };

// Why an address must not be dialled. The rules are checked in this order; the first that fails is
// the reason.
enum class StreamUrlRefusal : std::uint8_t {
  // Not refused.
  kNone = 0,
  // The policy itself can't be followed: an entry of `hosts` is neither an IP address nor a host
  // name, a port is 0, or a list is too long. Nothing was checked.
  kPolicy = 1,
  // Longer than kMaxStreamUrlBytes (waybill/limits.h), by itself or resolved against the original.
  kTooLong = 2,
  // A control character, a space, a backslash, or a byte outside ASCII. Readers of URLs disagree
  // about each of them.
  kCharacter = 3,
  // Begins with "//" or with host and port: the runtime's streaming server was configured without a
  // scheme. A kubelet from 1.36 on dials the URL itself, which needs one (KEP-4006; the URLs of
  // cri-dockerd up to 0.4.4, Mirantis/cri-dockerd#569).
  kNoScheme = 4,
  // A scheme other than http and https.
  kScheme = 5,
  // http, where the policy asks for https.
  kNotHttps = 6,
  // No host: "http:/path", "http:path", "http://:80/".
  kNoHost = 7,
  // User information ("user@", also empty), which would go to the server, or hide the host.
  kUserInfo = 8,
  // An IPv6 zone ("[fe80::1%25eth0]"): it means something on one machine only.
  kZone = 9,
  // A percent-encoded byte in the host.
  kEncodedHost = 10,
  // A port that is empty, not a decimal number, 0, above 65535, or has a leading zero.
  kPort = 11,
  // Not a URL by RFC 3986 in any other way.
  kSyntax = 12,
  // A fragment, also an empty one. No client sends it.
  kFragment = 13,
  // An IP address in another form than four decimal numbers, or than an IPv6 address in brackets:
  // 127.1, 0177.0.0.1, 2130706433, 0x7f.1, [v1.x]. Resolvers take these for different addresses.
  kAddressForm = 14,
  // A host name, `localhost` too, that the policy does not list: where it leads is up to the
  // resolver.
  kHostName = 15,
  // 0.0.0.0 or ::, where the policy does not list it: what a server listens on if it listens on
  // every interface.
  kUnspecified = 16,
  // Any other IP address that is neither loopback nor on the policy's list.
  kNotAllowed = 17,
  // A port that is not on the policy's list.
  kPortNotAllowed = 18,
  // CheckStreamRedirect only: a redirect, where the policy follows none.
  kRedirect = 19,
  // CheckStreamRedirect only: a redirect to another host; or one that names no location; or one
  // that resolves to a path that begins with "//" or has the segment "." or "..": readers of URLs
  // disagree about those.
  kRedirectHost = 20,
  // CheckStreamRedirect only: a redirect from https to http.
  kRedirectDowngrade = 21,
};

inline constexpr StreamUrlRefusal kLastStreamUrlRefusal = StreamUrlRefusal::kRedirectDowngrade;

// "noScheme", "notAllowed"; empty for an unknown number.
std::string_view StreamUrlRefusalName(StreamUrlRefusal refusal);

// "http" or "https".
std::string_view StreamSchemeName(StreamScheme scheme);

// Where to connect, and what to ask for.
struct StreamAddress {
  StreamScheme scheme = StreamScheme::kHttp;
  // An IPv4 or IPv6 address without brackets in its one canonical form, or a listed name in lower
  // case. An IPv4-mapped address is its IPv4 address. Equal hosts are equal strings.
  std::string host = {};
  // Filled in where the URL has none: 80 for http, 443 for https.
  std::uint16_t port = 0;
  // The path as the URL has it, at least "/", with the query. Holds the token: do not log it.
  std::string path = {};

  bool operator==(const StreamAddress&) const = default;
};

struct [[nodiscard]] StreamUrlCheck {
  StreamUrlRefusal refusal = StreamUrlRefusal::kNone;
  // What is wrong with which part of the URL, and what to do. Empty if nothing is.
  std::string message = {};
  // Empty, with port 0, if refused.
  StreamAddress address = {};

  bool allowed() const { return refusal == StreamUrlRefusal::kNone; }
};

// Whether the kubelet, or what stands in for it, may connect to `url`, as the runtime's answer to
// Exec, Attach or PortForward names it. 127.0.0.0/8, ::1, and IPv4-mapped loopback addresses are
// loopback. Connect to `address`, not to `url`: another parser may read the URL differently.
StreamUrlCheck StreamUrlChecked(std::string_view url, const StreamUrlPolicy& policy = {});

// Whether a redirect to `location` (the header Location, absolute or relative) may be followed,
// when `original` answered with it. By default none may. With `same_host_redirects`, the location,
// resolved as in RFC 3986 section 5.2, must pass CheckStreamUrl, have the host of `original` and
// not go from https to http. The port may differ (KEP-1558, "Background": ValidateProxyRedirects
// compared the hosts). `original` must pass CheckStreamUrl as well; otherwise its refusal is the
// answer.
//
// The caller counts redirects, and passes the URL of the last answer as `original`; the API server
// gave up after 10.
StreamUrlCheck CheckStreamRedirect(std::string_view original, std::string_view location,
                                   const StreamUrlPolicy& policy);

}  // namespace waybill

#endif  // WAYBILL_STORE_STREAMING_STREAM_URL_H_
