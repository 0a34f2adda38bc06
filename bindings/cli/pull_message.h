// What the messages of a kubelet's events say of images.

#ifndef WAYBILL_BINDINGS_CLI_PULL_MESSAGE_H_
#define WAYBILL_BINDINGS_CLI_PULL_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/trace.h"

namespace waybill::cli {

// A message of a kubelet's event, taken apart; nullopt: it is about no image.
struct PullMessage {
  TraceEvent::Kind kind = TraceEvent::Kind::kUse;
  std::string image = {};
  std::optional<std::int64_t> took_ms = {};
  std::optional<std::uint64_t> bytes = {};
};
std::optional<PullMessage> ParsePullMessage(std::string_view reason, std::string_view message);
// As Go writes durations ("1m2.5s", "313ms"), in milliseconds.
std::optional<std::int64_t> ParseGoDuration(std::string_view text);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PULL_MESSAGE_H_
