// What flags that were not given take their values from:
// The environment, WAYBILL_STORE for --store, then a configuration file in TOML: that of --config,
// of WAYBILL_CONFIG, or /etc/waybill/config.toml, which need not exist; README.md, "Settings", has
// what may stand in it.

#ifndef WAYBILL_BINDINGS_CLI_SETTINGS_H_
#define WAYBILL_BINDINGS_CLI_SETTINGS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/flags.h"
#include "waybill/result.h"

namespace waybill::cli {

inline constexpr const char* kConfigPath = "/etc/waybill/config.toml";
inline constexpr const char* kConfigVariable = "WAYBILL_CONFIG";
inline constexpr const char* kStoreVariable = "WAYBILL_STORE";
inline constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxSettingBytes = 4096;
inline constexpr std::size_t kMaxSettingValues = 10'000;

class Settings {
 public:
  // `known`: all flags that take settings, of any command. `config`: the value of --config.
  // `verbose`: Notes are wanted.
  Settings(std::map<std::string, const Flag*> known, std::optional<std::string> config,
           bool verbose)
      : known_(std::move(known)), config_(std::move(config)), verbose_(verbose) {}
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // Reads the file now, for one that the user named: whatever is wrong in it is said, needed or
  // not.
  Result<void> Load() { return ReadConfig(); }
  // The values of a flag that was not given; empty: there are none. The file is read when it is
  // needed first. kInvalidArgument, kLimitExceeded: what is wrong in the file or the variable;
  // nothing of it counts then.
  Result<std::vector<std::string>> Ask(const Flag& flag);
  // The command line has the flag.
  Result<void> NoteGiven(const Flag& flag);

  // The flag has these values from `origin`: a file that another flag names.
  void NoteOrigin(const Flag& flag, const std::vector<std::string>& values,
                  const std::string& origin);
  // The flag has other values than `over` says.
  void NoteWins(const Flag& flag, const std::string& over);

  // The error for a flag that is needed and has no value.
  Error Missing(const Flag& flag) const;
  // Adds to the hint of an error about a flag ("--flag: …") where the flag's value came from.
  Error WithOrigin(Error error) const;
  // For --verbose: what came from where, and what a flag won over.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Setting {
    std::vector<std::string> values;
    std::string origin;
  };

  // The value in environment or file; nullptr: there is none.
  Result<const Setting*> Find(const std::string& flag);
  Result<void> ReadConfig();
  Result<void> TakeConfig(std::string_view text, const std::string& path);
  Result<void> CheckNode() const;
  // Whether the command line or the variable names another store, or another kubelet directory,
  // than the file.
  bool IsOtherNode() const;

  std::map<std::string, const Flag*> known_;
  std::optional<std::string> config_;
  bool verbose_;
  bool read_ = false;
  std::map<std::string, Setting> file_;  // by the flag's name
  std::optional<Setting> store_variable_;
  std::map<std::string, std::string> given_;    // on the command line
  bool left_store_ = false;                     // the file's, since it is another node's
  std::map<std::string, std::string> origins_;  // of values that were not typed
  std::vector<std::string> notes_;
};

// How a value of such a flag is written in the file, for the manual: "string".
std::string_view SettingType(Flag::Kind kind);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SETTINGS_H_
