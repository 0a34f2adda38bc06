// The spelling of an enumeration whose numbers are stored.

#ifndef WAYBILL_STORE_BASE_STORED_NAME_H_
#define WAYBILL_STORE_BASE_STORED_NAME_H_

#include <array>
#include <cstddef>
#include <string_view>

namespace waybill::internal {

// `names` begins with that of 1. A number of a later version is "unknown".
template <typename Enum, std::size_t N>
std::string_view StoredName(Enum value, const std::array<std::string_view, N>& names) {
  const auto number = static_cast<std::size_t>(value);
  return number >= 1 && number <= N ? names[number - 1] : "unknown";
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_STORED_NAME_H_
