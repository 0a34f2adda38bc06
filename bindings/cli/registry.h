// All commands with their flags.

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

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_REGISTRY_H_
