// What becomes of rows when the mode changes.

#ifndef WAYBILL_STORE_IMAGES_CHANGE_MODE_H_
#define WAYBILL_STORE_IMAGES_CHANGE_MODE_H_

#include "store/images/images.h"
#include "waybill/result.h"

namespace waybill::internal {

// To the mode of `images`. To mode kubelet: a kubelet asks by the very ref, so each recorded row
// stands under each of its texts. To mode strict: rows whose refs spell one digest, or an alias,
// become one.
Result<void> ChangeMode(Images& images);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_CHANGE_MODE_H_
