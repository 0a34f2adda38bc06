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

// Past a string that begins at `at`; npos: it does not end.
std::size_t AfterString(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  const std::string_view end = std::string_view(three).substr(0, is_long ? 3 : 1);
  for (at += end.size(); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text.substr(at).starts_with(end)) {
      return at + end.size();
    } else if (!is_long && text[at] == '\n') {
      break;
    }
  }
  return std::string_view::npos;
}

// toml++ 3.3 runs into what it calls unreachable, or an assertion, at letters that are not ASCII
// outside of strings and comments, where TOML 1.0 has none.
Result<void> CheckIsAscii(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  std::size_t at = text.starts_with(kMark) ? kMark.size() : 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = text.find('\n', at);
    } else if (c == '"' || c == '\'') {
      at = AfterString(text, at);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      const std::string_view before = text.substr(0, at);
      const auto line = 1 + std::count(before.begin(), before.end(), '\n');
      return Error{
          ErrorCode::kInvalidArgument,
          "line " + std::to_string(line) + ": a character that is not ASCII, outside of a string",
          {}};
    } else {
      ++at;
    }
  }
  return {};
}

}  // namespace

Error AboutLine(const toml::source_region& source, std::string_view what, ErrorCode code) {
  return {code, "line " + std::to_string(source.begin.line) + ": " + std::string(what), {}};
}

Result<toml::table> ReadToml(std::string_view text, std::size_t most) {
  TRY(CheckTomlSize(text, most));
  TRY(CheckIsAscii(text));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) return AboutLine(parsed.error().source(), parsed.error().description());
  return std::move(parsed).table();
}

}  // namespace waybill::internal
