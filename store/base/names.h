// How enumerations are spelt: the names stand under their numbers.

#ifndef WAYBILL_STORE_BASE_NAMES_H_
#define WAYBILL_STORE_BASE_NAMES_H_

#include <cstddef>
#include <string_view>

namespace waybill::internal {

// `otherwise`: a number that is none, or of a later version.
template <typename Enum, std::size_t kCount>
constexpr std::string_view NameIn(const std::string_view (&names)[kCount], Enum value,
                                  std::string_view otherwise = {}) {
  const auto number = static_cast<std::size_t>(value);
  return number < kCount ? names[number] : otherwise;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_NAMES_H_
