// Characters as ASCII has them, whatever the locale.

#ifndef WAYBILL_STORE_BASE_ASCII_H_
#define WAYBILL_STORE_BASE_ASCII_H_

#include <string>
#include <string_view>

namespace waybill::internal {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool IsLetter(char c) { return ToLower(c) >= 'a' && ToLower(c) <= 'z'; }
// Whether all are letters, digits, or one of `more`.
constexpr bool IsMadeOf(std::string_view text, std::string_view more) {
  for (const char c : text) {
    if (!IsLetter(c) && !IsDigit(c) && more.find(c) == std::string_view::npos) return false;
  }
  return true;
}
inline std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ToLower(c);
  return lower;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_ASCII_H_
