#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
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

class ImageEvents::Stream {
 public:
  Stream()
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Stream() {
    Signal(stop_);
    if (thread_.joinable()) thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Begin(const ClientOptions& options) {
    if (!fd_.valid() || !stop_.valid()) return;
    auto path = SocketPath(options.endpoint);
    if (options.endpoint.empty()) {
      auto client = Client::Connect(options);
      if (!client) return;
      path = SocketPath((*client)->endpoint());
    }
    if (!path) return;
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

  int fd() const { return fd_.get(); }
  bool available() const { return available_; }

 private:
  const internal::Fd fd_;
  const internal::Fd stop_;
  std::atomic<bool> available_ = false;
  std::thread thread_;
};

ImageEvents::ImageEvents(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
ImageEvents::~ImageEvents() = default;

std::unique_ptr<ImageEvents> ImageEvents::Watch(const ClientOptions& options) {
  auto stream = std::make_unique<Stream>();
  stream->Begin(options);
  return std::unique_ptr<ImageEvents>(new ImageEvents(std::move(stream)));
}

int ImageEvents::fd() const { return stream_->fd(); }

void ImageEvents::Drain() {
  std::uint64_t count = 0;
  while (::read(stream_->fd(), &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

bool ImageEvents::available() const { return stream_->available(); }

}  // namespace waybill::cri
