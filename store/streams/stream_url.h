// The addresses that a container runtime names for exec, attach and port-forward, checked before
// anyone dials them. Under KEP-1558 ("Proposal") the kubelet asks the runtime for the URL of its
// streaming server and connects there itself; the kubelet dials whatever the answer says. A runtime
// that was taken over, or a mistake in its configuration, must not send the kubelet elsewhere.

#ifndef WAYBILL_STORE_STREAMS_STREAM_URL_H_
#define WAYBILL_STORE_STREAMS_STREAM_URL_H_

#include "waybill/calls.h"

namespace waybill {

// What CheckStreamUrl answers; the words of its refusals are in stream_url.cc. Of what is refused
// only `refusal` and `message` are set; no message repeats a path, a query, a fragment or user
// information, since the path holds the token that opens the stream. Connect to what is answered,
// not to the URL: another parser may read that differently. Equal hosts are equal strings: an
// address in its one canonical form, an IPv4-mapped one as IPv4, or a listed name in lower case.
//
// A redirect may be followed if the policy allows it, the location, resolved as in RFC 3986 section
// 5.2, passes the check, has the host of `redirect_from`, and does not go from https to http. The
// port may differ (KEP-1558, "Background": ValidateProxyRedirects compared the hosts). The caller
// counts redirects, and passes the URL of the last answer; the API server gave up after 10.
//
// Pure and thread-safe: no DNS, no file, no clock. Any bytes are safe. Throws std::bad_alloc if
// memory runs out, and nothing else.
CheckStreamUrl::Answer JudgeStreamUrl(const CheckStreamUrl& call);

}  // namespace waybill

#endif  // WAYBILL_STORE_STREAMS_STREAM_URL_H_
