#include "runtime/cri/endpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "store/base/files.h"
#include "store/base/quote.h"

namespace waybill::cri {
namespace {

constexpr std::string_view kForm =
    "give the endpoint that the kubelet uses, such as unix:///run/containerd/containerd.sock";

Error BadEndpoint(const std::string& endpoint, std::string_view why) {
  return {ErrorCode::kInvalidArgument,
          "the runtime's endpoint " + internal::QuoteForMessage(endpoint) + " " + std::string(why),
          std::string(kForm)};
}

Error NotConnected(const std::string& path, int error) {
  const std::string place = "the container runtime's socket " + path;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::kUnavailable, place + " is not there",
              "check that the runtime runs, and that this is the endpoint that the kubelet uses "
              "(containerRuntimeEndpoint of its configuration)"};
    case ECONNREFUSED:
      return {ErrorCode::kUnavailable, "nobody listens on " + place,
              "the runtime stopped or is still starting: check that it runs (systemctl status "
              "containerd)"};
    case EAGAIN:
      return {ErrorCode::kUnavailable, place + " takes no more connections: the runtime hangs",
              "look at the runtime's log; restart it if it stays so"};
    case EACCES:
    case EPERM:
      return {ErrorCode::kIo, place + " may not be opened: " + ::strerror(error),
              "run it as root, to whom the socket belongs"};
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM: {
      // Whatever the endpoint is.
      Error lacks = internal::SystemError(error, "open", path);
      lacks.message = place + " could not be opened: " + ::strerror(error);
      return lacks;
    }
    default:
      return {ErrorCode::kIo, place + " could not be opened: " + ::strerror(error),
              std::string(kForm)};
  }
}

}  // namespace

Result<std::string> SocketPath(const std::string& endpoint) {
  constexpr std::string_view kScheme = "unix:";
  std::string_view path = endpoint;
  if (path.starts_with(kScheme)) {
    path.remove_prefix(kScheme.size());
    if (path.starts_with("//")) path.remove_prefix(2);
  } else if (path.find("://") != std::string_view::npos) {
    return BadEndpoint(endpoint,
                       "is not a unix socket; CRI knows no authentication, so anybody could answer "
                       "elsewhere");
  }
  if (!path.starts_with('/')) return BadEndpoint(endpoint, "has no absolute path");
  if (path.find('\0') != std::string_view::npos) return BadEndpoint(endpoint, "has a zero byte");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return BadEndpoint(endpoint, "is longer than the path of a unix socket may be (" +
                                     std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes)");
  }
  return std::string(path);
}

Result<int> ConnectSocket(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return NotConnected(path, errno);
  if (!S_ISSOCK(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, path + " is not a socket", std::string(kForm)};
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return NotConnected(path, errno);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  // The kernel's interface.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd, generic, sizeof(address)) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return NotConnected(path, error);
}

}  // namespace waybill::cri
