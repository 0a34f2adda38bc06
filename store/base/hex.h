// Lower-case hex, strict: no other alphabet is accepted, and lengths must fit.

#ifndef WAYBILL_STORE_BASE_HEX_H_
#define WAYBILL_STORE_BASE_HEX_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace waybill::internal {

// The loops run over a fixed size without an early end: compilers turn them into vector code.

constexpr bool IsLowerHexDigit(char c) {
  const auto byte = static_cast<std::uint8_t>(c);
  const bool digit = static_cast<std::uint8_t>(byte - '0') < 10;
  const bool letter = static_cast<std::uint8_t>(byte - 'a') < 6;
  return digit | letter;
}

template <std::size_t N>
bool AllLowerHex(const char* text) {
  std::uint8_t bad = 0;
  for (std::size_t i = 0; i < N; ++i) {
    bad = static_cast<std::uint8_t>(bad | !IsLowerHexDigit(text[i]));
  }
  return bad == 0;
}

// Whether `size` bytes at `text` are all [0-9a-f].
inline bool IsLowerHex(const char* text, std::size_t size) {
  constexpr std::size_t kBlock = 32;
  for (; size >= kBlock; text += kBlock, size -= kBlock) {
    if (!AllLowerHex<kBlock>(text)) return false;
  }
  for (; size != 0; ++text, --size) {
    if (!IsLowerHexDigit(*text)) return false;
  }
  return true;
}

// False, with `bytes` as it was, unless `text` is exactly 2 × N digits of [0-9a-f].
template <std::size_t N>
bool HexDecode(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  if (text.size() != 2 * N || !AllLowerHex<2 * N>(text.data())) return false;
  static_assert(std::endian::native == std::endian::little, "the first digit is the low byte");
  std::array<std::uint16_t, N> pairs{};
  std::memcpy(pairs.data(), text.data(), 2 * N);
  for (std::size_t i = 0; i < N; ++i) {
    // Of all digits, letters alone have bit 6. The first digit of a pair is the low byte.
    const int letters = (pairs[i] >> 6) & 0x0101;
    const int nibbles = (pairs[i] & 0x0f0f) + 9 * letters;
    bytes[i] = static_cast<std::uint8_t>((nibbles << 4) | (nibbles >> 8));
  }
  return true;
}

// Writes 2 × bytes.size() digits to `text`.
inline void HexEncode(std::span<const std::uint8_t> bytes, char* text) {
  for (const std::uint8_t byte : bytes) {
    *text++ = "0123456789abcdef"[byte >> 4];
    *text++ = "0123456789abcdef"[byte & 0xf];
  }
}

inline std::string HexEncode(std::span<const std::uint8_t> bytes) {
  std::string text(2 * bytes.size(), '\0');
  HexEncode(bytes, text.data());
  return text;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_HEX_H_
