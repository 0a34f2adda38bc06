#include "store/record/uuid.h"

#include <cstring>

#include "store/base/hex.h"

namespace waybill::internal {

bool DecodeUuid(std::string_view text, std::array<std::uint8_t, 16>& raw) {
  constexpr std::size_t kTextBytes = 36;
  if (text.size() != kTextBytes || text[8] != '-' || text[13] != '-' || text[18] != '-' ||
      text[23] != '-') {
    return false;
  }
  char digits[32];
  std::memcpy(digits, text.data(), 8);
  std::memcpy(digits + 8, text.data() + 9, 4);
  std::memcpy(digits + 12, text.data() + 14, 4);
  std::memcpy(digits + 16, text.data() + 19, 4);
  std::memcpy(digits + 20, text.data() + 24, 12);
  return HexDecode({digits, sizeof(digits)}, raw);
}

std::string EncodeUuid(std::span<const std::uint8_t, 16> raw) {
  const std::string hex = HexEncode(raw);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace waybill::internal
