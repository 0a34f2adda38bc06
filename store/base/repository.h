// RepositoryOf without its string: what a decision can afford.

#ifndef WAYBILL_STORE_BASE_REPOSITORY_H_
#define WAYBILL_STORE_BASE_REPOSITORY_H_

#include <array>
#include <string_view>

namespace waybill::internal {

// The three parts that RepositoryOf(image) is made of, in order; some are empty.
using RepositoryParts = std::array<std::string_view, 3>;
RepositoryParts RepositoryPartsOf(std::string_view image);

// Whether two images name the same repository. Allocates nothing.
bool SameRepository(std::string_view a, std::string_view b);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_REPOSITORY_H_
