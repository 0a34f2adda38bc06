#include "store/disk/clocks.h"

#include <algorithm>
#include <limits>

namespace waybill::internal {

namespace {

constexpr std::int64_t kPerSecond = 1'000'000'000;
constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int64_t>::max() / kPerSecond - 1;

// Whether `time` came from a clock that was ahead. `clock` is the time now.
bool IsFromClockAhead(Timestamp time, Timestamp clock) {
  return clock.seconds >= kEarliestClockSeconds &&
         Between(clock, time) >
             std::chrono::seconds(kMaxClockLeadSeconds + 1) - std::chrono::nanoseconds(1);
}

}  // namespace

std::chrono::nanoseconds Between(Timestamp from, Timestamp to) {
  std::int64_t seconds = 0;
  if (__builtin_sub_overflow(to.seconds, from.seconds, &seconds)) {
    seconds = to.seconds > from.seconds ? kMostSeconds : -kMostSeconds;
  }
  seconds = std::clamp(seconds, -kMostSeconds, kMostSeconds);
  return std::chrono::nanoseconds(seconds * kPerSecond + to.nanoseconds - from.nanoseconds);
}

Timestamp Plus(Timestamp time, std::chrono::nanoseconds span) {
  std::int64_t fraction = time.nanoseconds + span.count() % kPerSecond;
  std::int64_t carried = span.count() / kPerSecond;
  if (fraction < 0) {
    fraction += kPerSecond;
    --carried;
  }
  carried += fraction / kPerSecond;
  Timestamp sum{0, static_cast<std::int32_t>(fraction % kPerSecond)};
  if (__builtin_add_overflow(time.seconds, carried, &sum.seconds)) {
    sum.seconds = carried > 0 ? std::numeric_limits<std::int64_t>::max()
                              : std::numeric_limits<std::int64_t>::min();
  }
  return sum;
}

Clocks Clocks::At(const BootTime& now, Timestamp clock) const {
  Clocks later = *this;
  std::chrono::nanoseconds since{0};
  const bool is_known = boot.boot_id != BootTime().boot_id;
  if (now.boot_id == boot.boot_id) {
    if (is_known && now.nanoseconds > std::max<std::int64_t>(boot.nanoseconds, 0)) {
      since =
          std::chrono::nanoseconds(now.nanoseconds - std::max<std::int64_t>(boot.nanoseconds, 0));
      later.boot = now;
    }
  } else if (now.boot_id != BootTime().boot_id) {
    if (is_known) since = std::chrono::nanoseconds(std::max<std::int64_t>(now.nanoseconds, 0));
    later.boot = now;
    // It began after all that was before, however short ago that is.
    if (is_known) later.boot_ran = ran + std::min(since, std::chrono::nanoseconds(1));
  }
  later.ran = std::min(ran + std::min(since, kLongestRun), kLongestRun);
  std::chrono::nanoseconds aged = since;
  if (clock.seconds >= kEarliestClockSeconds) {
    if (wall.seconds >= kEarliestClockSeconds) aged = std::max(aged, Between(wall, clock));
    later.wall = clock;
  } else if (wall.seconds >= kEarliestClockSeconds) {
    later.wall = Plus(wall, since);
  }
  later.ages = ages == Timestamp() ? clock : Plus(ages, aged);
  later.ends = Plus(ends, since);
  later.ends = IsFromClockAhead(later.ends, clock) ? clock : std::max(clock, later.ends);
  return later;
}

std::uint64_t Clocks::RanSeconds() const {
  return static_cast<std::uint64_t>(ran.count() / kPerSecond) + 1;
}

bool Clocks::HasRunSince(std::uint64_t earlier, std::chrono::seconds span) const {
  const std::uint64_t now = RanSeconds();
  return now >= earlier && now - earlier >= static_cast<std::uint64_t>(span.count());
}

}  // namespace waybill::internal
