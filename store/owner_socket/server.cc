#include "store/owner_socket/server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "store/base/try.h"
#include "store/owner_socket/request.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

using std::chrono::milliseconds;

constexpr int kBacklog = 64;
// Of all connections: the largest messages, and many small ones.
constexpr std::size_t kMaxHeldBytes = std::size_t{64} << 20;
// What is not counted, of a request and of a reply: small ones always find room.
constexpr std::size_t kFirstBytes = 4096;
constexpr milliseconds kFarewell{1000};
constexpr milliseconds kAfterAcceptError{100};
// How long all connections must have been at work before somebody is turned away.
constexpr milliseconds kFullFor{300};
constexpr std::size_t kMostConnections = 1024;
constexpr milliseconds kMostPatience = std::chrono::hours(1);

Result<void> CheckOptions(const ServeOptions& options) {
  if (options.patience < milliseconds(1) || options.patience > kMostPatience) {
    return Error{ErrorCode::kInvalidArgument,
                 "a patience of " + std::to_string(options.patience.count()) +
                     " milliseconds is out of range; nothing was changed",
                 "use 1 ms to 1 hour"};
  }
  if (options.connections >= 1 && options.connections <= kMostConnections) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      std::to_string(options.connections) + " connections are out of range; nothing was changed",
      "use 1 to " + std::to_string(kMostConnections)};
}

Error Busy(const std::string& why) {
  return {ErrorCode::kUnavailable, "the owner is busy: " + why + "; nothing was changed",
          "try again"};
}
// A last word. It is small: if it does not fit, the client takes nothing.
void Tell(const Fd& fd, const std::string& reply) {
  static_cast<void>(send(fd.get(), reply.c_str(), reply.size() + 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

// Whether the client is gone.
bool IsGone(const Fd& fd) {
  pollfd polled{fd.get(), 0, 0};
  return poll(&polled, 1, 0) > 0;
}

// Blocks all signals for threads that are started while it lives, and for theirs: those of the
// program are for its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<OwnerServer>> OwnerServer::Start(const std::filesystem::path& directory,
                                                        const ServeOptions& options, Door& door,
                                                        milliseconds idle) {
  TRY(CheckOptions(options));
  auto socket = TRY(ListeningSocket::Bind(directory));
  if (listen(socket.fd().get(), kBacklog) != 0) {
    return SystemError(errno, "listen on", directory / kSocketName);
  }
  return std::unique_ptr<OwnerServer>(new OwnerServer(std::move(socket), options, door, idle));
}

OwnerServer::OwnerServer(ListeningSocket socket, const ServeOptions& options, Door& door,
                         milliseconds idle)
    : socket_(std::move(socket)),
      options_(options),
      idle_(idle),
      door_(door),
      closes_(ErrorReply(Busy("it closes the store"))),
      others_wait_(ErrorReply(Busy("others wait for this connection"))) {
  const SignalsBlocked blocked;
  accepting_ = std::thread([this] { Accept(); });
}

OwnerServer::~OwnerServer() {
  door_.Stop();
  // From here on nobody can connect; who has, is accepted and told.
  shutdown(socket_.fd().get(), SHUT_RDWR);
  Lock lock(mutex_);
  stopped_ = true;
  for (Connection& connection : connections_) {
    if (connection.state == State::kHears) Cut(connection, closes_);
  }
  changed_.notify_all();
  lock.unlock();
  accepting_.join();
  socket_.Remove();
  lock.lock();
  const auto all_over = [&] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const Connection& c) { return c.state == State::kOver; });
  };
  if (!changed_.wait_for(lock, kFarewell, all_over)) {
    for (Connection& connection : connections_) {
      if (connection.state == State::kReplies) Cut(connection, closes_);
    }
    changed_.wait(lock, all_over);
  }
  Reap();
}

// --- The thread that accepts

void OwnerServer::Accept() {
  while (true) {
    pollfd polled{socket_.fd().get(), POLLIN, 0};
    poll(&polled, 1, -1);
    Lock lock(mutex_);
    const bool is_last = stopped_;
    lock.unlock();
    Fd fd(accept4(socket_.fd().get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (is_last) return;
      if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN) continue;
    } else {
      try {
        Admit(std::move(fd));
        continue;
      } catch (...) {
        // No memory, or no thread: that client finds its connection closed.
      }
    }
    // Others may give something back.
    lock.lock();
    changed_.wait_for(lock, kAfterAcceptError, [&] { return stopped_; });
  }
}

void OwnerServer::Admit(Fd fd) {
  const auto peer = PeerOf(fd);
  if (!peer || !MayTalk(*peer)) return Tell(fd, ServiceError("PermissionDenied"));
  Lock lock(mutex_);
  const std::size_t a_process = std::max<std::size_t>(1, options_.connections / 4);
  const auto own = std::count_if(connections_.begin(), connections_.end(), [&](const auto& c) {
    if (c.process != peer->process || c.state == State::kOver || c.is_cut) return false;
    return c.state == State::kRuns || !IsGone(c.fd);
  });
  if (static_cast<std::size_t>(own) >= a_process) {
    return Tell(fd, ErrorReply(Busy("process " + std::to_string(peer->process) + " has " +
                                    std::to_string(own) + " connections already")));
  }
  const bool has_room = MakeRoom(lock);
  if (stopped_) return Tell(fd, closes_);
  if (!has_room) return Tell(fd, ErrorReply(Busy("all connections are at work")));
  Connection& connection = connections_.emplace_back();
  connection.fd = std::move(fd);
  connection.process = peer->process;
  try {
    connection.thread = std::thread([this, &connection] {
      try {
        Converse(connection);
      } catch (...) {
        // Memory ran out: the client finds its connection closed.
      }
      const std::lock_guard ending(mutex_);
      held_ -= std::exchange(connection.held, 0);
      // A child of this process may have the descriptor as well.
      shutdown(connection.fd.get(), SHUT_RDWR);
      connection.fd.Reset();
      connection.state = State::kOver;
      changed_.notify_all();
    });
  } catch (...) {
    connections_.pop_back();
    throw;
  }
}

bool OwnerServer::MakeRoom(Lock& lock) {
  for (Reap(); !stopped_ && connections_.size() >= options_.connections; Reap()) {
    if (CutOne(false)) {
      changed_.wait(lock);
      continue;
    }
    const auto now = Clock::now();
    if (!full_since_) full_since_ = now;
    is_wanted_ = now < *full_since_ + kFullFor;
    if (!is_wanted_) return false;
    changed_.wait_until(lock, *full_since_ + kFullFor);
  }
  is_wanted_ = false;
  full_since_.reset();
  return true;
}

void OwnerServer::Reap() {
  connections_.remove_if([](Connection& connection) {
    if (connection.state != State::kOver) return false;
    connection.thread.join();  // it does nothing more
    return true;
  });
}

// --- The thread of a connection

void OwnerServer::Inbox::Resize(std::size_t new_size) {
  constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS;
  void* moved = nullptr;
  if (new_size == 0) {
    if (size > 0) munmap(bytes, size);
  } else if (size == 0) {
    moved = mmap(nullptr, new_size, PROT_READ | PROT_WRITE, kHow, -1, 0);
  } else {
    moved = mremap(bytes, size, new_size, MREMAP_MAYMOVE);
  }
  if (moved == MAP_FAILED) throw std::bad_alloc();
  bytes = static_cast<char*>(moved);
  size = new_size;
}

void OwnerServer::Converse(Connection& connection) {
  Inbox inbox;
  while (const auto request = Hear(connection, inbox)) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return Tell(connection.fd, closes_);
      connection.state = State::kRuns;
    }
    auto reply = ReplyTo(*request, door_);
    {
      const std::lock_guard lock(mutex_);
      connection.state = State::kAwake;
    }
    if (reply && !Reply(connection, std::move(*reply))) return;
  }
}

std::optional<std::string_view> OwnerServer::Hear(Connection& connection, Inbox& inbox) {
  auto since = Clock::now();
  // The first bytes of a connection are often there: they are not waited for.
  bool waits = inbox.size > 0;
  if (inbox.begin == inbox.got && inbox.size > kFirstBytes) {
    LetGo(connection, inbox.size - kFirstBytes);
    inbox.Resize(kFirstBytes);
    inbox.begin = inbox.got = 0;
  }
  std::size_t looked = inbox.begin;
  while (true) {
    const std::string_view there(inbox.bytes, inbox.got);
    if (const std::size_t end = there.find('\0', looked); end != std::string_view::npos) {
      const std::size_t begin = std::exchange(inbox.begin, end + 1);
      return there.substr(begin, end - begin);
    }
    if (inbox.begin > 0) {
      inbox.got -= inbox.begin;
      std::memmove(inbox.bytes, inbox.bytes + inbox.begin, inbox.got);
      inbox.begin = 0;
    }
    looked = inbox.got;
    if (inbox.got == inbox.size && !Grow(connection, inbox)) return std::nullopt;
    const auto patience = inbox.got == 0 ? idle_ : options_.patience;
    if (waits && !Wait(connection, State::kHears, since, patience)) return std::nullopt;
    waits = true;
    const ssize_t n =
        recv(connection.fd.get(), inbox.bytes + inbox.got, inbox.size - inbox.got, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return std::nullopt;
    if (inbox.got == 0) since = Clock::now();
    inbox.got += static_cast<std::size_t>(n);
  }
}

bool OwnerServer::Grow(Connection& connection, Inbox& inbox) {
  const std::size_t have = inbox.size;
  if (have > kMaxOwnerMessageBytes) {
    Tell(connection.fd,
         ErrorReply({ErrorCode::kLimitExceeded,
                     "a request has more than " + std::to_string(kMaxOwnerMessageBytes) +
                         " bytes; nothing was changed",
                     "send a part at a time"}));
    return false;
  }
  const std::size_t size = have == 0                          ? kFirstBytes
                           : 2 * have < kMaxOwnerMessageBytes ? 2 * have
                                                              : kMaxOwnerMessageBytes + 1;
  if (have > 0 && !Hold(connection, size - have, false)) {
    Tell(connection.fd, ErrorReply(Busy("large requests of others are at work")));
    return false;
  }
  inbox.Resize(size);
  return true;
}

bool OwnerServer::Reply(Connection& connection, std::string reply) {
  const auto since = Clock::now();
  const std::size_t held = reply.size() > kFirstBytes ? reply.size() : 0;
  if (held > 0) Hold(connection, held, true);
  const std::string_view bytes(reply.c_str(), reply.size() + 1);
  for (std::size_t sent = 0; sent < bytes.size();) {
    if (sent > 0 && !Wait(connection, State::kReplies, since, options_.patience)) return false;
    const ssize_t n = send(connection.fd.get(), bytes.data() + sent, bytes.size() - sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      if (!Wait(connection, State::kReplies, since, options_.patience)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  if (held > 0) LetGo(connection, held);
  return true;
}

bool OwnerServer::Wait(Connection& connection, State state, Clock::time_point since,
                       milliseconds patience) {
  auto until = since + patience;
  Lock lock(mutex_);
  if (state == State::kHears && (stopped_ || is_wanted_)) {
    Tell(connection.fd, stopped_ ? closes_ : others_wait_);
    is_wanted_ = false;
    connection.is_cut = true;
    return false;
  }
  if (stopped_) until = std::min(until, since + kFarewell);
  connection.state = state;
  connection.since = since;
  changed_.notify_all();
  lock.unlock();
  const short events = state == State::kHears ? POLLIN : POLLOUT;
  const bool has_come = WaitFor(connection.fd, events, until) == Ready::kYes;
  lock.lock();
  connection.state = State::kAwake;
  return has_come && !connection.is_cut;
}

bool OwnerServer::Hold(Connection& connection, std::size_t bytes, bool anyhow) {
  Lock lock(mutex_);
  while (held_ + bytes > kMaxHeldBytes && CutOne(true)) changed_.wait(lock);
  if (held_ + bytes > kMaxHeldBytes && !anyhow) return false;
  held_ += bytes;
  connection.held += bytes;
  return true;
}

void OwnerServer::LetGo(Connection& connection, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ -= bytes;
  connection.held -= bytes;
}

// --- Any thread, with the mutex

bool OwnerServer::CutOne(bool holds) {
  Connection* longest = nullptr;
  for (Connection& connection : connections_) {
    if (connection.state == State::kOver || (holds && connection.held == 0)) continue;
    if (connection.is_cut) return true;
    const bool waits = connection.state == State::kHears || connection.state == State::kReplies;
    if (!waits) continue;
    if (longest == nullptr || connection.since < longest->since) longest = &connection;
  }
  if (longest != nullptr) Cut(*longest, others_wait_);
  return longest != nullptr;
}

void OwnerServer::Cut(Connection& connection, const std::string& why) {
  // A part of a reply may be out: nothing comes behind it.
  if (connection.state == State::kHears) Tell(connection.fd, why);
  connection.is_cut = true;
  shutdown(connection.fd.get(), SHUT_RDWR);
}

}  // namespace waybill::internal
