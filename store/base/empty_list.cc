#include "store/base/empty_list.h"

namespace waybill::internal {

std::string HowMany(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

Error EmptyList(std::string_view list, std::string_view holds, std::string_view outcome) {
  return {ErrorCode::kInvalidArgument,
          std::string(list) + " empty, but the store " + std::string(holds) + "; " +
              std::string(outcome),
          {},
          Hint::kAllowEmpty};
}

}  // namespace waybill::internal
