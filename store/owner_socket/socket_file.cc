#include "store/owner_socket/socket_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr mode_t kOnlyTheOwner = S_IRUSR | S_IWUSR;

// The address of owner.sock. sun_path has 108 bytes; beyond that the address leads through the open
// directory, which must stay open while it is used.
struct Address {
  sockaddr_un name{};
  Fd directory;
};

Result<Address> AddressIn(const std::filesystem::path& directory) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::string path = (directory / kSocketName).string();
  if (path.size() >= sizeof(address.name.sun_path)) {
    address.directory = Fd(open(WithoutTrailingSlashes(directory).c_str(),
                                O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!address.directory.valid()) return SystemError(errno, "open directory", directory);
    const std::string through = "/proc/self/fd/" + std::to_string(address.directory.get());
    if (access(through.c_str(), F_OK) != 0) {
      return Error{
          ErrorCode::kLimitExceeded,
          "the path " + path +
              " is too long for a socket, and there is no /proc to go "
              "through; nothing was changed",
          "mount /proc, or move the store to a path of at most " +
              std::to_string(sizeof(address.name.sun_path) - 1 - 1 - std::strlen(kSocketName)) +
              " bytes"};
    }
    path = through + "/" + kSocketName;
  }
  std::memcpy(address.name.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Fd> MakeSocket(const std::filesystem::path& path) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError(errno, "make a socket for", path);
  return fd;
}

const sockaddr* AsSockaddr(const sockaddr_un& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

// What is under the name. False: nothing. kUnsafePath: not a socket of this user's.
Answer IsOurs(const std::filesystem::path& path) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return false;
    return SystemError(errno, "look at", path);
  }
  if (!S_ISSOCK(st.st_mode)) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is not a socket; it was left alone",
                 "find out who put it there, and move it away"};
  }
  if (st.st_uid == geteuid()) return true;
  return Error{ErrorCode::kUnsafePath,
               path.string() + " belongs to user " + std::to_string(st.st_uid) + ", not to user " +
                   std::to_string(geteuid()) + " who runs this; it was left alone",
               "find out who put it there, and move it away"};
}

Error NobodyServes(const std::filesystem::path& directory) {
  return {ErrorCode::kNotFound,
          "no owner of " + directory.string() + " serves " + kSocketName + "; nothing was changed",
          "start the owner with Store::Serve"};
}

}  // namespace

Result<ListeningSocket> ListeningSocket::Bind(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kSocketName;
  TRY(CheckPrivateDirectory(directory));
  if (TRY(IsOurs(path))) TRY(RemoveFile(path));
  auto fd = TRY(MakeSocket(path));
  // Before it has a name: nobody else may open it, not even for a moment.
  if (fchmod(fd.get(), kOnlyTheOwner) != 0) return SystemError(errno, "chmod", path);
  auto address = TRY(AddressIn(directory));
  if (bind(fd.get(), AsSockaddr(address.name), sizeof(address.name)) != 0) {
    return SystemError(errno, "bind", path);
  }
  auto id = TRY(FileIdOf(path));
  return ListeningSocket(std::move(fd), path, id);
}

void ListeningSocket::Remove() {
  if (!fd_.valid()) return;
  const auto named = FileIdOf(path_);
  if (named && *named == id_) unlink(path_.c_str());
  fd_.Reset();
}

Result<Fd> ConnectToOwner(const std::filesystem::path& directory,
                          std::chrono::milliseconds patience) {
  const std::filesystem::path path = directory / kSocketName;
  TRY(CheckPrivateDirectory(directory));
  if (!TRY(IsOurs(path))) return NobodyServes(directory);
  auto address = TRY(AddressIn(directory));
  auto fd = MakeSocket(path);
  if (!fd) return fd.error();
  // It blocks while it connects, so that it waits for room in the queue.
  const int flags = fcntl(fd->get(), F_GETFL);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(patience - whole);
  const timeval limit{whole.count(), rest.count()};
  if (flags < 0 || fcntl(fd->get(), F_SETFL, flags & ~O_NONBLOCK) != 0 ||
      setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) {
    return SystemError(errno, "set options of", path);
  }
  int connected = -1;
  do {
    connected = connect(fd->get(), AsSockaddr(address.name), sizeof(address.name));
  } while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) return NobodyServes(directory);
    if (errno == EAGAIN) {
      return Error{ErrorCode::kUnavailable,
                   "the owner of " + directory.string() +
                       " has too many clients waiting; nothing was changed",
                   "try again"};
    }
    return SystemError(errno, "connect to", path);
  }
  if (fcntl(fd->get(), F_SETFL, flags) != 0) return SystemError(errno, "set options of", path);
  const auto peer = PeerOf(*fd);
  if (!peer) return SystemError(errno, "find out who serves", path);
  if (!MayTalk(*peer)) {
    return Error{ErrorCode::kUnsafePath,
                 path.string() + " is served by user " + std::to_string(peer->user) +
                     ", neither root nor user " + std::to_string(geteuid()) +
                     "; nothing was sent to it",
                 "find out who that is"};
  }
  return fd;
}

Ready WaitFor(const Fd& socket, short events, std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Ready::kTooLong;
    pollfd polled{socket.get(), events, 0};
    const int n = poll(&polled, 1, static_cast<int>(left.count()));
    if (n > 0) return Ready::kYes;
    if (n < 0 && errno != EINTR) return Ready::kFailed;
  }
}

std::optional<Peer> PeerOf(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return std::nullopt;
  }
  return Peer{credentials.uid, credentials.pid};
}

bool MayTalk(const Peer& peer) { return peer.user == 0 || peer.user == geteuid(); }

}  // namespace waybill::internal
