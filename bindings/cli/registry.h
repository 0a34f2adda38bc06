// All commands with their flags, and what is made of them: the reading of a command line, help,
// manual pages, completion.

#ifndef WAYBILL_BINDINGS_CLI_REGISTRY_H_
#define WAYBILL_BINDINGS_CLI_REGISTRY_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/flags.h"
#include "bindings/cli/output.h"
#include "waybill/result.h"

namespace waybill::cli {

// What every command takes.
struct CommonFlags {
  Format format = Format::kTable;
  bool quiet = false;
  bool no_headers = false;
  bool no_trunc = false;
  bool no_progress = false;
  bool verbose = false;
  std::optional<std::string> config;

  void Declare(Flags& flags);
};

class Registry {
 public:
  // A command, or an action of one.
  struct Entry {
    Command command;
    Entry* group = nullptr;  // whose action it is
    std::unique_ptr<Call> call = {};
    std::vector<Entry*> actions = {};
    Flags flags = {};
    CommonFlags common = {};

    // "userns get".
    std::string name() const;
    // nullptr: there is none, or none by default.
    Entry* FindAction(std::string_view name) const;
    Entry* default_action() const { return FindAction(command.default_action); }
    // Of its own flags, or those of any action.
    const Flag* FindFlag(std::string_view name) const;
  };

  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Each command, with its actions behind it.
  const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }
  // The command of that name; nullptr: there is none.
  Entry* Find(std::string_view name) const;
  // The flags of all commands that take settings, by name.
  std::map<std::string, const Flag*> FlagsWithSettings() const;

 private:
  Entry* Add(const Command& command, Entry* group);

  std::vector<std::unique_ptr<Entry>> entries_;
};

inline constexpr const char* kExitCodes =
    "  0  done; the answer is yes; no pull is needed\n"
    "  1  the answer is no; the image must be pulled\n"
    "  2  wrong usage: a flag, or a file that a flag names\n"
    "  3  the store or the output refused; standard error says what was left as it was\n";

// What --help prints: of `waybill`, or of a command.
std::string HelpOf(const Registry& registry);
std::string HelpOf(const Registry::Entry& entry);

// Which command is called. Its flags have their texts.
struct CommandLine {
  Registry::Entry* command = nullptr;  // whose flags have what was typed; or none is called
  bool wants_help = false;             // of `command`, if there is one
};

// Flags may stand anywhere, also before the command; `help COMMAND` is `COMMAND --help`. Without a
// command and without --help, --version is asked for. kInvalidArgument: there is no such command,
// action or flag, a value is missing, or there is an argument too many. A word that is not the name
// of a flag or in the place of a command or action is never quoted: it may be a secret, and logs
// are read by many.
//
// Not by a library: CLI11 takes no flag before the command, reads values such as "[a]" and "{}" in
// its own way, and quotes words in its errors.
Result<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments,
                                    const Registry& registry);

// The format of errors, whatever else is wrong with the command line.
Format FormatOfErrors(const std::vector<std::string>& arguments);

inline constexpr const char* kCompleteWord = "__complete";

// What `waybill __complete LINE` prints for the scripts of `waybill completion`: "words", "files"
// or "directories", then a word a line, with a tab and its description behind it. They are for the
// last word of `line`, a command line up to the cursor, which may be empty: commands, flags, their
// values, and from the store, if it can be read, what it holds. No word has a character that means
// something to a shell: it is put on the command line as it is.
std::string Completed(const Registry& registry, std::string_view line);

// In mdoc(7).
struct ManualPage {
  std::string name;     // "waybill-check"
  std::string section;  // "1"
  std::string text;

  std::string file() const { return name + "." + section; }
};

// waybill.1, a page for each command, waybill-config.5 and waybill-glossary.7.
std::vector<ManualPage> ManualOf(const Registry& registry);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_REGISTRY_H_
