// Reads a command line: which command is called, and the texts of its flags.
//
// Not by a library: CLI11 takes no flag before the command, reads values such as "[a]" and "{}" in
// its own way, and quotes words in its errors. So it was given what had been read here already.

#ifndef WAYBILL_BINDINGS_CLI_ARGUMENTS_H_
#define WAYBILL_BINDINGS_CLI_ARGUMENTS_H_

#include <string>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/registry.h"
#include "waybill/result.h"

namespace waybill::cli {

struct CommandLine {
  Registry::Entry* command = nullptr;  // whose flags have what was typed; or none is called
  bool wants_help = false;             // of `command`, if there is one
};

// Flags may stand anywhere, also before the command; `help COMMAND` is `COMMAND --help`. Without a
// command and without --help, --version is asked for. kInvalidArgument: there is no such command,
// action or flag, a value is missing, or there is an argument too many. A word that is not the name
// of a flag or in the place of a command or action is never quoted: it may be a secret, and logs
// are read by many.
Result<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments,
                                    const Registry& registry);

// The format of errors, whatever else is wrong with the command line.
Format FormatOfErrors(const std::vector<std::string>& arguments);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_ARGUMENTS_H_
