// The text form of a list token: <commit>.<nanoseconds>.<store>.<boot ID, 32 hex digits>.

#ifndef WAYBILL_BINDINGS_CLI_LIST_TOKEN_H_
#define WAYBILL_BINDINGS_CLI_LIST_TOKEN_H_

#include <string>
#include <string_view>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// Only what PrintListToken prints.
Result<ListToken> ParseListToken(std::string_view flag, std::string_view text);

// Draws a token for a list of images or pods.
Result<ListToken> DrawListToken(const StoreFlags& flags);
// The same, and prints it.
Result<ExitCode> PrintListToken(const StoreFlags& flags, Output& out);

// --begin and --token, of commands that take a list.
struct ListTokenFlags {
  bool begin = false;
  std::optional<ListToken> token;

  // `lists`: "the list is".
  void Declare(Flags& flags, const std::string& lists = "the list is");
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_LIST_TOKEN_H_
