// The owner's end of its socket.
//
// One thread accepts; each connection has a thread, which reads a request, has it answered, sends
// the reply, and waits for the next. What a client can take from others is bounded: connections,
// also by process; the bytes of a message, and of all of them; the time for a request to come and
// for a reply to go. Where connections or bytes are short, the client for which a thread waits
// longest has to go; none goes whose call runs. Decisions have nothing to do with any of this.

#ifndef WAYBILL_STORE_OWNER_SOCKET_SERVER_H_
#define WAYBILL_STORE_OWNER_SOCKET_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "store/owner_socket/socket_file.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill::internal {

// What answers the calls of the interface dev.waybill. Any thread may ask at any time.
class Door {
 public:
  virtual ~Door() = default;
  // `name` is without the interface ("Explain"); parameters and answer are JSON objects. nullopt:
  // there is no such call, or it is not served.
  virtual std::optional<Result<std::string>> Call(std::string_view name,
                                                  std::string_view parameters) noexcept = 0;
  // Calls that run should end soon; none comes any more.
  virtual void Stop() noexcept {}
  virtual bool Knows(std::string_view name) const = 0;
  virtual std::string_view interface_text() const = 0;
};

class OwnerServer {
 public:
  // The caller owns the store in `directory`, and `door` outlives the server. `idle`: how long a
  // connection may stay without a request. Errors: Store::Serve.
  static Result<std::unique_ptr<OwnerServer>> Start(
      const std::filesystem::path& directory, const ServeOptions& options, Door& door,
      std::chrono::milliseconds idle = std::chrono::minutes(5));
  // Removes the socket. Calls that run are finished, and their clients get a second to take the
  // replies. All others are told.
  ~OwnerServer();
  OwnerServer(const OwnerServer&) = delete;
  OwnerServer& operator=(const OwnerServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  enum class State : std::uint8_t {
    kAwake,    // its thread will wait, or call, within a moment
    kHears,    // waits for a request, or for the rest of one
    kRuns,     // a call
    kReplies,  // waits until the client takes the reply
    kOver      // its thread ends
  };
  struct Connection {
    Fd fd;
    pid_t process = 0;
    std::thread thread;
    // Guarded by mutex_.
    State state = State::kAwake;
    Clock::time_point since{};  // of what it waits for
    bool is_cut = false;        // it must end
    std::size_t held = 0;       // bytes of its messages
  };
  // What came of a connection: `got` bytes, of which those from `begin` on were not heard yet.
  // Pages of its own: malloc would keep for each thread what large requests had.
  struct Inbox {
    Inbox() = default;
    ~Inbox() { Resize(0); }
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;
    // Throws std::bad_alloc.
    void Resize(std::size_t bytes);

    char* bytes = nullptr;
    std::size_t size = 0;
    std::size_t begin = 0;
    std::size_t got = 0;
  };

  OwnerServer(ListeningSocket socket, const ServeOptions& options, Door& door,
              std::chrono::milliseconds idle);

  // --- The thread that accepts
  void Accept();
  void Admit(Fd fd);
  bool MakeRoom(Lock& lock);
  void Reap();

  // --- The thread of a connection
  void Converse(Connection& connection);
  // The next request. nullopt: the connection ends.
  std::optional<std::string_view> Hear(Connection& connection, Inbox& inbox);
  // Room for what comes next. False: there is none, and the client was told.
  bool Grow(Connection& connection, Inbox& inbox);
  bool Reply(Connection& connection, std::string reply);
  // False: what it waits for did not come until `since` + `patience`, or the connection is cut.
  bool Wait(Connection& connection, State state, Clock::time_point since,
            std::chrono::milliseconds patience);
  // Counts bytes. False: there are too many, and without `anyhow` they are not counted.
  bool Hold(Connection& connection, std::size_t bytes, bool anyhow);
  void LetGo(Connection& connection, std::size_t bytes);

  // --- Any thread, with the mutex
  // Cuts the connection that waits longest; with `holds`, of those that hold bytes. True: that one,
  // or one before it, will be over in a moment.
  bool CutOne(bool holds);
  // `why`: a reply.
  static void Cut(Connection& connection, const std::string& why);

  ListeningSocket socket_;
  const ServeOptions options_;
  const std::chrono::milliseconds idle_;
  Door& door_;
  // Replies; made before memory can be short.
  const std::string closes_;
  const std::string others_wait_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_; what the state of a connection says of its other members is said above.
  std::list<Connection> connections_;
  std::size_t held_ = 0;
  bool is_wanted_ = false;  // a place: who would wait for a request next, goes
  std::optional<Clock::time_point> full_since_;
  bool stopped_ = false;

  std::thread accepting_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OWNER_SOCKET_SERVER_H_
