// The client's end of an owner's socket.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/control/messages.h"
#include "store/control/socket_file.h"
#include "waybill/owner.h"

namespace waybill {

namespace {

using internal::Bytes, internal::Fd, internal::FrameHeader, internal::FrameIs, internal::FrameKind;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum class Got : std::uint8_t { kAll, kEnd, kTooLong, kFailed };

// kAll: bytes can be received, or sent.
Got WaitFor(const Fd& fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Got::kTooLong;
    pollfd polled{fd.get(), events, 0};
    constexpr decltype(left) kLongest = 1 << 30;
    const int n = poll(&polled, 1, static_cast<int>(std::min(left, kLongest)));
    if (n > 0) return Got::kAll;
    if (n < 0 && errno != EINTR) return Got::kFailed;
  }
}

// Fills `bytes`.
Got Receive(const Fd& fd, std::span<std::uint8_t> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      continue;
    }
    if (n == 0 || errno == ECONNRESET || errno == EPIPE) return Got::kEnd;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Got::kFailed;
    if (const Got got = WaitFor(fd, POLLIN, deadline); got != Got::kAll) return got;
  }
  return Got::kAll;
}

// Sends all of `bytes`; as long as some go out, it goes on.
Got Send(const Fd& fd, std::span<const std::uint8_t> bytes, milliseconds patience) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == ECONNRESET || errno == EPIPE) return Got::kEnd;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Got::kFailed;
    const Got got = WaitFor(fd, POLLOUT, Clock::now() + patience);
    if (got != Got::kAll) return got;
  }
  return Got::kAll;
}

// The next frame's message, and its kind. What was got if not all of it.
Got ReceiveFrame(const Fd& fd, Clock::time_point deadline, FrameHeader& header, Bytes& message) {
  std::array<std::uint8_t, internal::kFrameHeaderBytes> bytes{};
  header = {};
  if (const Got got = Receive(fd, bytes, deadline); got != Got::kAll) return got;
  header = internal::ReadFrameHeader(bytes);
  if (header.is != FrameIs::kSound) return Got::kAll;
  // Not before they arrive: a length alone must not take memory.
  constexpr std::size_t kFirst = std::size_t{1} << 16;
  message.clear();
  while (message.size() < header.length) {
    const std::size_t have = message.size();
    message.resize(std::min<std::size_t>(header.length, std::max(kFirst, 2 * have)));
    const Got got = Receive(fd, std::span(message).subspan(have), deadline);
    if (got != Got::kAll) return got;
  }
  return Got::kAll;
}

Error CannotTalk(const std::filesystem::path& directory, Got got, std::string_view doing) {
  const int error_number = errno;
  const std::string owner = "the owner of " + directory.string();
  switch (got) {
    case Got::kTooLong:
      return {
          ErrorCode::kUnavailable,
          owner + " did not answer in time while " + std::string(doing) + "; nothing was changed",
          "try again; look whether that process is stopped or busy"};
    case Got::kFailed:
      return internal::SystemError(error_number, doing, directory / internal::kSocketName);
    default:
      return {
          ErrorCode::kUnavailable,
          owner + " closed the connection while " + std::string(doing) + "; nothing was changed",
          "try again"};
  }
}

Error NotAnOwner(const std::filesystem::path& directory, const FrameHeader& header) {
  if (header.is == FrameIs::kOtherVersion) {
    return {ErrorCode::kOwned,
            "the owner of " + directory.string() + " speaks version " +
                std::to_string(header.version) + " of the protocol, and this waybill version " +
                std::to_string(internal::kControlVersion) + "; nothing was changed",
            "use the version of waybill that the owner uses, or stop the owner"};
  }
  return {ErrorCode::kIo,
          "what serves " + (directory / internal::kSocketName).string() +
              " does not speak as an owner; nothing was changed",
          "find out which process that is: fuser " + (directory / internal::kSocketName).string()};
}

class SocketClient final : public internal::AskingCalls {
 public:
  explicit SocketClient(OwnerClientOptions options) : options_(std::move(options)) {}

  Result<void> Begin() {
    auto met = TRY(Meet());
    greeting_ = met.second;
    return {};
  }

  const OwnerDescription& owner() const override { return greeting_.owner; }

 protected:
  std::filesystem::path directory() const override { return options_.directory; }

  Result<Bytes> Ask(const Bytes& request, bool changes) override {
    auto met = TRY(Meet());
    const auto& [fd, greeting] = met;
    if (greeting.store != greeting_.store || !(greeting.owner == greeting_.owner)) {
      return Error{ErrorCode::kConflict,
                   "another process owns " + options_.directory.string() +
                       " since this client connected; nothing was changed",
                   "connect again"};
    }
    const Bytes frame = internal::Framed(FrameKind::kRequest, request);
    const Got sent = Send(fd, frame, options_.patience);
    FrameHeader header;
    Bytes message;
    if (sent != Got::kAll) {
      const Error why = CannotTalk(options_.directory, sent, "taking the request");
      // It may have said why. A part of a request is never acted on.
      if (sent == Got::kEnd && ReceiveFrame(fd, Clock::now(), header, message) == Got::kAll &&
          header.is == FrameIs::kSound && header.kind == FrameKind::kAnswer) {
        return internal::DecodeRefusal(message);
      }
      return why;
    }
    const Got got = ReceiveFrame(fd, Clock::now() + options_.answer_patience, header, message);
    const bool answered =
        got == Got::kAll && header.is == FrameIs::kSound && header.kind == FrameKind::kAnswer;
    if (answered) return message;
    return Lost(changes, got);
  }

 private:
  // A connection on which the owner waits for a request.
  Result<std::pair<Fd, internal::Greeting>> Meet() const {
    const auto deadline = Clock::now() + options_.patience;
    auto fd = TRY(internal::ConnectToOwner(options_.directory, options_.patience));
    FrameHeader header;
    Bytes message;
    const Got got = ReceiveFrame(fd, deadline, header, message);
    if (got != Got::kAll) return CannotTalk(options_.directory, got, "greeting");
    if (header.is != FrameIs::kSound) return NotAnOwner(options_.directory, header);
    if (header.kind == FrameKind::kAnswer) return internal::DecodeRefusal(message);
    if (header.kind != FrameKind::kGreeting) return NotAnOwner(options_.directory, {});
    auto greeting = TRY(internal::DecodeGreeting(message));
    return std::pair(std::move(fd), greeting);
  }

  // The request was sent, and no answer came.
  Error Lost(bool changes, Got got) const {
    const std::string what = got == Got::kTooLong ? "did not answer in time"
                             : got == Got::kAll   ? "gave an answer that can't be read"
                                                  : "closed the connection without an answer";
    if (!changes) {
      return {ErrorCode::kUnavailable,
              "the owner of " + options_.directory.string() + " " + what + "; nothing was changed",
              "try again"};
    }
    return {
        ErrorCode::kOutcomeUnknown,
        "the owner of " + options_.directory.string() + " " + what +
            (got == Got::kTooLong ? ": the change may or may not have happened, or may still happen"
                                  : ": the change may or may not have happened"),
        "look at the store to find out, then try again"};
  }

  const OwnerClientOptions options_;
  internal::Greeting greeting_;
};

}  // namespace

Result<std::unique_ptr<OwnerClient>> OwnerClient::Connect(OwnerClientOptions options) {
  try {
    constexpr milliseconds kMost = std::chrono::hours(24);
    for (const milliseconds patience : {options.patience, options.answer_patience}) {
      if (patience < milliseconds(1) || patience > kMost) {
        return Error{ErrorCode::kInvalidArgument,
                     "a patience of " + std::to_string(patience.count()) +
                         " milliseconds is out of range; nothing was changed",
                     "use 1 ms to 1 day"};
      }
    }
    auto client = std::make_unique<SocketClient>(std::move(options));
    TRY(client->Begin());
    return client;
  } catch (...) {
    return internal::Caught();
  }
}

}  // namespace waybill
