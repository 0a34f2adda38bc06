#include "store/control/server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWorkers = 2;
constexpr int kBacklog = 64;
// Of all requests that are kept at a time: the largest one, and many small ones.
constexpr std::size_t kMaxKeptBytes = kMaxOwnerMessageBytes + (std::size_t{32} << 20);
constexpr std::size_t kFirstBytes = std::size_t{1} << 16;
// What one connection may get through before others have their turn.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;
constexpr milliseconds kFarewell{1000};
constexpr milliseconds kAfterAcceptError{100};
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

// Blocks all signals for threads that are started while it lives: those of the program are for its
// own threads.
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

Result<std::unique_ptr<ControlServer>> ControlServer::Start(const std::filesystem::path& directory,
                                                            const ServeOptions& options,
                                                            const Greeting& greeting,
                                                            OwnerCalls& owner) {
  TRY(CheckOptions(options));
  auto socket = TRY(ListeningSocket::Bind(directory));
  std::unique_ptr<ControlServer> server(
      new ControlServer(std::move(socket), options, greeting, owner));
  TRY(server->Launch());
  return server;
}

ControlServer::ControlServer(ListeningSocket socket, const ServeOptions& options,
                             const Greeting& greeting, OwnerCalls& owner)
    : socket_(std::move(socket)),
      options_(options),
      greeting_(Framed(FrameKind::kGreeting, EncodeGreeting(greeting))),
      owner_(owner) {}

Result<void> ControlServer::Launch() {
  polled_.reserve(options_.connections + 2);
  waiting_.reserve(options_.connections);
  done_.reserve(options_.connections);
  threads_.reserve(kWorkers + 1);
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return SystemError(errno, "make an eventfd for", kSocketName);
  if (listen(socket_.fd().get(), kBacklog) != 0) {
    return SystemError(errno, "listen on", kSocketName);
  }
  const SignalsBlocked blocked;
  threads_.emplace_back([this] { RunConnections(); });
  for (std::size_t i = 0; i < kWorkers; ++i) threads_.emplace_back([this] { RunWorker(); });
  return {};
}

ControlServer::~ControlServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (wake_.valid()) Wake();
  for (std::thread& thread : threads_) thread.join();
}

void ControlServer::Wake() const {
  constexpr std::uint64_t kOne = 1;
  // It fails only if it is set already.
  static_cast<void>(!write(wake_.get(), &kOne, sizeof(kOne)));
}

// --- Workers

void ControlServer::RunWorker() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Connection* const connection = waiting_.front();
    waiting_.erase(waiting_.begin());
    lock.unlock();
    Bytes answer;  // none: memory ran out, and the client finds the connection closed
    try {
      answer = Framed(FrameKind::kAnswer, AnswerRequest(connection->message, owner_));
    } catch (...) {
      answer.clear();
    }
    lock.lock();
    connection->out = std::move(answer);
    done_.push_back(connection);
    Wake();
  }
}

// --- Connections

void ControlServer::RunConnections() {
  while (true) {
    const auto now = Clock::now();
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    if (stopping && !stopped_) Stop(now);
    TakeAnswers(now);
    CloseLate(now);
    if (stopped_ && connections_.empty()) return;
    Look(now);
  }
}

void ControlServer::Stop(Clock::time_point now) {
  stopped_ = true;
  last_word_ = now + kFarewell;
  socket_.Remove();
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    const bool waits = std::erase(waiting_, &connection) > 0;
    if (waits || connection.state == State::kReading) {
      Refuse(connection, Busy("it closes the store"), now);
    }
  }
}

void ControlServer::TakeAnswers(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (Connection* const connection : done_) {
    DropMessage(*connection);
    connection->state = connection->out.empty() ? State::kOver : State::kSending;
    connection->sent = 0;
    connection->deadline = SendBy(now);
    if (connection->state == State::kSending) Send(*connection);
  }
  done_.clear();
}

void ControlServer::Look(Clock::time_point now) {
  polled_.clear();
  polled_.push_back({wake_.get(), POLLIN, 0});
  const bool accepts = !stopped_ && now >= accepts_again_;
  if (accepts) polled_.push_back({socket_.fd().get(), POLLIN, 0});
  std::size_t next = polled_.size();
  for (const Connection& connection : connections_) {
    if (connection.state == State::kAtWork) continue;
    const short events = connection.state == State::kReading ? POLLIN : POLLOUT;
    polled_.push_back({connection.fd.get(), events, 0});
  }
  // An error: the deadlines are looked at, and then it is tried again.
  if (poll(polled_.data(), polled_.size(), PollFor(now)) <= 0) return;
  if (polled_[0].revents != 0) {
    std::uint64_t ignored = 0;
    static_cast<void>(!read(wake_.get(), &ignored, sizeof(ignored)));
  }
  const auto later = Clock::now();
  for (Connection& connection : connections_) {
    // Serving one changes no other.
    if (connection.state == State::kAtWork) continue;
    if (polled_[next++].revents != 0) Serve(connection, later);
  }
  CloseLate(later);
  if (accepts && polled_[1].revents != 0) Accept(later);
}

void ControlServer::Accept(Clock::time_point now) {
  for (int i = 0; i < kBacklog; ++i) {
    Fd fd(accept4(socket_.fd().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No descriptors, or no memory: others may give some back.
      if (errno != EAGAIN) accepts_again_ = now + kAfterAcceptError;
      return;
    }
    try {
      Admit(std::move(fd), now);
    } catch (...) {
      // Memory ran out: that client finds its connection closed.
      accepts_again_ = now + kAfterAcceptError;
      return;
    }
  }
}

void ControlServer::Admit(Fd fd, Clock::time_point now) {
  const auto turn_away = [&](const Error& why) {
    const Bytes frame = Framed(FrameKind::kAnswer, AnswerOf(why));
    static_cast<void>(send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL));
  };
  const auto peer = PeerOf(fd);
  if (!peer || !MayTalk(*peer)) {
    return turn_away({ErrorCode::kUnsafePath,
                      "only root and user " + std::to_string(geteuid()) +
                          " may ask this owner; nothing was changed",
                      "run as one of them"});
  }
  const std::size_t a_process = std::max<std::size_t>(1, options_.connections / 4);
  const auto own = std::count_if(connections_.begin(), connections_.end(),
                                 [&](const Connection& c) { return c.process == peer->process; });
  if (static_cast<std::size_t>(own) >= a_process) {
    return turn_away(Busy("process " + std::to_string(peer->process) + " has " +
                          std::to_string(own) + " connections already"));
  }
  if (!MakeRoom()) return turn_away(Busy("all connections are at work"));
  // It is small, and nothing was sent before it: if it does not fit, something is odd.
  if (send(fd.get(), greeting_.data(), greeting_.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(greeting_.size())) {
    return;
  }
  connections_.emplace_back(std::move(fd), peer->process, now + options_.patience);
}

bool ControlServer::MakeRoom() {
  if (connections_.size() < options_.connections) return true;
  auto slowest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    if (it->state != State::kReading) continue;
    if (slowest == connections_.end() || it->deadline < slowest->deadline) slowest = it;
  }
  if (slowest == connections_.end()) return false;
  Refuse(*slowest, Busy("others waited for this connection"), Clock::now());
  connections_.erase(slowest);
  return true;
}

void ControlServer::Serve(Connection& connection, Clock::time_point now) noexcept {
  try {
    if (connection.state == State::kReading) {
      Read(connection, now);
    } else if (connection.state == State::kSending) {
      Send(connection);
    }
  } catch (...) {
    // Memory ran out: the client finds its connection closed.
    DropMessage(connection);
    connection.state = State::kOver;
  }
}

void ControlServer::Read(Connection& connection, Clock::time_point now) {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    std::uint8_t* to = nullptr;
    std::size_t room = 0;
    if (connection.got < kFrameHeaderBytes) {
      to = connection.header.data() + connection.got;
      room = kFrameHeaderBytes - connection.got;
    } else {
      const std::size_t have = connection.got - kFrameHeaderBytes;
      if (have == connection.message.size() && !Grow(connection, now)) return;
      to = connection.message.data() + have;
      room = connection.message.size() - have;
    }
    const ssize_t n = recv(connection.fd.get(), to, room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      connection.state = State::kOver;
      return;
    }
    connection.got += static_cast<std::size_t>(n);
    turn += static_cast<std::size_t>(n);
    if (connection.got == kFrameHeaderBytes && !Begin(connection, now)) return;
    const bool whole = connection.got >= kFrameHeaderBytes &&
                       connection.got - kFrameHeaderBytes == connection.length;
    if (whole) return HandOver(connection);
  }
}

bool ControlServer::Begin(Connection& connection, Clock::time_point now) {
  const FrameHeader header = ReadFrameHeader(connection.header);
  if (header.is == FrameIs::kSound && header.kind == FrameKind::kRequest) {
    connection.length = header.length;
    return true;
  }
  if (header.is == FrameIs::kOtherVersion) {
    Refuse(connection,
           {ErrorCode::kOwned,
            "the owner does not speak version " + std::to_string(header.version) +
                " of the protocol, but version " + std::to_string(kControlVersion) +
                "; nothing was changed",
            "use the version of waybill that the owner uses, or stop the owner"},
           now);
  } else {
    Refuse(connection,
           {ErrorCode::kInvalidArgument, "this is not a request to an owner; nothing was changed",
            "a request has at most " + std::to_string(kMaxOwnerMessageBytes) + " bytes"},
           now);
  }
  return false;
}

bool ControlServer::Grow(Connection& connection, Clock::time_point now) {
  const std::size_t have = connection.message.size();
  const std::size_t size = std::min(connection.length, std::max(kFirstBytes, 2 * have));
  if (kept_bytes_ + (size - have) > kMaxKeptBytes) {
    Refuse(connection, Busy("large requests of others are waiting"), now);
    return false;
  }
  connection.message.reserve(size);
  connection.message.resize(size);
  kept_bytes_ += size - have;
  return true;
}

void ControlServer::HandOver(Connection& connection) {
  {
    const std::lock_guard lock(mutex_);
    connection.state = State::kAtWork;
    waiting_.push_back(&connection);
  }
  work_.notify_one();
}

void ControlServer::Send(Connection& connection) {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    const std::size_t left = connection.out.size() - connection.sent;
    if (left == 0) {
      connection.state = State::kOver;
      return;
    }
    const ssize_t n =
        send(connection.fd.get(), connection.out.data() + connection.sent, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {
      connection.state = State::kOver;
      return;
    }
    connection.sent += static_cast<std::size_t>(n);
    turn += static_cast<std::size_t>(n);
  }
}

void ControlServer::Refuse(Connection& connection, const Error& why,
                           Clock::time_point now) noexcept {
  DropMessage(connection);
  connection.state = State::kOver;
  try {
    connection.out = Framed(FrameKind::kAnswer, AnswerOf(why));
  } catch (...) {
    // Memory ran out: the client finds its connection closed.
    return;
  }
  connection.sent = 0;
  connection.state = State::kSending;
  connection.deadline = SendBy(now);
  Send(connection);
}

void ControlServer::DropMessage(Connection& connection) {
  kept_bytes_ -= connection.message.size();
  connection.message = Bytes();
}

void ControlServer::CloseLate(Clock::time_point now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const bool late = it->state != State::kAtWork && it->deadline <= now;
    if (it->state != State::kOver && !late) {
      ++it;
      continue;
    }
    DropMessage(*it);
    it = connections_.erase(it);
  }
}

int ControlServer::PollFor(Clock::time_point now) const {
  constexpr auto kNever = Clock::time_point::max();
  auto until = !stopped_ && accepts_again_ > now ? accepts_again_ : kNever;
  for (const Connection& connection : connections_) {
    if (connection.state != State::kAtWork) until = std::min(until, connection.deadline);
  }
  if (until == kNever) return -1;
  const auto left = std::chrono::ceil<milliseconds>(until - now).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

ControlServer::Clock::time_point ControlServer::SendBy(Clock::time_point now) const {
  const auto deadline = now + options_.patience;
  return stopped_ ? std::min(deadline, last_word_) : deadline;
}

}  // namespace waybill::internal
