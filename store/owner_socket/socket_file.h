// owner.sock in a store's directory: where it is bound, when it is replaced, who may be at its
// ends.

#ifndef WAYBILL_STORE_OWNER_SOCKET_SOCKET_FILE_H_
#define WAYBILL_STORE_OWNER_SOCKET_SOCKET_FILE_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

inline constexpr const char* kSocketName = "owner.sock";

// The socket on which an owner listens. Unlinked at the end, if it is still the one that was bound.
class ListeningSocket {
 public:
  // Only while the owner's lock is held: it proves that a socket that is there is of an owner that
  // ended, so that one is replaced. Does not listen yet. kUnsafePath: something else is there, or
  // another user's socket; it is left alone. kLimitExceeded: the path is too long, and there is no
  // /proc. kIo, kDiskFull.
  static Result<ListeningSocket> Bind(const std::filesystem::path& directory);
  ListeningSocket(ListeningSocket&& other) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket() { Remove(); }

  const Fd& fd() const { return fd_; }
  // Later connections are refused. Those that were not accepted yet are cut off.
  void Remove();

 private:
  ListeningSocket(Fd fd, std::filesystem::path path, FileId id)
      : fd_(std::move(fd)), path_(std::move(path)), id_(id) {}

  Fd fd_;
  std::filesystem::path path_;
  FileId id_;
};

// Connects to the owner of the store; the result does not block. Waits up to `patience` for room in
// its queue. Errors: AskOwner.
Result<Fd> ConnectToOwner(const std::filesystem::path& directory,
                          std::chrono::milliseconds patience);

// Until bytes can be received (POLLIN), or sent (POLLOUT). kFailed: errno says why.
enum class Ready : std::uint8_t { kYes, kTooLong, kFailed };
Ready WaitFor(const Fd& socket, short events, std::chrono::steady_clock::time_point until);

// Who is at the other end, by SO_PEERCRED: for a client, who listens. nullopt: unknown.
struct Peer {
  uid_t user = 0;
  pid_t process = 0;  // 0: in a PID namespace that is not seen from here
};
std::optional<Peer> PeerOf(const Fd& socket);
// Root, or the effective user of this process.
bool MayTalk(const Peer& peer);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OWNER_SOCKET_SOCKET_FILE_H_
