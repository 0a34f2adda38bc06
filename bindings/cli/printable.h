// Text for a terminal, and for a shell.

#ifndef WAYBILL_BINDINGS_CLI_PRINTABLE_H_
#define WAYBILL_BINDINGS_CLI_PRINTABLE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace waybill::cli {

// `text` made safe for a terminal: escapes control characters, bytes that are not UTF-8, and
// characters that reorder or break lines (\n, \x1b, \u202e).
std::string Printable(std::string_view text);

// `text` as one word of a POSIX shell.
std::string ShellWord(std::string_view text);

// What `sequence`, one of valid UTF-8, stands for.
std::uint32_t CodePointOf(std::string_view sequence);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PRINTABLE_H_
