// The frames in which an owner and its clients speak. On each connection three frames pass, in this
// order, and then the owner closes it:
//
//   owner   greeting   which store, under which rules (messages.h)
//   client  request    one call
//   owner   answer     its result, or an error. An owner that takes no request sends this
//                      in place of the greeting, or of reading on
//
//   offset  size
//        0     8  "waybill" and a zero
//        8     2  version of the protocol: 2
//       10     2  kind: 1 greeting  2 request  3 answer
//       12     4  length of the message, at most kMaxOwnerMessageBytes
//       16     n  message (messages.h)
//
// Little-endian. The first 10 bytes are the same in each version: who reads another version than
// its own goes no further.

#ifndef WAYBILL_STORE_CONTROL_FRAME_H_
#define WAYBILL_STORE_CONTROL_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace waybill::internal {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::size_t kFrameHeaderBytes = 16;
inline constexpr std::uint16_t kControlVersion = 2;

enum class FrameKind : std::uint16_t { kGreeting = 1, kRequest = 2, kAnswer = 3 };

enum class FrameIs : std::uint8_t {
  kSound,
  kForeign,       // not of this protocol, or of a kind or length that it does not have
  kOtherVersion,  // only `version` was read
};

struct FrameHeader {
  FrameIs is = FrameIs::kForeign;
  std::uint16_t version = 0;
  FrameKind kind = FrameKind::kRequest;
  std::uint32_t length = 0;
};

FrameHeader ReadFrameHeader(std::span<const std::uint8_t, kFrameHeaderBytes> bytes);

// The message, at most kMaxOwnerMessageBytes, with a header before it.
Bytes Framed(FrameKind kind, std::span<const std::uint8_t> message);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_FRAME_H_
