// An operator's words on images that came without the kubelet, or are said to have. In mode strict.

#ifndef WAYBILL_STORE_IMAGES_PRELOADED_H_
#define WAYBILL_STORE_IMAGES_PRELOADED_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The image is preloaded: the newest word counts, so an operator's closing of this copy is taken
// back. Its record stays. kInvalidArgument: two images have the digest. kConflict, without
// `pulled_too`: credentials were recorded for it.
Result<void> AllowImage(Images& images, const ListedImage& image,
                        const std::string& runtime_handler, std::string_view source,
                        std::string_view reason, bool pulled_too);

// The image is not preloaded, also one that is away. Without a record of this copy it gets one
// without credentials, or the next list would enter it again: away, if the image is. What was
// proven stays. From then on no list enters it, until AllowImage. Returns whether it was preloaded.
// kLimitExceeded: operators closed kMaxClosings.
enum class Which : std::uint8_t { kAny, kPresumed };
Result<bool> TakeOut(Images& images, std::string_view image_ref, const std::string& runtime_handler,
                     std::string_view reason, Which which);

// What is presumed of an image on the node is so. Returns whether it was presumed.
Result<bool> Confirm(Images& images, std::string_view image_ref, const std::string& runtime_handler,
                     std::string_view reason);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_PRELOADED_H_
