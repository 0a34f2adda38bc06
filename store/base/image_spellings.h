// Decides which image strings name the same repository or the same image.

#ifndef WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_
#define WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::internal {

// The parts that RepositoryOf(image) is made of, in order; some are empty. Two images name the same
// repository exactly if their parts are equal. Allocates nothing.
using RepositoryParts = std::array<std::string_view, 3>;
RepositoryParts RepositoryPartsOf(std::string_view image);

// `image` and every other string with the same full form; only `image` if it has no full form. Used
// if only the hash of a string is known.
std::vector<std::string> EquivalentImages(std::string_view image);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_
