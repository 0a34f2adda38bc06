#include "bindings/cli/list_token.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"

namespace waybill::cli {
std::string BootIdText(const BootTime& time) { return internal::HexEncode(time.boot_id); }

Result<ListToken> ParseListToken(std::string_view flag, std::string_view text) {
  std::array<std::string_view, 4> parts;
  std::string_view rest = text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end =
        i + 1 == parts.size() ? rest.size() : std::min(rest.find('.'), rest.size());
    parts[i] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  constexpr Number kNanoseconds{.most = std::numeric_limits<std::int64_t>::max()};
  const auto commit = Number()(flag, parts[0]);
  const auto nanoseconds = kNanoseconds(flag, parts[1]);
  const auto store = Number()(flag, parts[2]);
  ListToken token;
  if (commit && nanoseconds && store && internal::HexDecode(parts[3], token.drawn.boot_id)) {
    token.commit = *commit;
    token.drawn.nanoseconds = static_cast<std::int64_t>(*nanoseconds);
    token.store = *store;
    return token;
  }
  return BadFlag(flag, fmt::format("'{}' is not a list token", text.substr(0, 200)),
                 "give what --begin printed before the list was made");
}

Result<ListToken> DrawListToken(const StoreFlags& flags) {
  return WithWriter(Writer::Open(flags), [](Writer& writer) { return writer.owner().BeginList(); });
}

Result<ExitCode> PrintListToken(const StoreFlags& flags, Output& out) {
  const ListToken token = TRY(DrawListToken(flags));
  const std::string text = fmt::format("{}.{}.{}.{}", token.commit, token.drawn.nanoseconds,
                                       token.store, BootIdText(token.drawn));
  out.WriteJson({{"token", text}});
  out.WriteName(text);
  out.WriteLine(text);
  return ExitCode::kYes;
}

void ListTokenFlags::Declare(Flags& flags, const std::string& lists) {
  flags.Switch("--begin", &begin, fmt::format("print a token; do this before {} made", lists));
  flags.Value("--token", &token, "TOKEN", "the token", ParseListToken);
}

}  // namespace waybill::cli
