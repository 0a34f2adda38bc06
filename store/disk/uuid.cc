#include "store/disk/uuid.h"

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

}  // namespace

// Every decision decodes a UID, so the digits stay in registers: reading them back from memory
// would stall.
bool DecodeUuid(std::string_view text, std::array<std::uint8_t, 16>& raw) {
  constexpr std::size_t kTextBytes = 36;
  if (text.size() != kTextBytes) return false;
  const auto four = [&](std::size_t at) { return LoadDigits<std::uint32_t>(text.data() + at); };
  const auto eight = [&](std::size_t at) { return LoadDigits<std::uint64_t>(text.data() + at); };
  const auto both = [](std::uint64_t low, std::uint64_t high) {
    using Halves = std::uint64_t __attribute__((vector_size(16)));
    return reinterpret_cast<Bytes16>(Halves{low, high});
  };
  const bool dashes = text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
  const Bytes16 first = both(eight(0), four(9) | four(14) << 32);
  const Bytes16 second = both(four(19) | four(24) << 32, eight(28));
  if (!dashes || !AllOnes(IsLowerHexDigit(first) & IsLowerHexDigit(second))) return false;
  const Bytes16 decoded = DecodeDigits(first, second);
  std::memcpy(raw.data(), &decoded, sizeof(decoded));
  return true;
}

std::string EncodeUuid(std::span<const std::uint8_t, 16> raw) {
  const std::string hex = HexEncode(raw);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace waybill::internal
