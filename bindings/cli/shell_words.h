// The words of a command as a shell or systemd reads them, without running anything.

#ifndef WAYBILL_BINDINGS_CLI_SHELL_WORDS_H_
#define WAYBILL_BINDINGS_CLI_SHELL_WORDS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace waybill::cli {

inline constexpr std::size_t kMaxShellBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxShellWords = 20'000;

struct CommandWord {
  std::string text;  // without quotes; variables and substitutions as they are written
  // A variable, substitution or specifier of systemd, which is replaced before the program sees it.
  bool has_variable = false;
  bool begins_with_variable = false;  // the word can become a flag, several words, or none
  bool has_list = false;              // "$@" and its like: several words, even in quotes
  std::size_t variable_at = 0;        // where the first one begins in `text`
};

using ShellCommand = std::vector<CommandWord>;

enum class ShellRules {
  kShell,    // operators, redirections and comments; redirections are left out of the result
  kSystemd,  // ExecStart=, its lines joined: words and quotes only; "$$" is '$', "%%" is '%'
  // A file of assignments or flags: a comment is a line of its own, and there are no operators.
  kAssignments,
};

// The commands of the text, each without its redirections; none is empty. kInvalidArgument: a quote
// or substitution that does not end, a here-document, a zero byte, $'…' or $"…" of a shell, an
// escape of systemd such as \x2d, an operator where there are none. kLimitExceeded: more than
// kMaxShellBytes, or kMaxShellWords.
Result<std::vector<ShellCommand>> ReadShellCommands(std::string_view text, ShellRules rules);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SHELL_WORDS_H_
