#include "bindings/cli/pull_message.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>
#include <utility>

#include "store/base/trace.h"

namespace waybill::cli {

std::optional<std::int64_t> ParseGoDuration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1}, {"µs", 1e-3}, {"us", 1e-3}, {"ns", 1e-6}, {"h", 3.6e6}, {"m", 6e4}, {"s", 1e3}};
  constexpr double kMost = 1e15;
  double milliseconds = 0;
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto read =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (read.ec != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    const auto* const unit = std::ranges::find_if(
        kUnits, [&](const auto& known) { return text.starts_with(known.first); });
    if (unit == std::end(kUnits)) return std::nullopt;
    text.remove_prefix(unit->first.size());
    milliseconds += number * unit->second;
  }
  if (!(milliseconds < kMost)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(milliseconds));
}

std::optional<PullMessage> ParsePullMessage(std::string_view reason, std::string_view message) {
  const auto skip = [&](std::string_view prefix) {
    if (!message.starts_with(prefix)) return false;
    message.remove_prefix(prefix.size());
    return true;
  };
  const auto until = [&](char end) -> std::optional<std::string_view> {
    const std::size_t at = message.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view part = message.substr(0, at);
    message.remove_prefix(at + 1);
    return part;
  };
  PullMessage pull;
  if (reason == "Pulling" && skip("Pulling image \"")) {
    pull.kind = TraceEvent::Kind::kPullBegun;
  } else if (reason == "Pulled" && skip("Successfully pulled image \"")) {
    pull.kind = TraceEvent::Kind::kPulled;
  } else if (reason == "Pulled" && skip("Container image \"")) {
    pull.kind = TraceEvent::Kind::kUse;
  } else if (reason == "Failed" && skip("Failed to pull image \"")) {
    pull.kind = TraceEvent::Kind::kPullFailed;
  } else {
    return std::nullopt;
  }
  const auto image = until('"');
  if (!image || image->empty()) return std::nullopt;
  pull.image = *image;
  if (pull.kind == TraceEvent::Kind::kUse && !message.starts_with(" already present")) {
    return std::nullopt;
  }
  if (pull.kind != TraceEvent::Kind::kPulled || !skip(" in ")) return pull;
  // Behind it stands how long that was including waiting for other pulls.
  const std::size_t end = std::min(message.find(' '), message.size());
  pull.took_ms = ParseGoDuration(message.substr(0, end));
  message.remove_prefix(end);
  const std::size_t size = message.find("Image size: ");
  if (size == std::string_view::npos) return pull;
  message.remove_prefix(size + std::string_view("Image size: ").size());
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(message.data(), message.data() + message.size(), bytes);
  if (read.ec == std::errc() && bytes > 0) pull.bytes = bytes;
  return pull;
}

}  // namespace waybill::cli
