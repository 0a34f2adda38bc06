#include "store/base/hex.h"

namespace waybill::internal {

std::string HexEncode(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kAlphabet = "0123456789abcdef";
  std::string text(bytes.size() * 2, '0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text[2 * i] = kAlphabet[bytes[i] >> 4];
    text[2 * i + 1] = kAlphabet[bytes[i] & 0xf];
  }
  return text;
}

}  // namespace waybill::internal
