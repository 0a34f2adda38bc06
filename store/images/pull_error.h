// Classes of errors that pulls end with.

#ifndef WAYBILL_STORE_IMAGES_PULL_ERROR_H_
#define WAYBILL_STORE_IMAGES_PULL_ERROR_H_

#include <string_view>

#include "store/base/options.h"

namespace waybill {

// Reads the text of an error of containerd, CRI-O, a CRI client or a kubelet; of an empty text
// nothing is known. Metrics go by it, and no decision: registries choose some of these words. Never
// fails; thread-safe.
PullErrorClass ClassifyPullError(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_STORE_IMAGES_PULL_ERROR_H_
