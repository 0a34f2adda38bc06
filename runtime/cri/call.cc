#include "runtime/cri/call.h"

#include <optional>
#include <string_view>
#include <utility>

#include "runtime/cri/endpoint.h"
#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

std::string Seconds(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

Error Failed(const std::string& runtime, const GrpcStatus& status, const GrpcCall& call) {
  constexpr std::size_t kMaxShown = 500;
  const std::string reason = internal::QuoteForMessage(status.message.substr(0, kMaxShown));
  const std::string method = call.method.substr(call.method.rfind('/') + 1);
  switch (status.code) {
    case GrpcStatus::kDeadlineExceeded:
      return {ErrorCode::kUnavailable,
              runtime + " did not answer " + method + " within " + Seconds(*call.timeout),
              "it hangs or has too much to do: look at its log, and try again"};
    case GrpcStatus::kUnimplemented:
      return {ErrorCode::kInvalidArgument,
              runtime + " does not serve " + call.method.substr(1) + ": " + reason,
              call.method.starts_with("/containerd.")
                  ? "only containerd does: with another runtime go on without"
                  : "waybill needs CRI v1, as every kubelet since 1.26 does: containerd has it "
                    "from 1.6 on, unless its configuration disables the cri plugin"};
    case GrpcStatus::kResourceExhausted:
      return {ErrorCode::kLimitExceeded,
              runtime + " answers " + method + " with too much: " + reason,
              "remove images that nobody needs"};
    default:
      return {ErrorCode::kUnavailable, runtime + " failed at " + method + ": " + reason,
              "look at the runtime's log, and try again; a runtime that starts up serves nothing "
              "for a while"};
  }
}

}  // namespace

Result<void> Ask(const ClientOptions& whom, GrpcCall call) {
  const auto path = TRY(SocketPath(whom.endpoint));
  const std::string runtime = "the container runtime at " + path;
  call.timeout = whom.timeout;
  call.cancelled = whom.cancelled;
  bool taken = true;
  call.take = [&, take = std::move(call.take)](std::string message) {
    return taken = take(std::move(message));
  };
  internal::Fd socket(TRY(ConnectSocket(path)));
  const auto status = Run(std::move(socket), call);
  if (!taken) return {};
  if (!status) {
    return Error{
        ErrorCode::kInterrupted,
        "nobody waits any more for the answer of " + runtime + " to " + call.method.substr(1), ""};
  }
  if (status->code == GrpcStatus::kOk) return {};
  return Failed(runtime, *status, call);
}

Result<std::string> Call(const ClientOptions& whom, const std::string& method,
                         const std::string& request, std::size_t most) {
  return internal::Guarded([&]() -> Result<std::string> {
    std::optional<std::string> answer;
    int answers = 0;
    const auto take = [&](std::string message) {
      answer = std::move(message);
      return ++answers == 1;
    };
    TRY(Ask(whom, {.method = "/" + method, .request = request, .most = most, .take = take}));
    if (answers == 1) return *std::move(answer);
    return Error{ErrorCode::kUnavailable,
                 "the container runtime at " + whom.endpoint + " failed at " + method +
                     (answer ? ": there are two answers" : ": there is no answer"),
                 "look at the runtime's log, and try again"};
  });
}

}  // namespace waybill::cri
