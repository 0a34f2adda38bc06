// RFC 3339 as Go's time.Parse reads it, so that waybill and the kubelet read the same times:
//
//   2026-01-02T03:04:05Z           T and Z in upper case
//   2026-01-02T3:04:05Z            an hour may have one digit
//   2026-01-02T03:04:05.678+02:00  a fraction after '.' or ','; digits past the ninth are dropped
//   2026-01-02T03:04:05-24:60      an offset may go up to 24:60
//
// No leap second, no 24:00. A time whose UTC lies outside the years 1 to 9999 is refused.

#include "store/base/timestamp.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using std::chrono::day, std::chrono::days, std::chrono::month, std::chrono::sys_days,
    std::chrono::year, std::chrono::year_month_day;

constexpr std::int64_t kSecondsPerDay = 86400;
constexpr int kFractionDigits = 9;

constexpr std::int64_t SecondsAt(year_month_day date) {
  return sys_days(date).time_since_epoch().count() * kSecondsPerDay;
}
constexpr std::int64_t kFirstSecond = SecondsAt(year(1) / 1 / 1);
constexpr std::int64_t kLastSecond = SecondsAt(year(9999) / 12 / 31) + kSecondsPerDay - 1;

using internal::IsDigit;

// Reads from the front of `rest` and removes what it read.
class Scanner {
 public:
  explicit Scanner(std::string_view rest) : rest_(rest) {}

  bool done() const { return rest_.empty(); }
  bool NextIsDigit(std::size_t at = 0) const { return at < rest_.size() && IsDigit(rest_[at]); }
  bool Skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<int> Digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!NextIsDigit(i)) return std::nullopt;
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  std::int32_t Fraction() {
    std::int32_t nanoseconds = 0;
    int digits = 0;
    for (; NextIsDigit(); rest_.remove_prefix(1)) {
      if (digits == kFractionDigits) continue;
      nanoseconds = nanoseconds * 10 + (rest_[0] - '0');
      ++digits;
    }
    for (; digits < kFractionDigits; ++digits) nanoseconds *= 10;
    return nanoseconds;
  }
  bool SkipFractionMark() {
    if (!NextIsDigit(1)) return false;
    return Skip('.') || Skip(',');
  }

 private:
  std::string_view rest_;
};

std::optional<std::int64_t> ParseOffset(Scanner& in) {
  if (in.Skip('Z')) return 0;
  const bool west = in.Skip('-');
  if (!west && !in.Skip('+')) return std::nullopt;
  const auto hours = in.Digits(2);
  if (!hours || *hours > 24 || !in.Skip(':')) return std::nullopt;
  const auto minutes = in.Digits(2);
  if (!minutes || *minutes > 60) return std::nullopt;
  const std::int64_t seconds = std::int64_t{*hours} * 3600 + std::int64_t{*minutes} * 60;
  return west ? -seconds : seconds;
}

std::optional<Timestamp> Parse(std::string_view text) {
  Scanner in(text);
  const auto y = in.Digits(4);
  if (!y || !in.Skip('-')) return std::nullopt;
  const auto mon = in.Digits(2);
  if (!mon || !in.Skip('-')) return std::nullopt;
  const auto d = in.Digits(2);
  if (!d || !in.Skip('T')) return std::nullopt;
  const auto hour = in.Digits(in.NextIsDigit(1) ? 2 : 1);
  if (!hour || *hour > 23 || !in.Skip(':')) return std::nullopt;
  const auto minute = in.Digits(2);
  if (!minute || *minute > 59 || !in.Skip(':')) return std::nullopt;
  const auto second = in.Digits(2);
  if (!second || *second > 59) return std::nullopt;

  Timestamp time;
  if (in.SkipFractionMark()) time.nanoseconds = in.Fraction();
  const auto offset = ParseOffset(in);
  if (!offset || !in.done()) return std::nullopt;

  const year_month_day date(year(*y), month(static_cast<unsigned>(*mon)),
                            day(static_cast<unsigned>(*d)));
  if (!date.ok()) return std::nullopt;
  time.seconds =
      SecondsAt(date) + std::int64_t{*hour} * 3600 + std::int64_t{*minute} * 60 + *second - *offset;
  if (time.seconds < kFirstSecond || time.seconds > kLastSecond) return std::nullopt;
  return time;
}

}  // namespace

std::string FormatTimestamp(Timestamp time) {
  const std::int64_t seconds = std::clamp(time.seconds, kFirstSecond, kLastSecond);
  // Division that rounds down: times before 1970 are negative.
  const std::int64_t past = ((seconds % kSecondsPerDay) + kSecondsPerDay) % kSecondsPerDay;
  const year_month_day date(sys_days(days((seconds - past) / kSecondsPerDay)));

  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(past / 3600), static_cast<int>(past / 60 % 60),
                static_cast<int>(past % 60));
  std::string out = text;
  if (time.nanoseconds > 0 && time.nanoseconds < 1'000'000'000) {
    std::snprintf(text, sizeof text, ".%09d", time.nanoseconds);
    out += text;
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + 'Z';
}

Result<Timestamp> ParseTimestamp(std::string_view text) try {
  if (const auto time = Parse(text)) return *time;
  return Error{ErrorCode::kInvalidArgument, "not an RFC 3339 time of the years 1 to 9999",
               "write it like 2026-01-02T03:04:05Z"};
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
