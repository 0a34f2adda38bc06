// The raw ends of an owner's socket, for clients and owners that misbehave, and a door that does
// what a test says.

#ifndef WAYBILL_TESTS_SUPPORT_VARLINK_CLIENT_H_
#define WAYBILL_TESTS_SUPPORT_VARLINK_CLIENT_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "store/base/files.h"
#include "store/owner_socket/server.h"

namespace waybill::testing {

// Echo answers with its parameters; Refuse with an error; Large with `large`; Block once the door
// is opened. Gone is known, but not served.
class FakeDoor final : public internal::Door {
 public:
  std::optional<Result<std::string>> Call(std::string_view name,
                                          std::string_view parameters) noexcept override {
    ++calls;
    if (name == "Echo") return std::string(parameters);
    if (name == "Refuse") {
      return Error{ErrorCode::kConflict,
                   "no \"way\"",
                   {},
                   Hint::kReleasePod,
                   std::chrono::microseconds(1500)};
    }
    if (name == "Large") return large;
    if (name != "Block") return std::nullopt;
    std::unique_lock lock(mutex_);
    ++blocked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    return std::string("{\"blocked\":true}");
  }
  bool Knows(std::string_view name) const override {
    for (const char* known : {"Echo", "Refuse", "Large", "Block", "Gone"}) {
      if (name == known) return true;
    }
    return false;
  }
  std::string_view interface_text() const override { return "interface dev.waybill\n"; }

  // Until as many calls block.
  void AwaitBlocked(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return blocked_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

  std::atomic<std::size_t> calls{0};
  std::string large;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t blocked_ = 0;
  bool is_open_ = false;
};

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

inline bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// A message with its zero byte.
inline std::string Framed(std::string message) {
  message += '\0';
  return message;
}

// A client that says what it is told to.
class VarlinkClient {
 public:
  explicit VarlinkClient(const std::filesystem::path& directory) : fd_(RawSocket()) {
    const sockaddr_un name = SocketAddress(directory);
    is_connected_ = connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }

  bool is_connected() const { return is_connected_; }
  // False: the owner closed the connection meanwhile.
  bool Send(std::string_view bytes) { return SendAll(fd_.get(), bytes); }
  // The next message, without its zero byte. Empty: the connection ended, and a part may be lost.
  std::string Next() {
    while (true) {
      if (const std::size_t end = came_.find('\0', looked_); end != std::string::npos) {
        std::string message = came_.substr(0, end);
        came_.erase(0, end + 1);
        looked_ = 0;
        return message;
      }
      looked_ = came_.size();
      char part[16384];
      const ssize_t n = recv(fd_.get(), part, sizeof(part), 0);
      if (n <= 0) return {};
      came_.append(part, static_cast<std::size_t>(n));
    }
  }
  std::string Ask(std::string request) {
    Send(Framed(std::move(request)));
    return Next();
  }
  // Whether the owner closes the connection, without a word more.
  bool AtEnd() { return Next().empty() && came_.empty(); }
  // Whether the owner closed the connection, with or without more to take.
  bool is_lost() const {
    pollfd polled{fd_.get(), 0, 0};
    return poll(&polled, 1, 0) > 0;
  }
  // Sends no more.
  void EndSending() { shutdown(fd_.get(), SHUT_WR); }

 private:
  internal::Fd fd_;
  bool is_connected_ = false;
  std::string came_;
  std::size_t looked_ = 0;
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

  // Reads a whole request.
  static void Hear(int client) {
    char byte = 'x';
    while (byte != '\0' && recv(client, &byte, 1, 0) > 0) {
    }
  }
  // Until the client goes.
  static void WaitForEnd(int client) {
    char byte = 0;
    while (recv(client, &byte, 1, 0) > 0) {
    }
  }

 private:
  internal::Fd fd_;
  std::function<void(int)> meet_;
  std::thread thread_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_VARLINK_CLIENT_H_
