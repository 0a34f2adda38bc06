// The lines of a trace: docs/trace.md.

#include <utility>

#include "store/base/described.h"
#include "store/base/hex.h"
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

}  // namespace waybill
