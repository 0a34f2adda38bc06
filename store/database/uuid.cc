#include "store/database/uuid.h"

#include <bit>
#include <cstring>

#include "store/base/hex.h"

namespace waybill::internal {

namespace {

template <typename Word>
std::uint64_t LoadDigits(const char* text) {
  Word digits;
  std::memcpy(&digits, text, sizeof(digits));
  return digits;
}

constexpr std::uint64_t InEachByte(std::uint64_t byte) { return byte * 0x0101010101010101; }

// Eight digits of [0-9a-f], the first in the lowest byte, as four bytes. False: not such digits.
bool DecodeDigits(std::uint64_t digits, std::uint32_t& bytes) {
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
  static_assert(std::endian::native == std::endian::little, "the first digit is the lowest byte");
  constexpr std::size_t kTextBytes = 36;
  if (text.size() != kTextBytes || text[8] != '-' || text[13] != '-' || text[18] != '-' ||
      text[23] != '-') {
    return false;
  }
  const auto four = [&](std::size_t at) { return LoadDigits<std::uint32_t>(text.data() + at); };
  const auto eight = [&](std::size_t at) { return LoadDigits<std::uint64_t>(text.data() + at); };
  std::array<std::uint32_t, 4> words{};
  if (!DecodeDigits(eight(0), words[0]) || !DecodeDigits(four(9) | four(14) << 32, words[1]) ||
      !DecodeDigits(four(19) | four(24) << 32, words[2]) || !DecodeDigits(eight(28), words[3])) {
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
