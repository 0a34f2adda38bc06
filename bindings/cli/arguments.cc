#include <fmt/core.h>

#include <cstdint>
#include <string_view>

#include "bindings/cli/flags.h"
#include "bindings/cli/registry.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

using Entry = Registry::Entry;

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

std::string HelpHint(const Entry* entry) {
  return fmt::format("see waybill {}--help", entry == nullptr ? "" : entry->name() + " ");
}

// `word` is not a flag of `entry`; nullptr: of no command.
Error NoSuchFlag(const Registry& registry, const Entry* entry, std::string_view word) {
  std::string_view name = NameOfWord(word);
  name = name.substr(0, name.find_first_not_of(kFlagCharacters));
  if (name.size() < 2) name = "of that name";
  const Entry* const group = entry == nullptr ? nullptr : entry->group;
  std::vector<std::string> names;
  std::vector<std::string> owners;
  for (const auto& other : registry.entries()) {
    // Of an action, the command's other actions are what is meant, if they have it.
    const bool in_group = group != nullptr && group->FindFlag(name) != nullptr;
    const bool counts = in_group ? other->group == group : other->group == nullptr;
    if (counts && other->FindFlag(name) != nullptr) owners.push_back(other->name());
    if (entry != nullptr && other.get() != entry && other->group != entry) continue;
    for (const Flag& flag : other->flags.all()) {
      if (!flag.is_positional()) names.push_back(flag.name);
    }
  }
  std::string hint = DidYouMean(name, names, HelpHint(entry));
  if (!owners.empty()) {
    constexpr std::size_t kMostOwners = 4;
    if (owners.size() > kMostOwners) {
      owners.resize(kMostOwners);
      owners.emplace_back("…");
    }
    hint = fmt::format("it belongs to {}; {}", InWords(owners, ""), HelpHint(entry));
  }
  return {ErrorCode::kInvalidArgument,
          entry == nullptr ? fmt::format("there is no flag {}", name)
                           : fmt::format("{} has no flag {}", entry->name(), name),
          hint};
}

Error NoSuchCommand(const Registry& registry, std::string_view word) {
  std::vector<std::string> names;
  for (const auto& entry : registry.entries()) {
    if (entry->group == nullptr) names.push_back(entry->command.name);
  }
  return {ErrorCode::kInvalidArgument, fmt::format("there is no command '{}'", word.substr(0, 200)),
          DidYouMean(word, names, "waybill --help lists the commands")};
}

Error WrongAction(const Entry& command, std::string_view problem) {
  std::vector<std::string> names;
  for (const Entry* action : command.actions) names.push_back(action->command.name);
  return BadFlag("ACTION", problem, "the actions are " + InWords(names));
}

class Reader {
 public:
  Reader(const std::vector<std::string>& arguments, const Registry& registry)
      : arguments_(arguments), registry_(registry) {}

  Result<CommandLine> Read() {
    TRY(FindCommand());
    Entry*& command = line_.command;
    if (command == nullptr) return line_;
    if (!command->actions.empty() && !line_.wants_help) {
      if (command->default_action() == nullptr) return WrongAction(*command, "it is missing");
      command = command->default_action();
    }
    if (line_.wants_help) return line_;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (i == command_at_ || i == action_at_) continue;
      if (arguments_[i] == "--") {
        words.insert(words.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     arguments_.end());
        break;
      }
      if (!IsFlagWord(arguments_[i])) {
        words.push_back(arguments_[i]);
        continue;
      }
      TRY(TakeFlag(i));
    }
    if (line_.wants_help || command->flags.TakePositionals(words)) return line_;
    return Error{ErrorCode::kInvalidArgument, "there is one argument too many", HelpHint(command)};
  }

 private:
  // The first word that is neither a flag nor the value of one; of a command with actions, the
  // first two.
  Result<void> FindCommand() {
    bool wants_version = false;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const std::string& word = arguments_[i];
      if (word == "--") break;
      if (!IsFlagWord(word)) {
        if (line_.command == nullptr && word == "help" && !line_.wants_help) {
          line_.wants_help = true;
          continue;
        }
        TRY(TakeName(i));
        if (line_.command->actions.empty()) return {};
        continue;
      }
      const std::string_view name = NameOfWord(word);
      if (IsHelp(name)) {
        line_.wants_help = true;
        continue;
      }
      const bool is_version = name == "--version" && line_.command == nullptr;
      wants_version = wants_version || is_version;
      const Flag* flag = FindFlag(name);
      if (flag == nullptr && !is_version) return NoSuchFlag(registry_, line_.command, word);
      if (flag == nullptr || word != name) continue;
      // `--status guard`: a switch of the command that follows, whatever it is elsewhere.
      const Entry* next = i + 1 < arguments_.size() ? Named(arguments_[i + 1]) : nullptr;
      const Flag* its = next == nullptr ? nullptr : next->FindFlag(name);
      if (its == nullptr ? flag->takes_value() : its->takes_value()) ++i;
    }
    if (line_.command != nullptr || line_.wants_help || wants_version) return {};
    return Error{ErrorCode::kInvalidArgument, "no command was given",
                 "waybill --help lists the commands"};
  }

  // The command, or once that is known its action.
  Entry* Named(std::string_view word) const {
    return line_.command == nullptr ? registry_.Find(word) : line_.command->FindAction(word);
  }

  Result<void> TakeName(std::size_t at) {
    Entry* const named = Named(arguments_[at]);
    if (named == nullptr) {
      if (line_.command == nullptr) return NoSuchCommand(registry_, arguments_[at]);
      return WrongAction(*line_.command,
                         fmt::format("there is no '{}'", arguments_[at].substr(0, 200)));
    }
    (line_.command == nullptr ? command_at_ : action_at_) = at;
    line_.command = named;
    return {};
  }

  // Of the command, or of any, since the one that is meant may not be known yet.
  const Flag* FindFlag(std::string_view name) const {
    if (line_.command != nullptr) return line_.command->FindFlag(name);
    for (const auto& entry : registry_.entries()) {
      if (const Flag* flag = entry->flags.Find(name)) return flag;
    }
    return nullptr;
  }

  // The flag at `at`, with its value, up to which `at` is moved.
  Result<void> TakeFlag(std::size_t& at) {
    Entry& command = *line_.command;
    std::string word = arguments_[at];
    const std::string name(NameOfWord(word));
    if (IsHelp(name)) {
      line_.wants_help = true;
      return {};
    }
    Flag* flag = command.flags.Find(name);
    if (flag == nullptr) return NoSuchFlag(registry_, &command, word);
    std::string rest =
        word.substr(name.size());  // "=value" of "--name=value", "value" of "-nvalue"
    const bool is_long = name.starts_with("--");
    if (!flag->takes_value()) {
      flag->typed.push_back(rest.starts_with('=') ? rest.substr(1) : "true");
      // "-qv".
      for (std::size_t i = 0; !is_long && !rest.starts_with('=') && i < rest.size(); ++i) {
        Flag* next = command.flags.Find(std::string("-") + rest[i]);
        if (next == nullptr || next->takes_value()) return NoSuchFlag(registry_, &command, word);
        next->typed.emplace_back("true");
      }
      return {};
    }
    if (flag->kind == Flag::Kind::kValue && !flag->typed.empty()) {
      return Error{ErrorCode::kInvalidArgument, flag->name + " is given more than once",
                   HelpHint(&command)};
    }
    if (!rest.empty()) {
      flag->typed.push_back(rest.substr(is_long ? 1 : 0));
      return {};
    }
    const std::size_t next = at + 1;
    const bool ends = next == arguments_.size() || next == command_at_ || next == action_at_;
    if (ends || IsKnownFlag(arguments_[next])) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: its value is missing", name),
                   ends ? HelpHint(&command)
                        : fmt::format("a value that begins like a flag is written {}=VALUE", name)};
    }
    flag->typed.push_back(arguments_[at = next]);
    return {};
  }

  bool IsKnownFlag(std::string_view word) const {
    return word == "--" ||
           (word.starts_with("--") && line_.command->flags.Find(NameOfWord(word)) != nullptr);
  }

  const std::vector<std::string>& arguments_;
  const Registry& registry_;
  CommandLine line_;
  std::size_t command_at_ = SIZE_MAX;
  std::size_t action_at_ = SIZE_MAX;
};

}  // namespace

Result<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments,
                                    const Registry& registry) {
  return Reader(arguments, registry).Read();
}

Format FormatOfErrors(const std::vector<std::string>& arguments) {
  Format format = Format::kTable;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string_view word = arguments[i];
    std::string_view value;
    if ((word == "-o" || word == "--output") && i + 1 < arguments.size()) {
      value = arguments[i + 1];
    } else if (word.starts_with("--output=")) {
      value = word.substr(9);
    } else if (word.starts_with("-o")) {
      value = word.substr(2);
    }
    for (const auto& [name, its] : Formats()) {
      if (name == value) format = its;
    }
  }
  return format;
}

}  // namespace waybill::cli
