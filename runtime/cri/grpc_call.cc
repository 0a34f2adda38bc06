#include "runtime/cri/grpc_call.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::cri {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kAskEvery{50};
constexpr std::size_t kPrefixBytes = 5;  // compressed or not, and the length
constexpr std::size_t kMaxTextBytes = 4096;
// What may be under way before the runtime has to wait.
constexpr std::int32_t kWindowBytes = 1 << 20;
constexpr int kHttpOk = 200;
constexpr int kHttpNotFound = 404;

// "%20" is a space: gRPC writes texts so.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

nghttp2_nv Header(std::string_view name, std::string_view value) {
  // nghttp2 copies them.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

class Connection {
 public:
  Connection(internal::Fd socket, const GrpcCall& call) : call_(call), socket_(std::move(socket)) {
    body_.push_back('\0');
    for (int shift = 24; shift >= 0; shift -= 8) {
      body_.push_back(static_cast<char>(call.request.size() >> shift));
    }
    body_ += call.request;
  }

  std::optional<GrpcStatus> Run() {
    if (call_.timeout) until_ = steady_clock::now() + *call_.timeout;
    if (const int error = Begin(); error != 0) return Broken(nghttp2_strerror(error));
    for (;;) {
      if (auto ended = Send()) return ended;
      if (ended_) return std::exchange(ended_, std::nullopt);
      if (out_.empty() && nghttp2_session_want_read(session_.get()) == 0) {
        return Broken("it does not speak gRPC");
      }
      const auto waited = Wait();
      if (waited != Waited::kReadable) {
        if (waited == Waited::kNothing) continue;
        if (waited == Waited::kStop) return {};
        return GrpcStatus{GrpcStatus::kDeadlineExceeded, "it took too long"};
      }
      if (auto ended = Receive()) return ended;
      if (stopped_) return {};
    }
  }

 private:
  using Ended = std::optional<GrpcStatus>;

  static Ended Broken(const std::string& why) { return GrpcStatus{GrpcStatus::kUnavailable, why}; }

  int Begin() {
    nghttp2_session_callbacks* made = nullptr;
    if (const int error = nghttp2_session_callbacks_new(&made); error != 0) return error;
    const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)>
        callbacks(made, nghttp2_session_callbacks_del);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnClose);
    nghttp2_session* session = nullptr;
    if (const int error = nghttp2_session_client_new(&session, made, this); error != 0) {
      return error;
    }
    session_.reset(session);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(kWindowBytes)}};
    if (const int error = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2)) {
      return error;
    }
    if (const int error =
            nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindowBytes)) {
      return error;
    }
    const std::string timeout = std::to_string(call_.timeout.value_or(milliseconds(0)).count());
    const std::string in_milliseconds = timeout + "m";
    std::vector<nghttp2_nv> headers = {
        Header(":method", "POST"),       Header(":scheme", "http"),
        Header(":path", call_.method),   Header(":authority", "localhost"),
        Header("te", "trailers"),        Header("content-type", "application/grpc"),
        Header("user-agent", "waybill"),
    };
    if (call_.timeout) headers.push_back(Header("grpc-timeout", in_milliseconds));
    if (!call_.containerd_namespace.empty()) {
      headers.push_back(Header("containerd-namespace", call_.containerd_namespace));
    }
    nghttp2_data_provider body = {};
    body.source.ptr = this;
    body.read_callback = ReadBody;
    stream_ =
        nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &body, nullptr);
    return std::min(stream_, 0);
  }

  // What can be sent now.
  Ended Send() {
    for (;;) {
      if (out_.empty()) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
        if (size < 0) return Broken(nghttp2_strerror(static_cast<int>(size)));
        if (size == 0) return {};
        out_.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
      }
      const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        out_.erase(0, static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        return {};
      } else if (errno != EINTR) {
        // What it answered before it went away may still be there to read.
        out_.clear();
        return {};
      }
    }
  }

  enum class Waited : std::uint8_t { kNothing, kReadable, kStop, kTooLong };

  Waited Wait() {
    auto wait = milliseconds(-1);
    if (until_) {
      const auto left = *until_ - steady_clock::now();
      if (left <= left.zero()) return Waited::kTooLong;
      wait = std::chrono::ceil<milliseconds>(left);
    }
    if (call_.cancelled && (!until_ || wait > kAskEvery)) wait = kAskEvery;
    std::array<pollfd, 2> polled = {
        {{.fd = socket_.get(),
          .events = static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT),
          .revents = 0},
         {.fd = call_.stop_fd, .events = POLLIN, .revents = 0}}};
    const auto most = milliseconds(std::numeric_limits<int>::max());
    const int ready =
        ::poll(polled.data(), polled.size(), static_cast<int>(std::min(wait, most).count()));
    if (ready > 0 && polled[1].revents != 0) return Waited::kStop;
    if (ready > 0 && (polled[0].revents & ~POLLOUT) != 0) return Waited::kReadable;
    if (ready == 0 && call_.cancelled && call_.cancelled()) return Waited::kStop;
    return Waited::kNothing;
  }

  // Some of what came, so that the time is looked at in between.
  Ended Receive() {
    std::array<std::uint8_t, 16384> bytes;
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return Broken(std::strerror(errno));
    if (size == 0) return Broken("it closed the connection");
    const ssize_t read =
        nghttp2_session_mem_recv(session_.get(), bytes.data(), static_cast<std::size_t>(size));
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    if (ended_) return std::exchange(ended_, std::nullopt);
    if (read < 0 && !stopped_) return Broken(nghttp2_strerror(static_cast<int>(read)));
    return {};
  }

  // No exception may pass through nghttp2.
  template <typename Do>
  static int Within(void* self, const Do& work) noexcept {
    auto& connection = *static_cast<Connection*>(self);
    try {
      return work(connection) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
    } catch (...) {
      connection.thrown_ = std::current_exception();
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static ssize_t ReadBody(nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t room,
                          std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& connection = *static_cast<Connection*>(source->ptr);
    const std::string_view left = std::string_view(connection.body_).substr(connection.sent_);
    const std::size_t size = left.copy(reinterpret_cast<char*>(into), room);
    connection.sent_ += size;
    if (size == left.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* self) {
    return Within(self, [&](Connection& connection) {
      if (frame->hd.stream_id != connection.stream_) return true;
      const std::string_view key(reinterpret_cast<const char*>(name), name_size);
      const std::string_view text(reinterpret_cast<const char*>(value), value_size);
      const auto number = [&](std::optional<int>& to) {
        int read = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
        if (error == std::errc() && end == text.data() + text.size()) to = read;
      };
      if (key == ":status") number(connection.http_);
      // Only what ends the answer says how the call ended.
      const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
      if (key == "grpc-status" && is_end) number(connection.code_);
      if (key == "grpc-message") {
        connection.text_ = Unescaped(text.substr(0, kMaxTextBytes));
      }
      return true;
    });
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                    std::size_t size, void* self) {
    return Within(self, [&](Connection& connection) {
      if (stream != connection.stream_) return true;
      return connection.TakeData({reinterpret_cast<const char*>(data), size});
    });
  }

  bool TakeData(std::string_view data) {
    while (!data.empty()) {
      const std::size_t wanted = length_ ? *length_ : kPrefixBytes;
      const std::string_view part = data.substr(0, wanted - message_.size());
      message_ += part;
      data.remove_prefix(part.size());
      if (message_.size() < wanted) return true;
      if (!length_) {
        if (message_[0] != '\0') return End(GrpcStatus::kInternal, "its answer is compressed");
        length_ = 0;
        for (std::size_t i = 1; i < kPrefixBytes; ++i) {
          length_ = *length_ << 8U | static_cast<std::uint8_t>(message_[i]);
        }
        if (*length_ > call_.most) {
          return End(GrpcStatus::kResourceExhausted,
                     "a message has " + std::to_string(*length_) + " bytes, and " +
                         std::to_string(call_.most) + " are allowed");
        }
        message_.clear();
        if (*length_ > 0) continue;
      }
      length_.reset();
      stopped_ = !call_.take(std::exchange(message_, {}));
      if (stopped_) return false;
    }
    return true;
  }

  bool End(int code, std::string why) {
    ended_ = GrpcStatus{code, std::move(why)};
    return false;
  }

  static int OnClose(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* self) {
    return Within(self, [&](Connection& connection) {
      if (stream != connection.stream_) return true;
      connection.ended_ = connection.StatusAt(error);
      return true;
    });
  }

  GrpcStatus StatusAt(std::uint32_t error) {
    const bool is_cut = length_ || !message_.empty() || error != NGHTTP2_NO_ERROR;
    if (code_ && !(is_cut && *code_ == GrpcStatus::kOk)) return {*code_, std::move(text_)};
    if (http_ && *http_ != kHttpOk) {
      return {*http_ == kHttpNotFound ? GrpcStatus::kUnimplemented : GrpcStatus::kUnavailable,
              "it answers with the HTTP status " + std::to_string(*http_)};
    }
    if (error != NGHTTP2_NO_ERROR) {
      return {GrpcStatus::kUnavailable,
              std::string("it gave the call up: ") + nghttp2_http2_strerror(error)};
    }
    return {GrpcStatus::kUnknown,
            is_cut ? "its answer is cut short" : "it does not say how the call ended"};
  }

  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
  };

  const GrpcCall& call_;
  internal::Fd socket_;
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::optional<steady_clock::time_point> until_;
  std::int32_t stream_ = 0;
  std::string body_;
  std::size_t sent_ = 0;               // of it
  std::string out_;                    // made, and not sent yet
  std::string message_;                // or its prefix, as far as it came
  std::optional<std::size_t> length_;  // of the message; nullopt: the prefix comes
  std::optional<int> http_;
  std::optional<int> code_;
  std::string text_;
  Ended ended_;
  bool stopped_ = false;  // by `take`
  std::exception_ptr thrown_;
};

}  // namespace

std::optional<GrpcStatus> Run(internal::Fd socket, const GrpcCall& call) {
  return Connection(std::move(socket), call).Run();
}

}  // namespace waybill::cri
