// How enumerations are spelt.

#ifndef WAYBILL_STORE_BASE_NAMES_H_
#define WAYBILL_STORE_BASE_NAMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "waybill/result.h"

namespace waybill::internal {

// The enumerators of an enumeration, each beside its name: no order can be wrong.
struct EnumName {
  std::uint8_t value;
  std::string_view name;
};
template <typename E, std::size_t kCount>
constexpr auto Names(const std::pair<E, std::string_view> (&names)[kCount]) {
  std::array<EnumName, kCount> made{};
  for (std::size_t i = 0; i < kCount; ++i) {
    made[i] = {static_cast<std::uint8_t>(names[i].first), names[i].second};
  }
  return made;
}

// The words of an enumeration, by NamesOf (store/base/words.h), which is found by its argument.
template <typename E>
inline constexpr auto kWords = NamesOf(E{});

// False: no enumerator has this number; a later version may know it.
template <typename E>
constexpr bool HasWord(E value) {
  return std::any_of(kWords<E>.begin(), kWords<E>.end(), [value](const EnumName& one) {
    return one.value == static_cast<std::uint8_t>(value);
  });
}
// "unknown" where HasWord is false.
template <typename E>
constexpr std::string_view WordOf(E value) {
  for (const EnumName& one : kWords<E>) {
    if (one.value == static_cast<std::uint8_t>(value)) return one.name;
  }
  return "unknown";
}

// kInvalidArgument: not one of `names`. The message calls it a `what`, and the hint lists them all.
Result<std::uint8_t> NumberOf(std::string_view name, std::string_view what,
                              std::span<const EnumName> names);
template <typename E>
Result<E> FromWord(std::string_view name, std::string_view what) {
  auto number = NumberOf(name, what, kWords<E>);
  if (!number) return std::move(number).error();
  return static_cast<E>(*number);
}

// The names stand under their numbers.
template <typename Enum, std::size_t kCount>
constexpr std::string_view NameIn(const std::string_view (&names)[kCount], Enum value,
                                  std::string_view otherwise = {}) {
  const auto number = static_cast<std::size_t>(value);
  return number < kCount ? names[number] : otherwise;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_NAMES_H_
