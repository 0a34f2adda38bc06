#include "store/control/frame.h"

#include <algorithm>
#include <string_view>

#include "waybill/owner.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kProtocol{"waybill\0", 8};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKindAt = 10;
constexpr std::size_t kLengthAt = 12;
constexpr unsigned kBitsPerByte = 8;

void PutLittle(std::uint8_t* to, std::size_t bytes, std::uint32_t number) {
  for (std::size_t i = 0; i < bytes; ++i, number >>= kBitsPerByte) {
    to[i] = static_cast<std::uint8_t>(number);
  }
}

std::uint32_t GetLittle(const std::uint8_t* from, std::size_t bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = (number << kBitsPerByte) | from[i];
  return number;
}

}  // namespace

FrameHeader ReadFrameHeader(std::span<const std::uint8_t, kFrameHeaderBytes> bytes) {
  FrameHeader header;
  if (!std::equal(kProtocol.begin(), kProtocol.end(), bytes.begin(),
                  [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; })) {
    return header;
  }
  header.version = static_cast<std::uint16_t>(GetLittle(&bytes[kVersionAt], 2));
  header.is = FrameIs::kOtherVersion;
  if (header.version != kControlVersion) return header;
  const std::uint32_t kind = GetLittle(&bytes[kKindAt], 2);
  header.length = GetLittle(&bytes[kLengthAt], 4);
  const bool known = kind >= 1 && kind <= static_cast<std::uint32_t>(FrameKind::kAnswer);
  header.is = known && header.length <= kMaxOwnerMessageBytes ? FrameIs::kSound : FrameIs::kForeign;
  if (known) header.kind = static_cast<FrameKind>(kind);
  return header;
}

Bytes Framed(FrameKind kind, std::span<const std::uint8_t> message) {
  Bytes frame(kFrameHeaderBytes + message.size());
  std::copy(kProtocol.begin(), kProtocol.end(), frame.begin());
  PutLittle(&frame[kVersionAt], 2, kControlVersion);
  PutLittle(&frame[kKindAt], 2, static_cast<std::uint32_t>(kind));
  PutLittle(&frame[kLengthAt], 4, static_cast<std::uint32_t>(message.size()));
  std::copy(message.begin(), message.end(), frame.begin() + kFrameHeaderBytes);
  return frame;
}

}  // namespace waybill::internal
