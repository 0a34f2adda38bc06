// What the store knows of time. The wall clock jumps; CLOCK_BOOTTIME does not, and ends with a
// boot. So what must last counts how long the node was seen to run, over all boots.

#ifndef WAYBILL_STORE_DISK_CLOCKS_H_
#define WAYBILL_STORE_DISK_CLOCKS_H_

#include <chrono>
#include <cstdint>

#include "waybill/values.h"

namespace waybill::internal {

// One day: a clock that is corrected by less catches up soon.
inline constexpr std::int64_t kMaxClockLeadSeconds = std::int64_t{24} * 60 * 60;
// 2025-01-01. A clock before that has lost its time and proves nothing.
inline constexpr std::int64_t kEarliestClockSeconds = 1735689600;

// 70 years: a bound for what is stored.
inline constexpr std::chrono::nanoseconds kLongestRun{std::int64_t{1} << 61};

// As of the newest commit.
struct Clocks {
  BootTime boot = {};   // no boot ID: it was never known
  Timestamp wall = {};  // what the clock said, or what it must have said if that was before 2025
  // How long the node was seen to run: never more than the truth. Off time is no part of it.
  std::chrono::nanoseconds ran{0};
  // `ran` when the present boot began, and when the newest known kubelet did.
  std::chrono::nanoseconds boot_ran{0};
  std::chrono::nanoseconds kubelet_ran{0};
  // By which ages are measured. It goes on with `ran` or with the wall clock, whichever is more,
  // and never back: a clock that jumps ahead makes what was proven before older by that jump, and
  // nothing younger when it is put right.
  Timestamp ages = {};
  // By which ends that somebody set are measured: the wall clock's, but one that went back by a day
  // at most makes nothing last longer.
  Timestamp ends = {};

  // The same clocks, later. An unknown boot or a clock before 2025 moves nothing.
  Clocks At(const BootTime& now, Timestamp clock) const;
  // `ran` in seconds, and never 0, which is stored for "not said".
  std::uint64_t RanSeconds() const;
  // Whether the node has run for that long since RanSeconds() was `earlier`.
  bool HasRunSince(std::uint64_t earlier, std::chrono::seconds span) const;

  friend bool operator==(const Clocks&, const Clocks&) = default;
};

// Stops at the bounds of nanoseconds and of time stamps.
std::chrono::nanoseconds Between(Timestamp from, Timestamp to);
Timestamp Plus(Timestamp time, std::chrono::nanoseconds span);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_CLOCKS_H_
