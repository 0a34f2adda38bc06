#include "store/base/names.h"

#include <string>

#include "store/base/caught.h"
#include "store/base/quote.h"

namespace waybill::internal {

Result<std::uint8_t> NumberOf(std::string_view name, std::string_view what,
                              std::span<const EnumName> names) {
  return Guarded([&]() -> Result<std::uint8_t> {
    std::string known;
    for (const EnumName& one : names) {
      if (one.name == name) return one.value;
      (known += known.empty() ? "" : ", ") += one.name;
    }
    return Error{ErrorCode::kInvalidArgument,
                 "there is no " + std::string(what) + " " + QuoteForMessage(name),
                 "write one of " + known};
  });
}

}  // namespace waybill::internal
