// What can stand next on a command line: for the shells' completion.

#ifndef WAYBILL_BINDINGS_CLI_COMPLETION_H_
#define WAYBILL_BINDINGS_CLI_COMPLETION_H_

#include <string>
#include <string_view>

#include "bindings/cli/registry.h"

namespace waybill::cli {

inline constexpr const char* kCompleteWord = "__complete";

// What `waybill __complete LINE` prints for the scripts of `waybill completion`: "words", "files"
// or "directories", then a word a line, with a tab and its description behind it. They are for the
// last word of `line`, a command line up to the cursor, which may be empty: commands, flags, their
// values, and from the store, if it can be read, what it holds. No word has a character that means
// something to a shell: it is put on the command line as it is.
std::string Completed(const Registry& registry, std::string_view line);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_COMPLETION_H_
