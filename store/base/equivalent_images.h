// The image strings that name the same image as a given one: what to try where only the hash of a
// string is known.

#ifndef WAYBILL_STORE_BASE_EQUIVALENT_IMAGES_H_
#define WAYBILL_STORE_BASE_EQUIVALENT_IMAGES_H_

#include <string>
#include <string_view>
#include <vector>

namespace waybill::internal {

// `image` itself and every other string with the same full form. `image` alone where it has none.
std::vector<std::string> EquivalentImages(std::string_view image);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_EQUIVALENT_IMAGES_H_
