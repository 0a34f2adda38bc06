// How each command is usually called: for its page and its help.

#ifndef WAYBILL_BINDINGS_CLI_EXAMPLES_H_
#define WAYBILL_BINDINGS_CLI_EXAMPLES_H_

#include <string>
#include <string_view>

namespace waybill::cli {

// Lines of a shell; empty: there is no such command. The store is that of the configuration file.
std::string ExamplesOf(std::string_view command);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_EXAMPLES_H_
