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

// What the compiler calls an enumerator: "kRunning". Empty: none has this number.
template <auto kValue>
constexpr std::string_view EnumeratorName() {
  constexpr std::string_view kBefore = "kValue = ";
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find(kBefore) + kBefore.size());
  name = name.substr(0, name.find_first_of(";]"));
  return name.starts_with('(') ? std::string_view() : name.substr(name.rfind(':') + 1);
}
// "running", and a zero byte.
template <auto kValue>
inline constexpr auto kOwnWord = [] {
  constexpr std::string_view kName = EnumeratorName<kValue>().substr(1);
  std::array<char, kName.size() + 1> word{};
  for (std::size_t i = 0; i < kName.size(); ++i) word[i] = kName[i];
  word[0] = static_cast<char>(word[0] - 'A' + 'a');
  return word;
}();

// Each enumerator below `kEnd` beside its own name: "running", or "Running".
enum class First : std::uint8_t { kSmall, kCapital };
template <typename E, First kFirst = First::kSmall, std::size_t kEnd = 16>
constexpr auto OwnNames() {
  return []<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    constexpr std::size_t kCount =
        (std::size_t{!EnumeratorName<static_cast<E>(kNumbers)>().empty()} + ...);
    std::array<EnumName, kCount> names{};
    std::size_t at = 0;
    const auto add = [&]<std::size_t kNumber>() {
      constexpr E kValue = static_cast<E>(kNumber);
      constexpr std::string_view kName = EnumeratorName<kValue>();
      if constexpr (!kName.empty()) {
        names[at].value = static_cast<std::uint8_t>(kNumber);
        names[at++].name =
            kFirst == First::kSmall ? std::string_view(kOwnWord<kValue>.data()) : kName.substr(1);
      }
    };
    (add.template operator()<kNumbers>(), ...);
    return names;
  }
  (std::make_index_sequence<kEnd>());
}
// The same, but for those that are called otherwise.
template <typename E, std::size_t kCount, std::size_t kOthers>
constexpr auto But(std::array<EnumName, kCount> names,
                   const std::pair<E, std::string_view> (&others)[kOthers]) {
  for (const auto& [value, word] : others) {
    for (EnumName& one : names) {
      if (one.value == static_cast<std::uint8_t>(value)) one.name = word;
    }
  }
  return names;
}
// And 0, which is no enumerator, is "unknown".
template <std::size_t kCount>
constexpr auto OrUnknown(const std::array<EnumName, kCount>& names) {
  std::array<EnumName, kCount + 1> all{EnumName{0, "unknown"}};
  for (std::size_t i = 0; i < kCount; ++i) all[i + 1] = names[i];
  return all;
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
