#include "bindings/cli/list_token.h"

#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/for_the_command.h"

namespace waybill::cli {

Result<ListToken> ParseListToken(std::string_view flag, std::string_view text) {
  ListToken token;
  if (FromText(text, token)) return token;
  return BadFlag(flag, fmt::format("'{}' is not a list token", text.substr(0, 200)),
                 "give what --begin printed before the list was made");
}

Result<ListToken> DrawListToken(const StoreFlags& flags) {
  const auto drawn =
      TRY(WithWriter(Writer::Open(flags), [](Writer& writer) { return writer.Call(BeginList()); }));
  return drawn.token;
}

Result<ExitCode> PrintListToken(const StoreFlags& flags, Output& out) {
  const std::string text = ToText(TRY(DrawListToken(flags)));
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
