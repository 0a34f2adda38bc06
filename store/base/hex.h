// Lower-case hex, strict: no other alphabet is accepted, and lengths must fit. Every decision
// decodes an image ref, a UID and a hash, so 16 digits are taken at once, by the compiler's
// vectors.

#ifndef WAYBILL_STORE_BASE_HEX_H_
#define WAYBILL_STORE_BASE_HEX_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace waybill::internal {

constexpr bool IsLowerHexDigit(char c) {
  const auto byte = static_cast<std::uint8_t>(c);
  const bool digit = static_cast<std::uint8_t>(byte - '0') < 10;
  const bool letter = static_cast<std::uint8_t>(byte - 'a') < 6;
  return digit | letter;
}

using Bytes16 = std::uint8_t __attribute__((vector_size(16)));

inline Bytes16 Load16(const char* text) {
  Bytes16 bytes;
  std::memcpy(&bytes, text, sizeof(bytes));
  return bytes;
}

inline Bytes16 InEach(char byte) { return Bytes16{} + static_cast<std::uint8_t>(byte); }

// All ones where the byte is in `first` to `last`.
inline Bytes16 IsBetween(Bytes16 bytes, char first, char last) {
  const Bytes16 most = InEach(static_cast<char>(last - first));
  return reinterpret_cast<Bytes16>(bytes - InEach(first) <= most);
}

// All ones where the byte is a digit of [0-9a-f].
inline Bytes16 IsLowerHexDigit(Bytes16 digits) {
  return IsBetween(digits, '0', '9') | IsBetween(digits, 'a', 'f');
}

inline bool AllOnes(Bytes16 bytes) {
#ifdef __SSE2__
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)) == 0xffff;
#else
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(bytes);
  return (halves[0] & halves[1]) == ~std::uint64_t{0};
#endif
}

// 32 digits of [0-9a-f] as 16 bytes.
inline Bytes16 DecodeDigits(Bytes16 first, Bytes16 second) {
  static_assert(std::endian::native == std::endian::little, "the first digit is the low byte");
  using Pairs = std::uint16_t __attribute__((vector_size(16)));
  const auto in_low_bytes = [](Bytes16 digits) {
    const auto in_each = [](std::uint16_t number) { return Pairs{} + number; };
    const auto pairs = reinterpret_cast<Pairs>(digits);
    // Of all digits, letters alone have bit 6.
    const Pairs letters = (pairs >> in_each(6)) & in_each(0x0101);
    const Pairs nibbles = (pairs & in_each(0x0f0f)) + (letters << in_each(3)) + letters;
    return reinterpret_cast<Bytes16>((nibbles << in_each(4)) | (nibbles >> in_each(8)));
  };
  return __builtin_shufflevector(in_low_bytes(first), in_low_bytes(second), 0, 2, 4, 6, 8, 10, 12,
                                 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

// The digits of nibbles.
inline Bytes16 DigitsOf(Bytes16 nibbles) {
  const auto letters = reinterpret_cast<Bytes16>(nibbles > InEach(9));
  return nibbles + InEach('0') + (letters & InEach('a' - '0' - 10));
}

template <std::size_t N>
bool AllLowerHex(const char* text) {
  static_assert(N % 16 == 0);
  Bytes16 good = InEach(-1);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < N; i += 16) good &= IsLowerHexDigit(Load16(text + i));
  return AllOnes(good);
}

// False, with `bytes` as it was, unless `text` is exactly 2 × N digits of [0-9a-f].
template <std::size_t N>
bool HexDecode(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  static_assert(N % 16 == 0);
  if (text.size() != 2 * N || !AllLowerHex<2 * N>(text.data())) return false;
#pragma GCC unroll 2
  for (std::size_t i = 0; i < N; i += 16) {
    const char* const digits = text.data() + 2 * i;
    const Bytes16 decoded = DecodeDigits(Load16(digits), Load16(digits + 16));
    std::memcpy(bytes.data() + i, &decoded, sizeof(decoded));
  }
  return true;
}

// Whether the 64 bytes at `text` are the digits of the 32 bytes at `bytes`: cheaper than decoding.
inline bool AreDigitsOf(const char* text, const std::uint8_t* bytes) {
  Bytes16 same = InEach(-1);
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 32; i += 16) {
    Bytes16 raw;
    std::memcpy(&raw, bytes + i, sizeof(raw));
    using Pairs = std::uint16_t __attribute__((vector_size(16)));
    const Bytes16 nibble = InEach(0x0f);
    const auto high =
        reinterpret_cast<Bytes16>(reinterpret_cast<Pairs>(raw) >> (Pairs{} + 4)) & nibble;
    const Bytes16 low = raw & nibble;
    const Bytes16 first = DigitsOf(
        __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
    const Bytes16 second = DigitsOf(__builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11, 27,
                                                            12, 28, 13, 29, 14, 30, 15, 31));
    same &= reinterpret_cast<Bytes16>(first == Load16(text + 2 * i));
    same &= reinterpret_cast<Bytes16>(second == Load16(text + 2 * i + 16));
  }
  return AllOnes(same);
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
