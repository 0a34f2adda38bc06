#include "cri/call.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <string_view>
#include <vector>

#include "cri/endpoint.h"
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
              service.starts_with(kContainerdServices)
                  ? "only containerd does: with another runtime go on without"
                  : "waybill needs CRI v1, as every kubelet since 1.26 does: containerd has it "
                    "from 1.6 on, unless its configuration disables the cri plugin"};
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

Error TooLarge(const std::string& path, const std::string& service, const std::string& method,
               std::size_t most) {
  return {ErrorCode::kLimitExceeded,
          "the container runtime at " + path + " answers " + service + "/" + method +
              " with more than " + std::to_string(most) + " bytes",
          "remove images that nobody needs"};
}

// By a clock that changes of the wall clock do not move.
gpr_timespec DeadlineIn(std::chrono::milliseconds timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
}

grpc::Status BytesOf(const grpc::ByteBuffer& received, std::string& bytes) {
  std::vector<grpc::Slice> slices;
  if (auto dumped = received.Dump(&slices); !dumped.ok()) return dumped;
  bytes.reserve(received.Length());
  for (const grpc::Slice& part : slices) {
    bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  return grpc::Status::OK;
}

Error NobodyWaits(const std::string& path, const std::string& method) {
  return {
      ErrorCode::kInterrupted,
      "nobody waits any more for the answer of the container runtime at " + path + " to " + method,
      ""};
}

// Waits until the next operation has ended; `ok`: how. Returns whether the call was cancelled.
bool WaitFor(grpc::CompletionQueue& done, grpc::ClientContext& context,
             const std::function<bool()>& cancelled, bool& ok) {
  constexpr std::chrono::milliseconds kAskEvery{50};
  void* tag = nullptr;
  bool was_cancelled = false;
  for (;;) {
    if (!cancelled || was_cancelled) {
      done.Next(&tag, &ok);
      return was_cancelled;
    }
    const auto next = done.AsyncNext(&tag, &ok, DeadlineIn(kAskEvery));
    if (next != grpc::CompletionQueue::TIMEOUT) return false;
    if (!cancelled()) continue;
    context.TryCancel();
    was_cancelled = true;
  }
}

}  // namespace

GrpcRuns::GrpcRuns() {
  // A failure becomes an Error; gRPC writes nothing to standard error besides.
  gpr_set_log_function([](gpr_log_func_args*) {});
  grpc_init();
}

GrpcRuns::~GrpcRuns() { grpc_shutdown_blocking(); }

Result<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& path, std::size_t most) {
  // gRPC connects to nothing by itself: no name is looked up, and no proxy used.
  auto fd = TRY(ConnectSocket(path));
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(static_cast<int>(most));
  // Compressed answers would be larger than what was received.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return grpc::CreateCustomInsecureChannelFromFd("runtime", fd, arguments);
}

Result<std::string> Call(const std::string& path, const std::string& service,
                         const std::string& method, const std::string& request, std::size_t most,
                         std::chrono::milliseconds timeout,
                         const std::function<bool()>& cancelled) {
  return internal::Guarded([&]() -> Result<std::string> {
    const GrpcRuns running;
    auto channel = TRY(OpenChannel(path, most));
    grpc::GenericStub stub(std::move(channel));
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(timeout));
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
    const bool was_cancelled = WaitFor(done, context, cancelled, ok);
    done.Shutdown();
    while (done.Next(&tag, &ok)) {
    }
    if (was_cancelled && !status.ok()) return NobodyWaits(path, method);
    if (!status.ok()) return Failed(path, service, method, status, timeout);
    std::string answer;
    if (auto dumped = BytesOf(received, answer); !dumped.ok()) {
      return Failed(path, service, method, dumped, timeout);
    }
    return answer;
  });
}

Result<void> ListOfContainerd(const std::string& path, const std::string& service, std::size_t most,
                              std::chrono::milliseconds timeout,
                              const std::function<bool()>& cancelled,
                              const std::function<Result<void>(const std::string&)>& take) {
  const std::string method = "List";
  return internal::Guarded([&]() -> Result<void> {
    const GrpcRuns running;
    auto channel = TRY(OpenChannel(path, most));
    grpc::GenericStub stub(std::move(channel));
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(timeout));
    context.AddMetadata("containerd-namespace", "k8s.io");
    grpc::CompletionQueue done;
    bool ok = false;
    bool was_cancelled = false;
    // One operation at a time. False: the call has ended.
    const auto wait = [&] {
      was_cancelled = WaitFor(done, context, cancelled, ok) || was_cancelled;
      return ok;
    };
    Result<void> taken;
    grpc::ByteBuffer received;
    std::size_t bytes = 0;
    const auto talk = [&](grpc::GenericClientAsyncReaderWriter& call) -> Result<void> {
      call.StartCall(nullptr);
      if (!wait()) return {};
      // A request without fields asks for a list of everything.
      const grpc::Slice empty;
      call.WriteLast(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions(), nullptr);
      if (!wait()) return {};
      for (;;) {
        received.Clear();
        call.Read(&received, nullptr);
        if (!wait()) return {};
        bytes += received.Length();
        if (bytes > most) return TooLarge(path, service, method, most);
        std::string message;
        if (const auto dumped = BytesOf(received, message); !dumped.ok()) {
          return Failed(path, service, method, dumped, timeout);
        }
        TRY(take(message));
      }
    };
    grpc::Status status;
    {
      auto call = stub.PrepareCall(&context, "/" + service + "/" + method, &done);
      // An exception must not leave anything under way behind.
      taken = internal::Guarded([&] { return talk(*call); });
      if (!taken) context.TryCancel();
      call->Finish(&status, nullptr);
      was_cancelled = WaitFor(done, context, cancelled, ok) || was_cancelled;
      done.Shutdown();
      void* tag = nullptr;
      while (done.Next(&tag, &ok)) {
      }
    }
    if (!taken) return taken;
    if (was_cancelled && !status.ok()) return NobodyWaits(path, method);
    if (!status.ok()) return Failed(path, service, method, status, timeout);
    return {};
  });
}

}  // namespace waybill::cri
