// The owner's end of its socket.
//
//   one thread    accepts, reads requests, sends answers; never waits for a single client
//   two workers   read what a request says, and do it; each takes the request that waits longest
//
//   accepted --> reading --> waiting --> running --> sending --> closed
//                   |           |                       |
//                   +--- too slow, refused, stopped ----+
//
// What a client can take from others is bounded: connections, also by process; the bytes of
// requests that are kept; the time for a request and for an answer. A backup may take one worker
// for long, but not both (NodeStore::MakeBackup). Decisions have nothing to do with any of this.

#ifndef WAYBILL_STORE_CONTROL_SERVER_H_
#define WAYBILL_STORE_CONTROL_SERVER_H_

#include <sys/types.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "store/control/messages.h"
#include "store/control/socket_file.h"
#include "waybill/owner.h"

struct pollfd;

namespace waybill::internal {

class ControlServer {
 public:
  // The caller owns the store in `directory`, and `owner` outlives the server. Errors:
  // NodeStore::Serve.
  static Result<std::unique_ptr<ControlServer>> Start(const std::filesystem::path& directory,
                                                      const ServeOptions& options,
                                                      const Greeting& greeting, OwnerCalls& owner);
  // Removes the socket. Requests that wait are refused; those that run are finished, and their
  // clients get a second to take the answers.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t { kReading, kAtWork, kSending, kOver };

  struct Connection {
    Connection(Fd socket, pid_t of_process, Clock::time_point until)
        : fd(std::move(socket)), process(of_process), deadline(until) {}
    Fd fd;
    pid_t process = 0;
    State state = State::kReading;
    Clock::time_point deadline;
    std::array<std::uint8_t, kFrameHeaderBytes> header{};
    std::size_t got = 0;     // of header and message
    std::size_t length = 0;  // that the message will have
    Bytes message;           // of the request
    Bytes out;               // the answer
    std::size_t sent = 0;
  };

  ControlServer(ListeningSocket socket, const ServeOptions& options, const Greeting& greeting,
                OwnerCalls& owner);
  Result<void> Launch();

  // --- The thread of the connections. It alone uses the members without a mutex, and a connection
  // that is not at work.
  void RunConnections();
  void Stop(Clock::time_point now);
  void TakeAnswers(Clock::time_point now);
  void Look(Clock::time_point now);
  void Accept(Clock::time_point now);
  void Admit(Fd fd, Clock::time_point now);
  // Room for one more. False: there is none.
  bool MakeRoom();
  void Serve(Connection& connection, Clock::time_point now) noexcept;
  void Read(Connection& connection, Clock::time_point now);
  // The header is there. False: the connection is not to be read any more.
  bool Begin(Connection& connection, Clock::time_point now);
  // Room for what comes next. False: there is none, and the client was told.
  bool Grow(Connection& connection, Clock::time_point now);
  void HandOver(Connection& connection);
  void Send(Connection& connection);
  void Refuse(Connection& connection, const Error& why, Clock::time_point now) noexcept;
  void DropMessage(Connection& connection);
  void CloseLate(Clock::time_point now);
  int PollFor(Clock::time_point now) const;
  Clock::time_point SendBy(Clock::time_point now) const;

  void RunWorker();
  void Wake() const;

  ListeningSocket socket_;
  const ServeOptions options_;
  const Bytes greeting_;
  OwnerCalls& owner_;
  Fd wake_;  // an eventfd: the thread of the connections looks again

  std::list<Connection> connections_;
  std::vector<pollfd> polled_;
  std::size_t kept_bytes_ = 0;         // of all requests
  Clock::time_point accepts_again_{};  // after an error
  bool stopped_ = false;
  Clock::time_point last_word_{};  // once stopped: when the last answer must be out

  std::mutex mutex_;
  std::condition_variable work_;
  // Guarded by mutex_. They have room for all connections, so that adding one can't fail.
  std::vector<Connection*> waiting_;  // the oldest first
  std::vector<Connection*> done_;
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_SERVER_H_
