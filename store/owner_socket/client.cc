#include "store/owner_socket/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/owner_socket/request.h"
#include "store/owner_socket/socket_file.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum class Got : std::uint8_t { kDone, kEnd, kTooLong, kFailed };

// What a send or a receive that did nothing means. kDone: try again.
Got AfterError(const Fd& fd, short events, Clock::time_point until) {
  if (errno == EINTR) return Got::kDone;
  if (errno == EAGAIN) {
    const Ready ready = WaitFor(fd, events, until);
    return ready == Ready::kYes       ? Got::kDone
           : ready == Ready::kTooLong ? Got::kTooLong
                                      : Got::kFailed;
  }
  return errno == ECONNRESET || errno == EPIPE ? Got::kEnd : Got::kFailed;
}

// All of `message`, and its zero byte.
Got Send(const Fd& fd, const std::string& message, Clock::time_point until) {
  std::string_view bytes(message.c_str(), message.size() + 1);
  while (!bytes.empty()) {
    const ssize_t n = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (const Got got = AfterError(fd, POLLOUT, until); got != Got::kDone) {
      return got;
    }
  }
  return Got::kDone;
}

// A message without its zero byte. What is too long counts as the end.
Got Receive(const Fd& fd, std::string& message, Clock::time_point until) {
  char part[16384];
  while (message.size() <= kMaxOwnerMessageBytes) {
    const ssize_t n = recv(fd.get(), part, sizeof(part), 0);
    if (n == 0) return Got::kEnd;
    if (n < 0) {
      if (const Got got = AfterError(fd, POLLIN, until); got != Got::kDone) return got;
      continue;
    }
    const std::string_view came(part, static_cast<std::size_t>(n));
    message += came.substr(0, came.find('\0'));
    if (came.find('\0') != std::string_view::npos) return Got::kDone;
  }
  return Got::kEnd;
}

// The request was not taken.
Error NotTaken(const std::filesystem::path& directory, Got got) {
  if (got == Got::kFailed) return SystemError(errno, "send to", directory / kSocketName);
  const std::string owner = "the owner of " + directory.string();
  if (got == Got::kEnd) {
    return {ErrorCode::kUnavailable,
            owner + " closed the connection and took no request; nothing was changed", "try again"};
  }
  return {ErrorCode::kUnavailable, owner + " did not take the request in time; nothing was changed",
          "try again; look whether that process is stopped or busy"};
}

// The request was sent, and no answer came.
Error Lost(const std::filesystem::path& directory, bool changes, Got got) {
  const std::string what = "the owner of " + directory.string() +
                           (got == Got::kTooLong ? " did not answer in time"
                            : got == Got::kDone  ? " gave an answer that can't be read"
                                                 : " closed the connection without an answer");
  if (!changes) {
    return {ErrorCode::kUnavailable, what + "; nothing was changed", "try again"};
  }
  return {ErrorCode::kOutcomeUnknown,
          what + ": the change may or may not have happened" +
              (got == Got::kTooLong ? ", or may still happen" : ""),
          "look at the store to find out, then try again"};
}

Result<std::string> Ask(const std::filesystem::path& directory, std::string_view name,
                        std::string_view parameters, bool changes, milliseconds patience) {
  constexpr milliseconds kMost = std::chrono::hours(24);
  if (patience < milliseconds(1) || patience > kMost) {
    return Error{ErrorCode::kInvalidArgument,
                 "a patience of " + std::to_string(patience.count()) +
                     " milliseconds is out of range; nothing was changed",
                 "use 1 ms to 1 day"};
  }
  const auto until = Clock::now() + patience;
  const std::string request = TRY(RequestFor(name, parameters));
  const Fd fd = TRY(ConnectToOwner(directory, patience));
  std::string message;
  if (const Got sent = Send(fd, request, until); sent != Got::kDone) {
    const Error why = NotTaken(directory, sent);
    // It may have said why. A part of a request is never acted on.
    if (sent != Got::kEnd || Receive(fd, message, Clock::now()) != Got::kDone) return why;
    const auto refusal = ReadReply(message);
    return refusal && !*refusal ? refusal->error() : why;
  }
  if (const Got got = Receive(fd, message, until); got != Got::kDone) {
    return Lost(directory, changes, got);
  }
  if (auto reply = ReadReply(message)) return *std::move(reply);
  return Lost(directory, changes, Got::kDone);
}

}  // namespace

Result<std::string> AskOwner(const std::filesystem::path& directory, std::string_view name,
                             std::string_view parameters, bool changes, milliseconds patience) {
  return Guarded([&] { return Ask(directory, name, parameters, changes, patience); });
}

}  // namespace waybill::internal
