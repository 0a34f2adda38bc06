#include "bindings/cli/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "bindings/cli/nearest.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kFlagCharacters = "abcdefghijklmnopqrstuvwxyz-";

// "--name" of "--name=value" and of "--name"; "-n" of "-nvalue".
std::string_view NameOfWord(std::string_view word) {
  if (word.starts_with("--")) return word.substr(0, word.find('='));
  return word.substr(0, 2);
}

// A negative number is not a flag.
bool IsFlagWord(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

bool IsHelp(std::string_view name) { return name == "--help" || name == "-h"; }

// Looks in every command, since the one that is meant may not be known yet.
const Flag* FindAnywhere(const Registry& registry, std::string_view name) {
  for (const auto& entry : registry.entries()) {
    if (const Flag* flag = entry->flags.Find(name)) return flag;
  }
  return nullptr;
}

// `word` is not a flag of `command`; nullptr: of no command.
Error NoSuchFlag(const Registry& registry, const Registry::Entry* command, std::string_view word) {
  std::string_view name = NameOfWord(word);
  name = name.substr(0, name.find_first_not_of(kFlagCharacters));
  if (name.size() < 2) name = "of that name";
  std::vector<std::string> names;
  std::string owners;
  std::size_t others = 0;
  for (const auto& entry : registry.entries()) {
    if (entry->flags.Find(name) != nullptr && ++others <= 4) {
      owners += (owners.empty() ? "" : ", ") + entry->command->name();
    }
    if (command != nullptr && entry.get() != command) continue;
    for (const Flag& flag : entry->flags.all()) {
      if (!flag.is_positional()) names.push_back(flag.name);
    }
  }
  const std::string waybill =
      command == nullptr ? "waybill" : "waybill " + command->command->name();
  std::string hint = DidYouMean(name, names, "see " + waybill + " --help");
  if (others > 0) {
    hint =
        fmt::format("it belongs to {}{}; see {} --help", owners, others > 4 ? ", …" : "", waybill);
  }
  return {ErrorCode::kInvalidArgument,
          command == nullptr ? fmt::format("there is no flag {}", name)
                             : fmt::format("{} has no flag {}", command->command->name(), name),
          hint};
}

Error NoSuchCommand(const Registry& registry, std::string_view word) {
  return {ErrorCode::kInvalidArgument, fmt::format("there is no command '{}'", word.substr(0, 200)),
          DidYouMean(word, registry.Names(), "waybill --help lists the commands")};
}

// Takes `words` apart, one flag or other word at a time.
class Arranger {
 public:
  Arranger(const std::vector<std::string>& arguments, const Registry& registry)
      : arguments_(arguments), registry_(registry) {}

  Result<CommandLine> Arrange() {
    TRY(FindCommand());
    if (line_.command == nullptr) return line_;
    if (wants_help_) {
      line_.words = {line_.command->command->name(), "--help"};
      return line_;
    }
    line_.words = {line_.command->command->name()};
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (i == command_at_) continue;
      if (arguments_[i] == "--") {
        TakeDashes(i);
        break;
      }
      TRY(TakeWord(i));
    }
    return line_;
  }

 private:
  // The first word that is neither a flag nor the value of one.
  Result<void> FindCommand() {
    bool wants_version = false;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const std::string& word = arguments_[i];
      if (word == "--") break;
      if (!IsFlagWord(word)) {
        if (word == "help" && !wants_help_) {
          wants_help_ = true;
          continue;
        }
        command_at_ = i;
        line_.command = registry_.Find(word);
        if (line_.command == nullptr) return NoSuchCommand(registry_, word);
        return {};
      }
      const std::string_view name = NameOfWord(word);
      if (IsHelp(name)) {
        wants_help_ = true;
        continue;
      }
      wants_version = wants_version || name == "--version";
      const Flag* flag = FindAnywhere(registry_, name);
      if (flag == nullptr && name != "--version") return NoSuchFlag(registry_, nullptr, word);
      if (flag == nullptr || word != name) continue;
      // `--status guard`: a switch of the command that follows, whatever it is elsewhere.
      const Registry::Entry* next =
          i + 1 < arguments_.size() ? registry_.Find(arguments_[i + 1]) : nullptr;
      const Flag* its = next == nullptr ? nullptr : next->flags.Find(name);
      if (its == nullptr ? flag->takes_value() : its->takes_value()) ++i;
    }
    if (wants_help_) line_.words = {"--help"};
    if (!wants_help_ && wants_version) line_.words = {"--version"};
    if (!line_.words.empty()) return {};
    return Error{ErrorCode::kInvalidArgument, "no command was given",
                 "waybill --help lists the commands"};
  }

  Result<void> TakeWord(std::size_t& i) {
    const std::string& word = arguments_[i];
    if (!IsFlagWord(word)) {
      line_.words.push_back(Shielded(word));
      return {};
    }
    const std::string_view name = NameOfWord(word);
    const Flag* flag = line_.command->flags.Find(name);
    if (flag == nullptr && !IsHelp(name)) return NoSuchFlag(registry_, line_.command, word);
    if (flag == nullptr || !flag->takes_value()) {
      line_.words.push_back(word);
      return {};
    }
    line_.words.emplace_back(name);
    if (word != name) {
      // CLI11 would take the next word for the value of "--name=".
      line_.words.push_back(word.substr(name.size() + (word.starts_with("--") ? 1 : 0)));
      return {};
    }
    const bool ends = i + 1 == arguments_.size() || i + 1 == command_at_;
    if (ends || IsKnownFlag(arguments_[i + 1])) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: its value is missing", name),
                   ends ? fmt::format("see waybill {} --help", line_.command->command->name())
                        : fmt::format("a value that begins like a flag is written {}=VALUE", name)};
    }
    line_.words.push_back(arguments_[++i]);
    return {};
  }

  bool IsKnownFlag(std::string_view word) const {
    return word == "--" ||
           (word.starts_with("--") && line_.command->flags.Find(NameOfWord(word)) != nullptr);
  }

  void TakeDashes(std::size_t at) {
    line_.has_dashes = true;
    line_.after_dashes.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                              arguments_.end());
  }

  const std::vector<std::string>& arguments_;
  const Registry& registry_;
  CommandLine line_;
  std::size_t command_at_ = SIZE_MAX;
  bool wants_help_ = false;
};

}  // namespace

Result<CommandLine> Arrange(const std::vector<std::string>& arguments, const Registry& registry) {
  return Arranger(arguments, registry).Arrange();
}

Format FormatOfErrors(const std::vector<std::string>& arguments) {
  Format format = Format::kTable;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string_view word = arguments[i];
    std::string_view value;
    if (word == "--json" || word == "--json=true") {
      value = "json";
    } else if ((word == "-o" || word == "--output") && i + 1 < arguments.size()) {
      value = arguments[i + 1];
    } else if (word.starts_with("--output=")) {
      value = word.substr(9);
    } else if (word.starts_with("-o")) {
      value = word.substr(2);
    }
    if (const auto parsed = ParseFormat(value)) format = *parsed;
  }
  return format;
}

}  // namespace waybill::cli
