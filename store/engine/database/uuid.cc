#include "store/engine/database/uuid.h"

#include <bit>
#include <cstring>

#include "store/base/hex.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kTextBytes = 36;

template <typename Word>
std::uint64_t LoadDigits(const char* text) {
  Word digits;
  std::memcpy(&digits, text, sizeof(digits));
  return digits;
}

constexpr std::uint64_t InEachByte(std::uint64_t byte) { return byte * 0x0101010101010101; }

// Eight digits of [0-9a-f], the first in the lowest byte, as four bytes. False: not such digits.
bool DecodeEight(std::uint64_t digits, std::uint32_t& bytes) {
  constexpr std::uint64_t kHigh = InEachByte(0x80);
  // Sets the high bit of each byte that is at least `low`. Bytes below 0x80 do not carry over.
  const auto at_least = [digits](char low) {
    return digits + InEachByte(0x80U - static_cast<unsigned char>(low));
  };
  const std::uint64_t digit = at_least('0') & ~at_least('9' + 1);
  const std::uint64_t letter = at_least('a') & ~at_least('f' + 1) & kHigh;
  if ((digits & kHigh) != 0 || ((digit | letter) & kHigh) != kHigh) return false;
  std::uint64_t nibbles = (digits & InEachByte(0x0f)) + (letter >> 7) * 9;
  nibbles = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles | nibbles >> 8) & 0x0000ffff0000ffff;
  bytes = static_cast<std::uint32_t>(nibbles | nibbles >> 16);
  return true;
}

}  // namespace

// Every decision decodes a UID, so the digits stay in registers: reading them back from memory
// would stall.
bool DecodeUuid(std::string_view text, std::array<std::uint8_t, 16>& raw) {
#ifdef __SSE2__
  if (text.size() != kTextBytes) return false;
  const auto four = [&](std::size_t at) { return LoadDigits<std::uint32_t>(text.data() + at); };
  const auto eight = [&](std::size_t at) { return LoadDigits<std::uint64_t>(text.data() + at); };
  const auto both = [](std::uint64_t low, std::uint64_t high) {
    return _mm_set_epi64x(static_cast<std::int64_t>(high), static_cast<std::int64_t>(low));
  };
  const bool dashes = text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
  const __m128i first = both(eight(0), four(9) | four(14) << 32);
  const __m128i second = both(four(19) | four(24) << 32, eight(28));
  if (!dashes || !AllOnes(_mm_and_si128(IsLowerHexDigit(first), IsLowerHexDigit(second)))) {
    return false;
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(raw.data()), DecodeDigits(first, second));
  return true;
#else
  return DecodeUuidPlain(text, raw);
#endif
}

bool DecodeUuidPlain(std::string_view text, std::array<std::uint8_t, 16>& raw) {
  static_assert(std::endian::native == std::endian::little, "the first digit is the lowest byte");
  if (text.size() != kTextBytes || text[8] != '-' || text[13] != '-' || text[18] != '-' ||
      text[23] != '-') {
    return false;
  }
  const auto four = [&](std::size_t at) { return LoadDigits<std::uint32_t>(text.data() + at); };
  const auto eight = [&](std::size_t at) { return LoadDigits<std::uint64_t>(text.data() + at); };
  std::array<std::uint32_t, 4> words{};
  if (!DecodeEight(eight(0), words[0]) || !DecodeEight(four(9) | four(14) << 32, words[1]) ||
      !DecodeEight(four(19) | four(24) << 32, words[2]) || !DecodeEight(eight(28), words[3])) {
    return false;
  }
  std::memcpy(raw.data(), words.data(), raw.size());
  return true;
}

std::string EncodeUuid(std::span<const std::uint8_t, 16> raw) {
  const std::string hex = HexEncode(raw);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace waybill::internal
