// The flags of a command: declared once. Help, manual pages, completion, and the configuration file
// are made from what is declared here.

#ifndef WAYBILL_BINDINGS_CLI_FLAGS_H_
#define WAYBILL_BINDINGS_CLI_FLAGS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace waybill::cli {

class Settings;

// CLI11 takes "[a,b]" apart where several values may stand. A word that it must leave alone begins
// with this, and Flag::values takes it off again.
inline constexpr char kShieldedWord = '\x02';
std::string Shielded(const std::string& word);

// When a flag that is not given takes its value from the settings (settings.h).
struct FromSettings {
  // None of these is given.
  std::vector<std::string> unless = {};
  // One of these is given, if there are any: a flag, or a value of the first positional.
  std::vector<std::string> only_with = {};
};

struct Flag {
  enum class Kind { kSwitch, kValue, kList, kPositional, kPositionals };

  Kind kind = Kind::kSwitch;
  std::string name = {};         // "--store"; of a positional "POD"
  std::string short_name = {};   // "-o", or nothing
  std::string placeholder = {};  // "DIR"
  std::string help = {};         // lines
  bool required = false;
  bool common = false;  // every command has it
  bool seldom = false;  // help and the manual have it behind the usual ones
  std::optional<FromSettings> settings = {};
  CLI::Option* option = nullptr;

  bool is_positional() const { return kind == Kind::kPositional || kind == Kind::kPositionals; }
  bool takes_value() const { return kind == Kind::kValue || kind == Kind::kList; }
  bool given() const;
  // As they were typed.
  std::vector<std::string> values() const;
};

// Values reach their targets when Assign is called, byte for byte: CLI11's own conversions would
// read "{}" as an empty list.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  // Also --name=true and --name=false.
  void Switch(const std::string& name, bool* target, const std::string& help);
  void Value(const std::string& name, std::optional<std::string>* target,
             const std::string& placeholder, const std::string& help);
  void Required(const std::string& name, std::string* target, const std::string& placeholder,
                const std::string& help);
  // May be repeated; each takes one value.
  void List(const std::string& name, std::vector<std::string>* target,
            const std::string& placeholder, const std::string& help);
  // Values without a flag before them.
  void Positionals(const std::string& name, std::vector<std::string>* target,
                   const std::string& help);
  // A value without a flag before it.
  void Positional(const std::string& name, std::optional<std::string>* target,
                  const std::string& help);

  // The flag that was declared as `name` takes its value from the settings where it is not given.
  void TakesSetting(std::string_view name, FromSettings when = {});
  // All that is declared from here on every command has.
  void BeginCommon() { common_ = true; }

  // What stands after "--", whatever it looks like: CLI11 would not give it to a subcommand.
  // main.cc puts it there before the rest is parsed.
  void AfterDashes(std::vector<std::string>* target) { after_dashes_ = target; }
  std::vector<std::string>* after_dashes() const { return after_dashes_; }

  const std::vector<Flag>& all() const { return all_; }
  // By "--name" or "-n"; nullptr: there is none.
  const Flag* Find(std::string_view name) const;

  // Gives each target its value: what was typed, or else what `settings` say. kInvalidArgument: a
  // value is missing, or neither true nor false.
  Result<void> Assign(Settings& settings);

 private:
  Flag& Add(Flag flag);
  // Whether `flag`, which is not given, asks the settings.
  bool AsksSettings(const Flag& flag) const;
  bool IsGiven(std::string_view word) const;

  CLI::App& app_;
  std::vector<Flag> all_;
  // For the flag with the same index: takes the values with which it was given.
  std::vector<std::function<Result<void>(const std::vector<std::string>&)>> assignments_;
  std::vector<std::string>* after_dashes_ = nullptr;
  bool common_ = false;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_FLAGS_H_
