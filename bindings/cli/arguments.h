// The words of a command line, before CLI11 reads them: the command first, flags known, values in
// place.

#ifndef WAYBILL_BINDINGS_CLI_ARGUMENTS_H_
#define WAYBILL_BINDINGS_CLI_ARGUMENTS_H_

#include <string>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/registry.h"
#include "waybill/result.h"

namespace waybill::cli {

struct CommandLine {
  Registry::Entry* command = nullptr;  // nullptr: --help or --version alone
  std::vector<std::string> words;      // for CLI11
  std::vector<std::string> after_dashes;
  bool has_dashes = false;
};

// Flags may stand before the command; `help COMMAND` is `COMMAND --help`. kInvalidArgument: there
// is no such command or flag, or a flag's value is missing. A word that is not the name of a flag
// or a command is never quoted: it may be a secret, and logs are read by many.
Result<CommandLine> Arrange(const std::vector<std::string>& arguments, const Registry& registry);

// The format of errors, whatever else is wrong with the command line.
Format FormatOfErrors(const std::vector<std::string>& arguments);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_ARGUMENTS_H_
