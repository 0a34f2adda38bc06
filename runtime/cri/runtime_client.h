// Asks a container runtime over CRI v1, and is told when its images change.

#ifndef WAYBILL_RUNTIME_CRI_RUNTIME_CLIENT_H_
#define WAYBILL_RUNTIME_CRI_RUNTIME_CLIENT_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cri/runtime.h"
#include "store/base/files.h"

namespace waybill::cri {

struct ClientOptions {
  // unix:///path or /path. Empty: the one of kUsualSockets at which a runtime answers. Only unix
  // sockets: CRI knows no authentication.
  std::string endpoint = {};
  std::chrono::milliseconds timeout{10'000};  // of one call
  // Asked now and then by the calling thread while a call waits: true ends the call (kInterrupted).
  // Missing: never.
  std::function<bool()> cancelled = {};
};

// Where crictl looks for a runtime, in its order.
inline constexpr const char* kUsualSockets[] = {"/run/containerd/containerd.sock",
                                                "/run/crio/crio.sock", "/var/run/cri-dockerd.sock"};

// Thread-safe. Each call makes a connection of its own, so a runtime may restart in between.
class Client final : public Runtime {
 public:
  // Asks for the version once. Errors as of Runtime, and: kInvalidArgument: the endpoint is not a
  // unix socket, or none is named and several runtimes answer. kIo: it may not be opened.
  static Result<std::unique_ptr<Client>> Connect(const ClientOptions& options);

  // If the runtime is a containerd that is known to tell (1.6 or newer), each image that is proven
  // imported is marked (Containerd::Imported); if it can't be asked just then, none is.
  Result<std::vector<ListedImage>> ListImages() override;
  Result<std::string> Status() override;
  // For ReadRuntimePulls: also the configuration file that containerd's command line names, if that
  // can be seen from here.
  Result<RuntimeAnswers> Answers();

  // unix:///run/containerd/containerd.sock
  std::string endpoint() const { return "unix://" + options_.endpoint; }
  // containerd v2.4.2
  const std::string& runtime() const { return runtime_; }

 private:
  // The endpoint is a path.
  explicit Client(ClientOptions options) : options_(std::move(options)) {}
  // What `decode` reads in the answer to a call.
  template <typename T>
  Result<T> Ask(const std::string& method, const std::string& request, std::size_t most,
                Result<T> (*decode)(const std::string& answer)) const;
  Result<void> AskVersion();

  ClientOptions options_;
  std::string runtime_;
};

// Says that images changed, by containerd's event service on the same socket: images of the
// kubelet's namespace that are created, updated or deleted. An event may come shortly before
// ListImages shows its image.
class ImageEvents {
 public:
  // Returns at once, also where nothing can be watched. Watches in a thread. `options` have an
  // endpoint.
  explicit ImageEvents(const ClientOptions& options);
  ~ImageEvents();
  ImageEvents(const ImageEvents&) = delete;
  ImageEvents& operator=(const ImageEvents&) = delete;

  // Readable after an event, and once the stream broke, when events may be missing. Never readable
  // if the runtime has no such service. -1: no descriptor was left.
  int fd() const { return fd_.get(); }
  // Makes fd() unreadable until the next event.
  // Returns whether there was one.
  bool Drain();
  // Whether the stream works, as far as is known: a runtime without the service says so some time
  // later. Once false it stays false; watch anew.
  bool available() const { return available_; }

 private:
  const internal::Fd fd_;
  const internal::Fd stop_;
  std::atomic<bool> available_ = false;
  std::thread thread_;
};

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_RUNTIME_CLIENT_H_
