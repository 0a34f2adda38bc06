#include <errno.h>
#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "containerd_events.grpc.pb.h"
#include "cri/answers.h"
#include "cri/call.h"
#include "cri/endpoint.h"
#include "cri/runtime_client.h"

namespace waybill::cri {

namespace events = containerd::services::events::v1;

class ImageEvents::Stream final : public grpc::ClientReadReactor<events::Envelope> {
 public:
  Stream() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~Stream() override {
    if (stub_) {
      context_.TryCancel();
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return done_; });
    }
    if (fd_ >= 0) ::close(fd_);
  }

  void Begin(const ClientOptions& options) {
    if (fd_ < 0) return;
    auto path = SocketPath(options.endpoint);
    if (options.endpoint.empty()) {
      auto client = Client::Connect(options);
      if (!client) return;
      path = SocketPath((*client)->endpoint());
    }
    if (!path) return;
    auto channel = OpenChannel(*path, kMaxAnswerBytes);
    if (!channel) return;
    stub_ = events::Events::NewStub(*std::move(channel));
    for (const char* topic : {"/images/create", "/images/update", "/images/delete"}) {
      request_.add_filters("namespace==k8s.io,topic==\"" + std::string(topic) + "\"");
    }
    available_ = true;
    stub_->async()->Subscribe(&context_, &request_, this);
    StartRead(&envelope_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    Signal();
    StartRead(&envelope_);
  }

  void OnDone(const grpc::Status& status) override {
    available_ = false;
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) Signal();
    const std::lock_guard lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

  int fd() const { return fd_; }
  bool available() const { return available_; }

 private:
  void Signal() const {
    const std::uint64_t one = 1;
    // It fails only after so many signals that the descriptor is readable anyway.
    (void)!::write(fd_, &one, sizeof(one));
  }

  const GrpcRuns running_;
  const int fd_;
  std::unique_ptr<events::Events::Stub> stub_;
  grpc::ClientContext context_;
  events::SubscribeRequest request_;
  events::Envelope envelope_;
  std::atomic<bool> available_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
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
