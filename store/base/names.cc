#include "store/base/names.h"

#include <algorithm>
#include <string>

#include "store/base/caught.h"
#include "store/base/quote.h"

namespace waybill::internal {

std::string WordsOf(std::span<const EnumName> names) {
  std::string words;
  for (const EnumName& one : names) (words += words.empty() ? "" : ", ") += one.name;
  return words;
}

Result<std::uint8_t> NumberOf(std::string_view name, std::string_view what,
                              std::span<const EnumName> names) {
  return Guarded([&]() -> Result<std::uint8_t> {
    const auto known = std::ranges::find(names, name, &EnumName::name);
    if (known != names.end()) return known->value;
    return Error{ErrorCode::kInvalidArgument,
                 "there is no " + std::string(what) + " " + QuoteForMessage(name),
                 "write one of " + WordsOf(names)};
  });
}

}  // namespace waybill::internal
