#include "runtime/cri/call.h"

#include <optional>
#include <string_view>
#include <utility>

#include "runtime/cri/endpoint.h"
#include "runtime/cri/grpc_call.h"
#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

constexpr std::string_view kContainerdServices = "containerd.";

std::string Seconds(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

Error Failed(const std::string& path, const std::string& service, const std::string& method,
             const GrpcStatus& status, std::chrono::milliseconds timeout) {
  constexpr std::size_t kMaxShown = 500;
  const std::string runtime = "the container runtime at " + path;
  const std::string reason = internal::QuoteForMessage(status.message.substr(0, kMaxShown));
  switch (status.code) {
    case GrpcStatus::kDeadlineExceeded:
      return {ErrorCode::kUnavailable,
              runtime + " did not answer " + method + " within " + Seconds(timeout),
              "it hangs or has too much to do: look at its log, and try again"};
    case GrpcStatus::kUnimplemented:
      return {ErrorCode::kInvalidArgument,
              runtime + " does not serve " + service + "/" + method + ": " + reason,
              service.starts_with(kContainerdServices)
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

Error TooLarge(const std::string& path, const std::string& service, const std::string& method,
               std::size_t most) {
  return {ErrorCode::kLimitExceeded,
          "the container runtime at " + path + " answers " + service + "/" + method +
              " with more than " + std::to_string(most) + " bytes",
          "remove images that nobody needs"};
}

Error NobodyWaits(const std::string& path, const std::string& method) {
  return {
      ErrorCode::kInterrupted,
      "nobody waits any more for the answer of the container runtime at " + path + " to " + method,
      ""};
}

}  // namespace

Result<std::string> Call(const std::string& path, const std::string& service,
                         const std::string& method, const std::string& request, std::size_t most,
                         std::chrono::milliseconds timeout,
                         const std::function<bool()>& cancelled) {
  return internal::Guarded([&]() -> Result<std::string> {
    std::optional<std::string> answer;
    bool is_one = true;
    const auto take = [&](std::string message) {
      is_one = !answer;
      answer = std::move(message);
      return is_one;
    };
    internal::Fd socket(TRY(ConnectSocket(path)));
    auto status = Run(std::move(socket), {.method = "/" + service + "/" + method,
                                          .request = request,
                                          .most = most,
                                          .timeout = timeout,
                                          .cancelled = cancelled,
                                          .take = take});
    if (is_one && !status) return NobodyWaits(path, method);
    if (!is_one || (status->code == GrpcStatus::kOk && !answer)) {
      status = {GrpcStatus::kInternal, is_one ? "there is no answer" : "there are two answers"};
    }
    if (status->code != GrpcStatus::kOk) return Failed(path, service, method, *status, timeout);
    return *std::move(answer);
  });
}

Result<void> ListOfContainerd(const std::string& path, const std::string& service, std::size_t most,
                              std::chrono::milliseconds timeout,
                              const std::function<bool()>& cancelled,
                              const std::function<Result<void>(const std::string&)>& take) {
  const std::string method = "List";
  return internal::Guarded([&]() -> Result<void> {
    Result<void> taken;
    std::size_t bytes = 0;
    const auto take_all = [&](const std::string& message) {
      bytes += message.size();
      taken = bytes > most ? TooLarge(path, service, method, most) : take(message);
      return taken.has_value();
    };
    // A request without fields asks for a list of everything.
    internal::Fd socket(TRY(ConnectSocket(path)));
    const auto status = Run(std::move(socket), {.method = "/" + service + "/" + method,
                                                .containerd_namespace = "k8s.io",
                                                .most = most,
                                                .timeout = timeout,
                                                .cancelled = cancelled,
                                                .take = take_all});
    if (!taken) return taken;
    if (!status) return NobodyWaits(path, method);
    if (status->code == GrpcStatus::kOk) return {};
    return Failed(path, service, method, *status, timeout);
  });
}

}  // namespace waybill::cri
