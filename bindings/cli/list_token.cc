#include "bindings/cli/list_token.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// Digits only: from_chars would also take a sign.
bool ReadWholeNumber(std::string_view text, std::uint64_t most, std::uint64_t& number) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ec == std::errc{} && number <= most;
}

bool ReadBootId(std::string_view text, BootTime& time) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != 2 * time.boot_id.size()) return false;
  for (std::size_t i = 0; i < time.boot_id.size(); ++i) {
    const std::size_t high = kDigits.find(text[2 * i]);
    const std::size_t low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    time.boot_id[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace

std::string BootIdText(const BootTime& time) {
  std::string text;
  for (const std::uint8_t byte : time.boot_id) text += fmt::format("{:02x}", byte);
  return text;
}

std::string FormatListToken(const ListToken& token) {
  return fmt::format("{}.{}.{}.{}", token.commit, token.drawn.nanoseconds, token.store,
                     BootIdText(token.drawn));
}

Result<ListToken> ParseListToken(std::string_view flag, std::string_view text) {
  std::array<std::string_view, 4> parts;
  std::string_view rest = text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end =
        i + 1 == parts.size() ? rest.size() : std::min(rest.find('.'), rest.size());
    parts[i] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  ListToken token;
  std::uint64_t nanoseconds = 0;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kMostNanoseconds =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (ReadWholeNumber(parts[0], kMost, token.commit) &&
      ReadWholeNumber(parts[1], kMostNanoseconds, nanoseconds) &&
      ReadWholeNumber(parts[2], kMost, token.store) && ReadBootId(parts[3], token.drawn)) {
    token.drawn.nanoseconds = static_cast<std::int64_t>(nanoseconds);
    return token;
  }
  return BadFlag(flag, fmt::format("'{}' is not a list token", text.substr(0, 200)),
                 "give what --begin printed before the list was made");
}

Result<ListToken> DrawListToken(const StoreFlags& flags) {
  return WithWriter(Writer::Open(flags), [](Writer& writer) { return writer.owner().BeginList(); });
}

Result<ExitCode> PrintListToken(const StoreFlags& flags, Output& out) {
  auto token = TRY(DrawListToken(flags));
  out.WriteJson({{"token", FormatListToken(token)}});
  out.WriteName(FormatListToken(token));
  out.WriteLine(FormatListToken(token));
  return ExitCode::kYes;
}

void ListTokenFlags::Declare(Flags& flags, const std::string& lists) {
  flags.Switch("--begin", &begin, fmt::format("print a token; do this before {} made", lists));
  flags.Value("--token", &token, "TOKEN", "the token", ParseListToken);
}

}  // namespace waybill::cli
