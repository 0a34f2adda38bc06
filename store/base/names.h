// How enumerations are spelt.

#ifndef WAYBILL_STORE_BASE_NAMES_H_
#define WAYBILL_STORE_BASE_NAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

// nullptr: no enumerator has this number; a later version may know it.
constexpr const EnumName* NameOf(std::uint8_t value, std::span<const EnumName> names) {
  for (const EnumName& one : names) {
    if (one.value == value) return &one;
  }
  return nullptr;
}
// "unknown" for such a number.
constexpr std::string_view WordOf(std::uint8_t value, std::span<const EnumName> names) {
  const EnumName* const name = NameOf(value, names);
  return name == nullptr ? "unknown" : name->name;
}
// "strict, kubelet"
std::string WordsOf(std::span<const EnumName> names);

template <typename E>
constexpr bool HasWord(E value) {
  return NameOf(static_cast<std::uint8_t>(value), kWords<E>) != nullptr;
}
template <typename E>
constexpr std::string_view WordOf(E value) {
  return WordOf(static_cast<std::uint8_t>(value), kWords<E>);
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

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_NAMES_H_
