// What can stand next on a command line: for the shells' completion.

#ifndef WAYBILL_BINDINGS_CLI_COMPLETION_H_
#define WAYBILL_BINDINGS_CLI_COMPLETION_H_

#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/registry.h"

namespace waybill::cli {

// `waybill __complete LINE` prints TextOf what Complete says.
inline constexpr const char* kCompleteWord = "__complete";

struct Completions {
  enum class Kind { kWords, kFiles, kDirectories };

  struct Word {
    std::string text;
    std::string description = {};  // one line, or nothing
  };

  Kind kind = Kind::kWords;
  std::vector<Word> words = {};
};

// For the last word of `line`, a command line up to the cursor, which may be empty. Commands,
// flags, their values, and from the store, if it can be read, what it holds. No word has a
// character that means something to a shell: it is put on the command line as it is.
Completions Complete(const Registry& registry, std::string_view line);

// The answer for the scripts of `waybill completion`: "words", "files" or "directories", then a
// word a line, with a tab and its description behind it.
std::string TextOf(const Completions& completions);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_COMPLETION_H_
