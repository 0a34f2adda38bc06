// real_images SOCKET pull|remove IMAGE: what a kubelet does to a runtime's images, over CRI. Prints
// the ref of a pulled image. Fails, too, if the runtime's events do not tell of it.
// real_images SOCKET list: whether the runtime lists images yet.

#include <poll.h>

#include <chrono>
#include <iostream>
#include <string>

#include "cri.pb.h"
#include "runtime/cri/call.h"
#include "runtime/cri/runtime_client.h"

namespace {

constexpr std::chrono::milliseconds kPatience{60'000};

int List(const std::string& socket) {
  const auto client = waybill::cri::Client::Connect({.endpoint = socket});
  return client && (*client)->ListImages() ? 0 : 1;
}

int Change(const std::string& socket, const std::string& action, const std::string& image) {
  using namespace waybill::cri;
  ImageEvents events({.endpoint = socket});
  // An image service's requests to pull and to remove begin like this one, with the image.
  runtime::v1::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  const auto answer = Call(
      {.endpoint = socket, .timeout = kPatience},
      std::string("runtime.v1.ImageService/") + (action == "pull" ? "PullImage" : "RemoveImage"),
      request.SerializeAsString(), std::size_t{1} << 20);
  if (!answer) {
    std::cerr << answer.error().ToString() << "\n";
    return 1;
  }
  if (action == "pull") {
    // An image spec's first field is a string, as that of this answer.
    runtime::v1::ImageSpec pulled;
    if (!pulled.ParseFromString(*answer)) return 1;
    std::cout << pulled.image() << "\n";
  }
  pollfd readable = {.fd = events.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, static_cast<int>(kPatience.count())) == 1 && events.available()) {
    return 0;
  }
  std::cerr << "no event of the runtime tells of that\n";
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return List(arguments[1]);
  return count != 4 ? 2 : Change(arguments[1], arguments[2], arguments[3]);
}
