#include "store/door/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "store/base/hex.h"
#include "store/base/timestamp.h"
#include "waybill/values.h"

namespace waybill {

namespace {

// "1.22.333": the numbers and the rest behind the last dot.
template <std::size_t kCount>
bool ReadNumbers(std::string_view& text, std::array<std::uint64_t, kCount>& numbers) {
  for (std::uint64_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto read = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || read == text.size() || *end != '.') return false;
    text.remove_prefix(read + 1);
  }
  return true;
}

bool ReadBootTime(std::uint64_t nanoseconds, std::string_view boot, BootTime& time) {
  if (nanoseconds > INT64_MAX || !internal::HexDecode(boot, time.boot_id)) return false;
  time.nanoseconds = static_cast<std::int64_t>(nanoseconds);
  return true;
}

}  // namespace

std::string ToText(const Timestamp& time) {
  // What a kubelet's file says to the second is stored as that second's end.
  constexpr std::int32_t kEndOfSecond = 999'999'999;
  return FormatTimestamp(time.nanoseconds == kEndOfSecond ? Timestamp{.seconds = time.seconds}
                                                          : time);
}

bool FromText(std::string_view text, Timestamp& time) {
  const auto read = ParseTimestamp(text);
  if (read) time = *read;
  return read.has_value();
}

std::string ToText(const BootTime& time) {
  return std::to_string(time.nanoseconds) + "." + internal::HexEncode(time.boot_id);
}

bool FromText(std::string_view text, BootTime& time) {
  std::array<std::uint64_t, 1> nanoseconds{};
  return ReadNumbers(text, nanoseconds) && ReadBootTime(nanoseconds[0], text, time);
}

std::string ToText(const ListToken& token) {
  return std::to_string(token.commit) + "." + std::to_string(token.drawn.nanoseconds) + "." +
         std::to_string(token.store) + "." + internal::HexEncode(token.drawn.boot_id);
}

bool FromText(std::string_view text, ListToken& token) {
  std::array<std::uint64_t, 3> numbers{};
  if (!ReadNumbers(text, numbers) || !ReadBootTime(numbers[1], text, token.drawn)) return false;
  token.commit = numbers[0];
  token.store = numbers[2];
  return true;
}

}  // namespace waybill
