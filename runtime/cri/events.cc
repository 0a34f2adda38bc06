#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/cri/answers.h"
#include "runtime/cri/endpoint.h"
#include "runtime/cri/grpc_call.h"
#include "runtime/cri/message.h"
#include "runtime/cri/runtime_client.h"
#include "store/base/caught.h"
#include "store/base/files.h"

namespace waybill::cri {
namespace {

constexpr const char* kSubscribe = "/containerd.services.events.v1.Events/Subscribe";

// SubscribeRequest: its field 1 has filters, and an event is sent if one of them matches. What
// happened is not looked at: a list of the images says more.
std::string Request() {
  std::string request;
  for (const char* topic : {"/images/create", "/images/update", "/images/delete"}) {
    request += Field(1, "namespace==k8s.io,topic==\"" + std::string(topic) + "\"");
  }
  return request;
}

void Signal(const internal::Fd& fd) {
  const std::uint64_t one = 1;
  // It fails only after so many signals that the descriptor is readable anyway.
  (void)!::write(fd.get(), &one, sizeof(one));
}

}  // namespace

ImageEvents::ImageEvents(const ClientOptions& options)
    : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const auto path = SocketPath(options.endpoint);
  if (!fd_.valid() || !stop_.valid() || !path) return;
  const auto connected = ConnectSocket(*path);
  if (!connected) return;
  internal::Fd socket(*connected);
  GrpcCall call{.method = kSubscribe,
                .request = Request(),
                .most = kMaxAnswerBytes,
                .stop_fd = stop_.get(),
                .take = [this](const std::string&) {
                  Signal(fd_);
                  return true;
                }};
  available_ = true;
  thread_ = std::thread([this, call = std::move(call), socket = std::move(socket)]() mutable {
    const auto status = internal::Guarded(
        [&]() -> Result<std::optional<GrpcStatus>> { return Run(std::move(socket), call); });
    available_ = false;
    const bool serves = !status || !*status || (*status)->code != GrpcStatus::kUnimplemented;
    if (serves) Signal(fd_);
  });
}

ImageEvents::~ImageEvents() {
  Signal(stop_);
  if (thread_.joinable()) thread_.join();
}

bool ImageEvents::Drain() {
  eventfd_t count = 0;
  return ::eventfd_read(fd(), &count) == 0;
}

}  // namespace waybill::cri
