// Recovers from a clock that was ahead and was corrected. Under closed rules time stamps never
// decrease, so a clock that goes back makes no record look older than it is. But one wrong time in
// the future must not last for ever.

#ifndef WAYBILL_STORE_NODE_RECORDS_CLOCK_AHEAD_H_
#define WAYBILL_STORE_NODE_RECORDS_CLOCK_AHEAD_H_

#include <cstdint>

#include "store/engine/database/clocks.h"
#include "store/engine/database/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// If the store's latest time came from a clock that was ahead, continues with the clock's time.
// Gives that time to each record whose time came from a clock that was ahead. They were all written
// before, so none becomes older than it is. Returns how many changed.
Result<std::uint64_t> MendTimes(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_CLOCK_AHEAD_H_
