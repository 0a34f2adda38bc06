// What the fixed lines of commit.mark and of the witness are made of.

#ifndef WAYBILL_STORE_ENGINE_DATABASE_CHECKED_LINE_H_
#define WAYBILL_STORE_ENGINE_DATABASE_CHECKED_LINE_H_

#include <xxhash.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace waybill::internal {

// XXH3-64 in 16 hex digits.
inline std::string SumOf(std::string_view text) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return hex;
}

inline std::string In20Digits(std::uint64_t number) {
  std::string digits(20, '0');
  for (auto at = digits.rbegin(); number != 0; number /= 10) {
    *at++ = static_cast<char>('0' + number % 10);
  }
  return digits;
}

// False: they are no number.
inline bool ReadDigits(std::string_view digits, std::uint64_t& number) {
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_DATABASE_CHECKED_LINE_H_
