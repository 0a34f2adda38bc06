// What CRI's calls Exec, Attach and PortForward ask a runtime's streaming server for (KEP-1558).
// Pure, thread-safe.

#ifndef WAYBILL_STREAMING_REQUEST_H_
#define WAYBILL_STREAMING_REQUEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// The CRI call that prepared a stream.
enum class StreamKind : std::uint8_t { kExec = 1, kAttach = 2, kPortForward = 3 };
// "exec", "attach", "portforward", as in the URLs of CRI streaming servers.
std::string_view StreamKindName(StreamKind kind);
// kInvalidArgument: another text; the message lists the three.
Result<StreamKind> ParseStreamKind(std::string_view name);

// CRI's ExecRequest, AttachRequest and PortForwardRequest.
struct StreamRequest {
  StreamKind kind = StreamKind::kExec;
  std::string container_id = {};          // exec, attach
  std::string pod_sandbox_id = {};        // port-forward
  std::vector<std::string> command = {};  // exec
  bool std_in = false;                    // exec, attach; likewise below
  bool std_out = false;
  bool std_err = false;
  bool tty = false;
  std::vector<std::uint16_t> ports = {};  // port-forward

  friend bool operator==(const StreamRequest&, const StreamRequest&) = default;
};

// kInvalidArgument, by the rules of CRI's streaming server (k8s.io/cri-streaming, v0.36): the
// container ID or the pod sandbox ID is missing; tty and std_err are both set, although a terminal
// has one output; or none of std_in, std_out and std_err is set. By waybill's own rules: exec
// without a command, or with an empty first argument; a port that is 0 (no ports at all is valid:
// clients that use SPDY name them later); a field that the kind does not have; text that has a zero
// byte or, unlike CRI's, is not UTF-8. kLimitExceeded: above a bound in limits.h.
Result<void> CheckStreamRequest(const StreamRequest& request);

}  // namespace waybill

#endif  // WAYBILL_STREAMING_REQUEST_H_
