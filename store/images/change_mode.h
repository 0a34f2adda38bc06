// What becomes of rows when the mode changes, and of times that came from a clock that was ahead.

#ifndef WAYBILL_STORE_IMAGES_CHANGE_MODE_H_
#define WAYBILL_STORE_IMAGES_CHANGE_MODE_H_

#include <cstdint>

#include "store/images/images.h"
#include "waybill/result.h"

namespace waybill::internal {

// To the mode of `images`. To mode kubelet: a kubelet asks by the very ref, so each recorded row
// stands under each of its texts. To mode strict: rows whose refs spell one digest, or an alias,
// become one.
Result<void> ChangeMode(Images& images);

// If the store's latest time came from a clock that was ahead, continues with the clock's time.
// Gives that time to each record whose time came from such a clock. They were all written before,
// so none becomes older than it is. Returns how many changed. One wrong time in the future must not
// last for ever where time stamps never decrease.
Result<std::uint64_t> MendTimes(Images& images);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_CHANGE_MODE_H_
