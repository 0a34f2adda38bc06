// A clock that was ahead, and is right again. Under closed rules nothing is stamped earlier than
// what was stamped before, so that a clock that went back makes no record look older than it is.
// The future that a wrong clock once told must not last for ever, though.

#ifndef WAYBILL_STORE_PULL_CLOCK_AHEAD_H_
#define WAYBILL_STORE_PULL_CLOCK_AHEAD_H_

#include <cstdint>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// A day: a clock that is put right by less catches up soon.
inline constexpr std::int64_t kMaxClockLeadSeconds = 24 * 60 * 60;
// 2025-01-01. A clock that tells an earlier time has lost its own, and proves nothing.
inline constexpr std::int64_t kEarliestClockSeconds = 1735689600;

// Whether a clock that tells `clock` shows that `time` came from one that was ahead.
bool IsFromClockAhead(Timestamp time, Timestamp clock);

// Where the latest time that the store knows came from a clock that was ahead: goes on with what
// the clock says now, and gives that time to each record that says a later one. None becomes older
// than it is: all were written before. How many there were.
Result<std::uint64_t> MendTimes(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_CLOCK_AHEAD_H_
