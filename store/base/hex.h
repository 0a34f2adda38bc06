// Lower-case hex, strict: no other alphabet is accepted, and lengths must fit. Every decision
// decodes an image ref, a UID and a hash, so SSE2 takes 16 digits at once; the plain functions give
// the same answers elsewhere.

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

// The loops of the plain functions run over a fixed size without an early end: compilers turn them
// into vector code.
template <std::size_t N>
bool AllLowerHexPlain(const char* text) {
  std::uint8_t bad = 0;
  for (std::size_t i = 0; i < N; ++i) {
    bad = static_cast<std::uint8_t>(bad | !IsLowerHexDigit(text[i]));
  }
  return bad == 0;
}

// False, with `bytes` as it was, unless `text` is exactly 2 × N digits of [0-9a-f].
template <std::size_t N>
bool HexDecodePlain(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  if (text.size() != 2 * N || !AllLowerHexPlain<2 * N>(text.data())) return false;
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

#ifdef __SSE2__

inline __m128i Load16(const char* text) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
}

// All ones where the byte is in `first` to `last`.
inline __m128i IsBetween(__m128i bytes, char first, char last) {
  const __m128i from_first = _mm_sub_epi8(bytes, _mm_set1_epi8(first));
  return _mm_cmpeq_epi8(_mm_min_epu8(from_first, _mm_set1_epi8(static_cast<char>(last - first))),
                        from_first);
}

// All ones where the byte is a digit of [0-9a-f].
inline __m128i IsLowerHexDigit(__m128i digits) {
  return _mm_or_si128(IsBetween(digits, '0', '9'), IsBetween(digits, 'a', 'f'));
}

inline bool AllOnes(__m128i bytes) { return _mm_movemask_epi8(bytes) == 0xffff; }

// 32 digits of [0-9a-f] as 16 bytes.
inline __m128i DecodeDigits(__m128i first, __m128i second) {
  const auto pairs = [](__m128i digits) {
    // Of all digits, letters alone have bit 6. The first digit of a pair is the low byte.
    const __m128i letters = _mm_and_si128(_mm_srli_epi16(digits, 6), _mm_set1_epi8(1));
    const __m128i nines = _mm_add_epi8(_mm_slli_epi16(letters, 3), letters);
    const __m128i nibbles = _mm_add_epi8(_mm_and_si128(digits, _mm_set1_epi8(0x0f)), nines);
    return _mm_and_si128(_mm_or_si128(_mm_slli_epi16(nibbles, 4), _mm_srli_epi16(nibbles, 8)),
                         _mm_set1_epi16(0x00ff));
  };
  return _mm_packus_epi16(pairs(first), pairs(second));
}

template <std::size_t N>
bool AllLowerHex(const char* text) {
  static_assert(N % 16 == 0);
  __m128i good = _mm_set1_epi8(-1);
  for (std::size_t i = 0; i < N; i += 16) {
    good = _mm_and_si128(good, IsLowerHexDigit(Load16(text + i)));
  }
  return AllOnes(good);
}

// As HexDecodePlain.
template <std::size_t N>
bool HexDecode(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  static_assert(N % 16 == 0);
  if (text.size() != 2 * N || !AllLowerHex<2 * N>(text.data())) return false;
  for (std::size_t i = 0; i < N; i += 16) {
    const char* const digits = text.data() + 2 * i;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes.data() + i),
                     DecodeDigits(Load16(digits), Load16(digits + 16)));
  }
  return true;
}

#else

template <std::size_t N>
bool AllLowerHex(const char* text) {
  return AllLowerHexPlain<N>(text);
}

template <std::size_t N>
bool HexDecode(std::string_view text, std::array<std::uint8_t, N>& bytes) {
  return HexDecodePlain(text, bytes);
}

#endif

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
