// The lines of a trace: docs/trace.md.

#include <limits>
#include <utility>

#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/json_document.h"
#include "store/base/names.h"
#include "store/base/quote.h"
#include "store/base/timestamp.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

using internal::JsonDocument, internal::JsonKind, internal::JsonValue;

namespace {

constexpr std::string_view kKinds[] = {"start",  "image",      "use",  "pullBegun",
                                       "pulled", "pullFailed", "list", "removed"};
constexpr std::size_t kMaxTraceReasonBytes = 64;

void AppendString(std::string_view name, std::string_view value, std::string& line) {
  if (value.empty()) return;
  line += ",\"";
  line += name;
  line += "\":";
  AppendGoJsonString(value, line);
}

void AppendNumber(std::string_view name, std::uint64_t value, std::string& line) {
  line += ",\"";
  line += name;
  line += "\":";
  line += std::to_string(value);
}

Timestamp TimestampOf(std::int64_t milliseconds) {
  const std::int64_t rest = (milliseconds % 1000 + 1000) % 1000;
  return {(milliseconds - rest) / 1000, static_cast<std::int32_t>(rest * 1'000'000)};
}

Result<TraceEvent::Kind> ReadKind(JsonValue event) {
  auto value = TRY(internal::Require(event, "event", JsonKind::kString));
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (kKinds[i] == value.text()) return static_cast<TraceEvent::Kind>(i);
  }
  return value.Fail("there is no event " + internal::QuoteForMessage(value.text()) +
                    " in traces of version " + std::to_string(kTraceVersion));
}

Result<std::int64_t> ReadTime(JsonValue event) {
  auto value = TRY(internal::Require(event, "time", JsonKind::kString));
  auto time = ParseTimestamp(value.text());
  if (!time) return value.Fail(time.error().message);
  return TraceTime(*time);
}

Result<void> ReadCredentials(JsonValue event, std::vector<std::string>& out) {
  const auto value = event.Find("credentials");
  if (!value) return {};
  TRY(internal::CheckArray(*value));
  TRY(internal::CheckCount(*value, kMaxTraceCredentials, "credentials"));
  TRY(internal::ReadStrings(*value, kTracePseudonymDigits, out));
  for (const std::string& pseudonym : out) {
    if (pseudonym.size() != kTracePseudonymDigits ||
        !internal::IsLowerHex(pseudonym.data(), pseudonym.size())) {
      return value->Fail("a pseudonym has " + std::to_string(kTracePseudonymDigits) +
                         " digits of 0-9a-f");
    }
  }
  return {};
}

Result<std::optional<std::uint64_t>> ReadNumber(JsonValue event, std::string_view name,
                                                std::uint64_t most) {
  const auto value = event.Find(name);
  if (!value || value->is_null()) return std::optional<std::uint64_t>();
  std::uint64_t number = 0;
  TRY(internal::ReadUnsigned(*value, number));
  if (number > most) return value->Fail("is above " + std::to_string(most));
  return std::optional<std::uint64_t>(number);
}

}  // namespace

std::string_view TraceKindName(TraceEvent::Kind kind) { return internal::NameIn(kKinds, kind); }

std::int64_t TraceTime(Timestamp time) {
  return time.seconds * 1000 + time.nanoseconds / 1'000'000;
}

std::string TraceHeaderLine(std::string_view source, std::string_view node) {
  std::string line = "{\"waybill_trace\":" + std::to_string(kTraceVersion);
  AppendString("source", source, line);
  if (node.size() <= kMaxTraceNodeBytes) AppendString("node", node, line);
  return line + "}\n";
}

std::string TraceLine(const TraceEvent& event) {
  std::string line = "{\"time\":\"";
  line += FormatTimestamp(TimestampOf(event.time_ms));
  line += '"';
  AppendString("event", TraceKindName(event.kind), line);
  AppendString("image", event.image, line);
  AppendString("ref", event.ref, line);
  AppendString("handler", event.runtime_handler, line);
  AppendString("namespace", event.pod_namespace, line);
  if (!event.credentials.empty()) {
    line += ",\"credentials\":";
    char before = '[';
    for (const std::string& pseudonym : event.credentials) {
      line += before;
      AppendGoJsonString(pseudonym, line);
      before = ',';
    }
    line += ']';
  }
  AppendString("reason", event.reason, line);
  if (event.must_pull) line += *event.must_pull ? ",\"mustPull\":true" : ",\"mustPull\":false";
  if (event.bytes && *event.bytes <= kMaxTraceImageSize) AppendNumber("bytes", *event.bytes, line);
  if (event.took_ms && *event.took_ms >= 0) {
    AppendNumber("tookMs", static_cast<std::uint64_t>(*event.took_ms), line);
  }
  if (event.unpacked_percent && *event.unpacked_percent <= kMaxTraceUnpackedPercent) {
    AppendNumber("unpackedPercent", *event.unpacked_percent, line);
  }
  line += "}\n";
  return line;
}

Result<TraceEvent> ParseTraceLine(std::string_view line) {
  auto document = TRY(JsonDocument::Parse(line, kMaxTraceLineBytes));
  const JsonValue root = document.root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  TraceEvent event;
  event.kind = TRY(ReadKind(root));
  event.time_ms = TRY(ReadTime(root));
  const auto read = [&](std::string_view name, std::size_t most, std::string& out) {
    const auto value = root.Find(name);
    return value ? internal::ReadString(*value, most, out) : Result<void>();
  };
  TRY(read("image", kMaxImageBytes, event.image));
  TRY(read("ref", kMaxImageRefBytes, event.ref));
  TRY(read("handler", kMaxRuntimeHandlerBytes, event.runtime_handler));
  TRY(read("namespace", kMaxCoordinateBytes, event.pod_namespace));
  TRY(read("reason", kMaxTraceReasonBytes, event.reason));
  TRY(ReadCredentials(root, event.credentials));
  if (const auto value = root.Find("mustPull"); value && !value->is_null()) {
    bool must_pull = false;
    TRY(internal::ReadBool(*value, must_pull));
    event.must_pull = must_pull;
  }
  event.bytes = TRY(ReadNumber(root, "bytes", kMaxTraceImageSize));
  const auto took = TRY(ReadNumber(root, "tookMs", std::numeric_limits<std::int64_t>::max()));
  if (took) event.took_ms = static_cast<std::int64_t>(*took);
  const auto unpacked = TRY(ReadNumber(root, "unpackedPercent", kMaxTraceUnpackedPercent));
  if (unpacked) event.unpacked_percent = static_cast<std::uint32_t>(*unpacked);
  return event;
}

}  // namespace waybill
