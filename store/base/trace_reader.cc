// Reads a trace with its rotated parts.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/files.h"
#include "store/base/hex.h"
#include "store/base/quote.h"
#include "store/base/timestamp.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

using internal::ReadForeign, internal::WrongAt;

namespace {

constexpr std::size_t kMaxTraceReasonBytes = 64;

struct TraceMoment {
  std::int64_t milliseconds = 0;
};
std::string ToText(const TraceMoment& time) {
  const std::int64_t rest = (time.milliseconds % 1000 + 1000) % 1000;
  return FormatTimestamp(
      {(time.milliseconds - rest) / 1000, static_cast<std::int32_t>(rest * 1'000'000)});
}
bool FromText(std::string_view text, TraceMoment& time) {
  const auto read = ParseTimestamp(text);
  if (read) time.milliseconds = TraceTime(*read);
  return read.has_value();
}
constexpr std::string_view FormOf(const TraceMoment*) { return "a time of RFC 3339"; }

struct TraceObject {
  TraceMoment time = {};
  TraceEvent event = {};

  void Describe(auto& v) const {
    v("time", time);
    v("event", event.kind);
    v.Optional("image", event.image, {.bytes = kMaxImageBytes});
    v.Optional("ref", event.ref, {.bytes = kMaxImageRefBytes});
    v.Optional("handler", event.runtime_handler, {.bytes = kMaxRuntimeHandlerBytes});
    v.Optional("namespace", event.pod_namespace, {.bytes = kMaxCoordinateBytes});
    v.Optional("credentials", event.credentials,
               {.bytes = kTracePseudonymDigits, .count = kMaxTraceCredentials});
    v.Optional("reason", event.reason, {.bytes = kMaxTraceReasonBytes});
    v.Optional("mustPull", event.must_pull);
    v.Optional("bytes", event.bytes);
    v.Optional("tookMs", event.took_ms);
    v.Optional("unpackedPercent", event.unpacked_percent);
  }
};

}  // namespace

std::string_view TraceKindName(TraceEvent::Kind kind) { return internal::WordOf(kind); }

std::int64_t TraceTime(Timestamp time) {
  return time.seconds * 1000 + time.nanoseconds / 1'000'000;
}

std::string TraceLine(const TraceEvent& event) {
  TraceObject line{{event.time_ms}, event};
  if (line.event.bytes > kMaxTraceImageSize) line.event.bytes.reset();
  if (line.event.took_ms < 0) line.event.took_ms.reset();
  if (line.event.unpacked_percent > kMaxTraceUnpackedPercent) line.event.unpacked_percent.reset();
  return internal::ToJson(line) + "\n";
}

Result<TraceEvent> ParseTraceLine(std::string_view text) {
  TraceObject line;
  TRY(ReadForeign(text, kMaxTraceLineBytes, line));
  TraceEvent& event = line.event;
  event.time_ms = line.time.milliseconds;
  for (const std::string& pseudonym : event.credentials) {
    if (pseudonym.size() != kTracePseudonymDigits ||
        !internal::IsLowerHex(pseudonym.data(), pseudonym.size())) {
      return WrongAt("credentials", "a pseudonym has " + std::to_string(kTracePseudonymDigits) +
                                        " digits of 0-9a-f");
    }
  }
  if (event.bytes > kMaxTraceImageSize) {
    return WrongAt("bytes", "it is above " + std::to_string(kMaxTraceImageSize));
  }
  if (event.took_ms && *event.took_ms < 0) return WrongAt("tookMs", "it is below 0");
  if (event.unpacked_percent > kMaxTraceUnpackedPercent) {
    return WrongAt("unpackedPercent", "it is above " + std::to_string(kMaxTraceUnpackedPercent));
  }
  return std::move(event);
}

using internal::Fd;

namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
constexpr std::string_view kHowToMakeOne =
    "take a trace that an owner wrote, or one that was imported";

// Unlike the store's own files, a trace may be a pipe, and lie behind a symlink.
Result<Fd> OpenPart(const std::string& path) {
  if (path == "-") {
    Fd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!input.valid()) return internal::SystemError(errno, "read", "standard input");
    return input;
  }
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return internal::SystemError(errno, "open the trace", path);
  return fd;
}

struct TraceHeader {
  internal::JsonText version = {};
  std::string source = {};
  std::string node = {};

  void Describe(auto& v) const {
    v("waybill_trace", version);
    v.Optional("source", source, {.bytes = internal::kMaxQuotedBytes});
    v.Optional("node", node, {.bytes = kMaxTraceNodeBytes});
  }
};

Result<TraceHeader> ParseHeader(std::string_view line) {
  TraceHeader header;
  const auto read = internal::ReadForeign(line, kMaxTraceLineBytes, header);
  const std::string_view version = header.version.text;
  if (version.empty() || version.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument,
                 "this is no trace: a trace begins with {\"waybill_trace\":" +
                     std::to_string(kTraceVersion) + "}",
                 std::string(kHowToMakeOne)};
  }
  if (version != std::to_string(kTraceVersion)) {
    return Error{ErrorCode::kInvalidArgument,
                 "the trace has version " + std::string(version.substr(0, 20)) +
                     "; this waybill reads version " + std::to_string(kTraceVersion),
                 "use the waybill that wrote it"};
  }
  if (!read) return read.error();
  return header;
}

}  // namespace

std::string TraceHeaderLine(std::string_view source, std::string_view node) {
  const std::string version = std::to_string(kTraceVersion);
  return internal::ToJson(TraceHeader{{version},
                                      std::string(source),
                                      std::string(node.size() <= kMaxTraceNodeBytes ? node : "")}) +
         "\n";
}

struct TraceReader::Impl {
  struct Part {
    std::string name;
    Fd fd;  // none: the text is in the buffer
  };
  std::vector<Part> parts;  // the oldest last; the one being read is the last
  std::string buffer;       // what is left of it begins at `at`
  std::size_t at = 0;
  bool ended = false;  // the part's bytes are all in the buffer
  bool header_read = false;
  bool any_header = false;
  std::string source;
  std::string node;
  std::string name;  // of the part
  std::uint64_t line = 0;
  std::uint64_t events = 0;
  std::uint64_t cut_lines = 0;

  std::string Where() const { return name + ":" + std::to_string(line); }
  Error At(Error error) const {
    error.message = Where() + ": " + error.message;
    return error;
  }

  // More of the part, behind what is left. False: there is no more.
  Result<bool> Fill() {
    if (ended) return false;
    buffer.erase(0, at);
    at = 0;
    const std::size_t before = buffer.size();
    buffer.resize(before + kReadAtOnce);
    ssize_t read = -1;
    do {
      read = ::read(parts.back().fd.get(), buffer.data() + before, kReadAtOnce);
    } while (read < 0 && errno == EINTR);
    const int error_number = errno;
    buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
    if (read < 0) return internal::SystemError(error_number, "read the trace", name);
    ended = read == 0;
    return !ended;
  }

  // The next line without its newline; nullopt: the part ended. `whole`: it had a newline.
  Result<std::optional<std::string_view>> NextLine(bool& whole) {
    std::size_t looked_at = 0;
    for (;;) {
      const std::size_t end = buffer.find('\n', at + looked_at);
      whole = end != std::string::npos;
      if (whole || buffer.size() - at > kMaxTraceLineBytes) {
        ++line;
        const std::size_t size = (whole ? end : buffer.size()) - at;
        if (size >= kMaxTraceLineBytes) {
          return At({ErrorCode::kLimitExceeded, "the line has more than the " +
                                                    std::to_string(kMaxTraceLineBytes) +
                                                    " bytes that a trace may have"});
        }
        const std::string_view found = std::string_view(buffer).substr(at, size);
        at += size + 1;
        return std::optional<std::string_view>(found);
      }
      looked_at = buffer.size() - at;
      if (TRY(Fill())) continue;
      if (looked_at == 0) return std::optional<std::string_view>();
      ++line;
      const std::string_view found = std::string_view(buffer).substr(at);
      at = buffer.size();
      return std::optional<std::string_view>(found);
    }
  }

  void BeginPart() {
    ended = !parts.back().fd.valid();
    header_read = false;
    name = parts.back().name;
    line = 0;
  }

  Result<void> ReadHeader() {
    bool whole = false;
    const auto first = TRY(NextLine(whole));
    // What an owner made and had no time to write to.
    if (!first && (parts.size() > 1 || any_header)) {
      header_read = true;
      return {};
    }
    if (!first) line = 1;
    auto read = ParseHeader(first.value_or(std::string_view()));
    if (!read) return At(std::move(read.error()));
    if (source.empty()) {
      source = std::move(read->source);
      node = std::move(read->node);
    }
    header_read = true;
    any_header = true;
    return {};
  }

  Result<std::optional<TraceEvent>> Next() {
    while (!parts.empty()) {
      if (!header_read) TRY(ReadHeader());
      bool whole = false;
      const auto text = TRY(NextLine(whole));
      if (!text) {
        parts.pop_back();
        buffer.clear();
        at = 0;
        if (!parts.empty()) BeginPart();
        continue;
      }
      auto event = ParseTraceLine(*text);
      if (!event && !whole) {
        ++cut_lines;
        continue;
      }
      if (!event) return At(std::move(event.error()));
      ++events;
      return std::optional<TraceEvent>(*std::move(event));
    }
    return std::optional<TraceEvent>();
  }
};

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::Open(const std::string& path) try {
  auto impl = std::make_unique<Impl>();
  std::vector<internal::FileId> seen;
  // The newest first: a part that is rotated meanwhile is met again under its next name.
  for (std::size_t number = 0; number < kMaxTraceFiles; ++number) {
    const std::string name = number == 0 ? path : path + "." + std::to_string(number);
    auto fd = OpenPart(name);
    if (!fd) {
      if (number > 0 && fd.error().code == ErrorCode::kNotFound) break;
      return std::move(fd.error());
    }
    auto id = TRY(internal::FileIdOf(*fd, name));
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    impl->parts.push_back({path == "-" ? "standard input" : name, std::move(*fd)});
    if (path == "-") break;
  }
  impl->BeginPart();
  TRY(impl->ReadHeader());
  return TraceReader(std::move(impl));
} catch (...) {
  return internal::Caught();
}

Result<TraceReader> TraceReader::OfText(std::string text) try {
  auto impl = std::make_unique<Impl>();
  impl->parts.push_back({"trace", Fd()});
  impl->buffer = std::move(text);
  impl->BeginPart();
  TRY(impl->ReadHeader());
  return TraceReader(std::move(impl));
} catch (...) {
  return internal::Caught();
}

Result<std::optional<TraceEvent>> TraceReader::Next() {
  return internal::Guarded([this] { return impl_->Next(); });
}

std::string_view TraceReader::source() const { return impl_->source; }
std::string_view TraceReader::node() const { return impl_->node; }
std::uint64_t TraceReader::events() const { return impl_->events; }
std::uint64_t TraceReader::cut_lines() const { return impl_->cut_lines; }
std::string TraceReader::where() const { return impl_->Where(); }

}  // namespace waybill
