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

namespace CLI {
class App;
}

namespace waybill::cli {

// What every command takes.
struct CommonFlags {
  bool json = false;
  std::optional<std::string> format;
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
  struct Entry {
    std::unique_ptr<Command> command;
    std::string task;  // what it is for, as help and the manual head it
    CLI::App* app;
    Flags flags;
    CommonFlags common = {};
  };

  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  CLI::App& root() { return *root_; }
  const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }
  // nullptr: there is no such command.
  Entry* Find(std::string_view name) const;
  std::vector<std::string> Names() const;
  // The flags of all commands that take settings, by name.
  std::map<std::string, const Flag*> FlagsWithSettings() const;

 private:
  void Add(std::unique_ptr<Command> command, const char* task);

  std::unique_ptr<CLI::App> root_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

inline constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0  done; the answer is yes; no pull is needed\n"
    "  1  the answer is no; the image must be pulled\n"
    "  2  wrong usage: a flag, or a file that a flag names\n"
    "  3  the store or the output refused; standard error says what was left as it was";

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_REGISTRY_H_
