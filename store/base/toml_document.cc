#include "store/base/toml_document.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/base/try.h"

namespace waybill::internal {
namespace {

// toml++ nests a table for each dot of a key, without a bound, and destroys them recursively.
constexpr std::ptrdiff_t kMaxDotsPerLine = 256;

Result<void> CheckTomlSize(std::string_view toml, std::size_t most) {
  if (toml.size() > most) {
    return Error{ErrorCode::kLimitExceeded,
                 std::to_string(toml.size()) + " bytes of TOML, and " + std::to_string(most) +
                     " are allowed",
                 {}};
  }
  for (std::size_t line = 1; !toml.empty(); ++line) {
    const std::string_view text = toml.substr(0, toml.find('\n'));
    if (std::count(text.begin(), text.end(), '.') > kMaxDotsPerLine) {
      return Error{ErrorCode::kLimitExceeded,
                   "line " + std::to_string(line) + ": more than " +
                       std::to_string(kMaxDotsPerLine) + " dots",
                   {}};
    }
    toml.remove_prefix(std::min(text.size() + 1, toml.size()));
  }
  return {};
}

}  // namespace

Error AboutLine(const toml::source_region& source, std::string_view what, ErrorCode code) {
  return {code, "line " + std::to_string(source.begin.line) + ": " + std::string(what), {}};
}

Result<toml::table> ReadToml(std::string_view text, std::size_t most) {
  TRY(CheckTomlSize(text, most));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) return AboutLine(parsed.error().source(), parsed.error().description());
  return std::move(parsed).table();
}

}  // namespace waybill::internal
