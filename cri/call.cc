#include "cri/call.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <vector>

#include "cri/endpoint.h"
#include "store/base/caught.h"
#include "store/base/quote.h"

namespace waybill::cri {
namespace {

std::string Seconds(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

Error Failed(const std::string& path, const std::string& service, const std::string& method,
             const grpc::Status& status, std::chrono::milliseconds timeout) {
  constexpr std::size_t kMaxShown = 500;
  const std::string runtime = "the container runtime at " + path;
  const std::string reason = internal::QuoteForMessage(status.error_message().substr(0, kMaxShown));
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ErrorCode::kUnavailable,
              runtime + " did not answer " + method + " within " + Seconds(timeout),
              "it hangs or has too much to do: look at its log, and try again"};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {ErrorCode::kInvalidArgument,
              runtime + " does not serve " + service + "/" + method + ": " + reason,
              "waybill needs CRI v1, as every kubelet since 1.26 does: containerd has it from 1.6 "
              "on, unless its configuration disables the cri plugin"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {ErrorCode::kLimitExceeded,
              runtime + " answers " + method + " with too much: " + reason,
              "remove images that nobody needs"};
    default:
      return {ErrorCode::kUnavailable, runtime + " failed at " + method + ": " + reason,
              "look at the runtime's log, and try again; a runtime that starts up serves nothing "
              "for a while"};
  }
}

// Until the call has ended; whether it was cancelled.
bool WaitFor(grpc::CompletionQueue& done, grpc::ClientContext& context,
             const std::function<bool()>& cancelled) {
  constexpr int kAskEveryMs = 50;
  void* tag = nullptr;
  bool ok = false;
  bool was_cancelled = false;
  for (;;) {
    if (!cancelled || was_cancelled) {
      done.Next(&tag, &ok);
      return was_cancelled;
    }
    const auto until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kAskEveryMs, GPR_TIMESPAN));
    if (done.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::TIMEOUT) return false;
    if (!cancelled()) continue;
    context.TryCancel();
    was_cancelled = true;
  }
}

}  // namespace

GrpcRuns::GrpcRuns() {
  // What fails becomes an Error. Nothing is written to standard error beside it.
  gpr_set_log_function([](gpr_log_func_args*) {});
  grpc_init();
}

GrpcRuns::~GrpcRuns() { grpc_shutdown_blocking(); }

Result<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& path, std::size_t most) {
  // gRPC connects to nothing by itself: no name is looked up, and no proxy used.
  auto fd = ConnectSocket(path);
  if (!fd) return fd.error();
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(static_cast<int>(most));
  // Compressed answers would be larger than what was received.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return grpc::CreateCustomInsecureChannelFromFd("runtime", *fd, arguments);
}

Result<std::string> Call(const std::string& path, const std::string& service,
                         const std::string& method, const std::string& request, std::size_t most,
                         std::chrono::milliseconds timeout,
                         const std::function<bool()>& cancelled) {
  return internal::Guarded([&]() -> Result<std::string> {
    const GrpcRuns running;
    auto channel = OpenChannel(path, most);
    if (!channel) return channel.error();
    grpc::GenericStub stub(*std::move(channel));
    grpc::ClientContext context;
    // Whatever happens to the wall clock meanwhile.
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_millis(timeout.count(), GPR_TIMESPAN)));
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    grpc::ByteBuffer received;
    grpc::Status status;
    grpc::CompletionQueue done;
    auto call = stub.PrepareUnaryCall(&context, "/" + service + "/" + method, sent, &done);
    call->StartCall();
    void* tag = nullptr;
    bool ok = false;
    call->Finish(&received, &status, &tag);
    const bool was_cancelled = WaitFor(done, context, cancelled);
    done.Shutdown();
    while (done.Next(&tag, &ok)) {
    }
    if (was_cancelled && !status.ok()) {
      return Error{ErrorCode::kInterrupted,
                   "nobody waits any more for the answer of the container "
                   "runtime at " +
                       path + " to " + method,
                   ""};
    }
    if (!status.ok()) return Failed(path, service, method, status, timeout);
    std::vector<grpc::Slice> slices;
    if (auto dumped = received.Dump(&slices); !dumped.ok()) {
      return Failed(path, service, method, dumped, timeout);
    }
    std::string answer;
    answer.reserve(received.Length());
    for (const grpc::Slice& part : slices) {
      answer.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return answer;
  });
}

}  // namespace waybill::cri
