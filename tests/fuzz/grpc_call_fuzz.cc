// What a server may send on a connection, of any bytes: no crash and no endless call, and no
// message is larger than allowed.

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/cri/grpc_call.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  constexpr std::size_t kMost = 4096;
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const internal::Fd server(ends[1]);
  const ssize_t sent = ::send(server.get(), data, size, MSG_NOSIGNAL);
  ::shutdown(server.get(), SHUT_WR);
  if (sent != static_cast<ssize_t>(size)) std::abort();
  std::size_t taken = 0;
  const auto take = [&](const std::string& message) {
    if (message.size() > kMost) std::abort();
    taken += message.size() + 5;
    return true;
  };
  const auto status = cri::Run(internal::Fd(ends[0]), {.method = "/runtime.v1.ImageService/List",
                                                       .most = kMost,
                                                       .timeout = std::chrono::hours(1),
                                                       .take = take});
  if (!status) std::abort();
  if (taken > size) std::abort();
  return 0;
}
