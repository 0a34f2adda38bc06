// The raw ends of an owner's socket, for clients and owners that misbehave.

#ifndef WAYBILL_TESTS_SUPPORT_OWNER_SOCKET_H_
#define WAYBILL_TESTS_SUPPORT_OWNER_SOCKET_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/control/frame.h"

namespace waybill::testing {

inline sockaddr_un SocketAddress(const std::filesystem::path& directory) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = (directory / "owner.sock").string();
  if (path.size() >= sizeof(name.sun_path)) throw std::runtime_error("the path is too long");
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  return name;
}

inline internal::Fd RawSocket() {
  internal::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) throw std::runtime_error("socket failed");
  return fd;
}

// A client that says what it is told to.
class RawClient {
 public:
  explicit RawClient(const std::filesystem::path& directory) : fd_(RawSocket()) {
    const sockaddr_un name = SocketAddress(directory);
    connected_ = connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }

  bool connected() const { return connected_; }
  // False: the owner closed the connection meanwhile.
  bool Send(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  void SendRequest(std::span<const std::uint8_t> message) {
    Send(internal::Framed(internal::FrameKind::kRequest, message));
  }
  // The message of the next frame; empty: there is none.
  internal::Bytes Frame(internal::FrameKind* kind = nullptr) {
    std::array<std::uint8_t, internal::kFrameHeaderBytes> bytes{};
    if (!Fill(bytes)) return {};
    const internal::FrameHeader header = internal::ReadFrameHeader(bytes);
    if (header.is != internal::FrameIs::kSound) return {};
    if (kind != nullptr) *kind = header.kind;
    internal::Bytes message(header.length);
    return Fill(message) ? message : internal::Bytes();
  }
  // Whether the owner closes the connection, without a word more.
  bool AtEnd() {
    std::uint8_t byte = 0;
    return recv(fd_.get(), &byte, 1, 0) <= 0;
  }
  void Close() { fd_.Reset(); }
  // Sends no more, and waits until the owner has closed the connection, which counts until then.
  void End() {
    shutdown(fd_.get(), SHUT_WR);
    while (!AtEnd()) {
    }
  }

 private:
  bool Fill(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

  internal::Fd fd_;
  bool connected_ = false;
};

// Takes the place of an owner: `meet` gets the descriptor of each connection, one after the other.
class RawOwner {
 public:
  RawOwner(const std::filesystem::path& directory, std::function<void(int)> meet)
      : fd_(RawSocket()), meet_(std::move(meet)) {
    const sockaddr_un name = SocketAddress(directory);
    unlink(name.sun_path);
    if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
        listen(fd_.get(), 8) != 0) {
      throw std::runtime_error("cannot listen");
    }
    thread_ = std::thread([this] {
      for (;;) {
        const internal::Fd client(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client.valid()) return;
        meet_(client.get());
      }
    });
  }
  ~RawOwner() {
    shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  RawOwner(const RawOwner&) = delete;
  RawOwner& operator=(const RawOwner&) = delete;

  static void Say(int client, std::span<const std::uint8_t> bytes) {
    static_cast<void>(!send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // Reads a whole request.
  static internal::Bytes Hear(int client) {
    std::array<std::uint8_t, internal::kFrameHeaderBytes> bytes{};
    if (recv(client, bytes.data(), bytes.size(), MSG_WAITALL) <= 0) return {};
    internal::Bytes message(internal::ReadFrameHeader(bytes).length);
    if (recv(client, message.data(), message.size(), MSG_WAITALL) <= 0) return {};
    return message;
  }
  // Until the client goes.
  static void WaitForEnd(int client) {
    std::uint8_t byte = 0;
    while (recv(client, &byte, 1, 0) > 0) {
    }
  }

 private:
  internal::Fd fd_;
  std::function<void(int)> meet_;
  std::thread thread_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_OWNER_SOCKET_H_
