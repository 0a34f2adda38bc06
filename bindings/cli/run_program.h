// Runs a program of the node, and reads what it prints.

#ifndef WAYBILL_BINDINGS_CLI_RUN_PROGRAM_H_
#define WAYBILL_BINDINGS_CLI_RUN_PROGRAM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace waybill::cli {

// Its path, by the absolute directories of PATH. Empty: it is not installed.
std::string FindProgram(std::string_view name);

struct RunProgramOptions {
  std::size_t max_bytes = 4096;  // of its output
  bool errors_too = false;       // its standard error is a part of the output; else it is dropped
};

struct Ended {
  std::string output;
  int status = 0;  // of its exit
};

// Runs arguments[0], a path, with /dev/null as standard input, and waits until it ends. The error
// says why it did not run to its end: it can't be started, printed too much (it is killed), or
// ended by a signal.
tl::expected<Ended, std::string> RunProgram(std::vector<std::string> arguments,
                                            const RunProgramOptions& options = {});

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RUN_PROGRAM_H_
