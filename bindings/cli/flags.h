// The flags of a command, declared once: their names and help, how their text becomes a value, and
// what they demand of each other. Help, manual pages, completion, the configuration file and the
// errors of a wrong call are made from what is declared here.

#ifndef WAYBILL_BINDINGS_CLI_FLAGS_H_
#define WAYBILL_BINDINGS_CLI_FLAGS_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "waybill/result.h"

namespace waybill::cli {

class Settings;

// kInvalidArgument, with a message about the flag `name`.
inline Error BadFlag(std::string_view name, std::string_view problem, std::string_view hint = {}) {
  return {ErrorCode::kInvalidArgument, std::string(name).append(": ").append(problem),
          std::string(hint)};
}

// "a, b and c"; with "" "a, b, c".
std::string InWords(const std::vector<std::string>& words, std::string_view last = "and");

// When a flag that is not given takes its value from the settings (settings.h), beside its rules.
struct FromSettings {
  // None of these is given.
  std::vector<std::string> unless = {};
  // One of these is given, if there are any.
  std::vector<std::string> only_with = {};
  // Also beside a typed flag that it excludes: what is typed wins, piece by piece.
  bool beside_excluded = false;
};

// What a flag is beside its value.
enum FlagTraits : unsigned {
  kUsual = 0,
  // There is no call without it.
  kRequired = 1,
  // Nearly every node keeps its default, or it is for the day on which something is wrong: help and
  // the manual have it behind the usual ones.
  kSeldom = 2,
  // Not beside a flag that excludes it, and only with one that it needs.
  kTakesSetting = 4,
};
constexpr FlagTraits operator|(FlagTraits a, FlagTraits b) {
  return static_cast<FlagTraits>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct Flag {
  enum class Kind { kSwitch, kValue, kList, kPositional, kPositionals };
  using Values = std::vector<std::string>;

  Kind kind = Kind::kSwitch;
  std::string name = {};         // "--store"; of a positional "POD"
  std::string short_name = {};   // "-o", or nothing
  std::string placeholder = {};  // "DIR"
  std::string help = {};         // lines
  std::function<Result<void>(const Values&)> assign = {};
  bool common = false;  // every command has it
  bool required = false;
  bool seldom = false;
  std::string missing_hint = {};
  Values choices = {};  // for completion
  std::optional<FromSettings> settings = {};
  Values typed = {};   // on the command line
  Values values = {};  // those, or what the settings say

  // kRequired; `hint`: what to do where it is missing.
  Flag& Required(std::string hint);
  // kTakesSetting, beside the flag's rules.
  Flag& TakesSetting(FromSettings when = {});

  bool is_positional() const { return kind == Kind::kPositional || kind == Kind::kPositionals; }
  bool takes_value() const { return kind == Kind::kValue || kind == Kind::kList; }
  // Not counting a switch that is set to false.
  bool given() const;
};

// The parser of a flag whose value is its text.
struct AsText {
  Result<std::string> operator()(std::string_view /*flag*/, const std::string& text) const {
    return text;
  }
};

// What a target holds.
template <typename T>
struct Held {
  using Type = T;
};
template <typename T>
struct Held<std::optional<T>> {
  using Type = T;
};

// Values reach their targets when Assign is called. A parser is called with the flag's name and
// the text; its error names the flag, and quotes nothing that may be a secret. A target is a value
// or an optional one.
class Flags {
 public:
  // "-q,--quiet" has a short name. Also --name=true and --name=false.
  Flag& Switch(const std::string& name, bool* target, const std::string& help,
               FlagTraits traits = kUsual);
  template <typename T, typename Parse>
  Flag& Value(const std::string& name, T* target, const std::string& placeholder,
              const std::string& help, Parse parse, FlagTraits traits = kUsual) {
    return Add(Flag::Kind::kValue, name, placeholder, help, Last(LongName(name), target, parse),
               traits);
  }
  template <typename T>
  Flag& Value(const std::string& name, T* target, const std::string& placeholder,
              const std::string& help, FlagTraits traits = kUsual) {
    return Value(name, target, placeholder, help, AsText(), traits);
  }
  // One of the words of "presume|close", which the parser knows. Without dashes it is positional.
  template <typename T, typename Parse>
  Flag& Choice(const std::string& name, T* target, const std::string& words,
               const std::string& help, Parse parse, FlagTraits traits = kUsual) {
    Flag& flag = name.starts_with("-") ? Value(name, target, words, help, parse, traits)
                                       : Positional(name, target, help, parse, traits);
    flag.choices = WordsIn(words);
    return flag;
  }
  // One of these words.
  template <typename T, typename U = typename Held<T>::Type>
  Flag& Choice(const std::string& name, T* target,
               const std::vector<std::pair<std::string, U>>& choices, const std::string& help,
               FlagTraits traits = kUsual) {
    const auto parse = [choices](std::string_view flag, const std::string& text) -> Result<U> {
      for (const auto& [word, value] : choices) {
        if (word == text) return value;
      }
      return NoSuchWord(flag, text, Names(choices, ", "));
    };
    return Choice(name, target, Names(choices, "|"), help, parse, traits);
  }
  // May be repeated; each takes one value.
  template <typename T, typename Parse = AsText>
  Flag& List(const std::string& name, std::vector<T>* target, const std::string& placeholder,
             const std::string& help, Parse parse = {}) {
    return Add(Flag::Kind::kList, name, placeholder, help, All(LongName(name), target, parse));
  }
  // A value without a flag before it.
  template <typename T, typename Parse = AsText>
  Flag& Positional(const std::string& name, T* target, const std::string& help, Parse parse = {},
                   FlagTraits traits = kUsual) {
    return Add(Flag::Kind::kPositional, name, "", help, Last(name, target, parse), traits);
  }
  // May be repeated. `supply`, called with its values after the rules, says what flags have that
  // got no value otherwise.
  struct Supplied {
    std::string flag = {};  // the command need not have it
    Flag::Values values = {};
    std::string origin = {};
  };
  using Supply = Result<std::vector<Supplied>> (*)(const Flags& flags, const Flag::Values& values);
  Flag& Source(const std::string& name, const std::string& placeholder, const std::string& help,
               Supply supply);
  // All that are left.
  template <typename T, typename Parse = AsText>
  Flag& Positionals(const std::string& name, std::vector<T>* target, const std::string& help,
                    Parse parse = {}) {
    return Add(Flag::Kind::kPositionals, name, "", help, All(name, target, parse));
  }
  // All that is declared from here on every command has.
  void BeginCommon() { common_ = true; }

  // Rules, checked in this order, before any value is looked at. A flag that the settings give
  // counts, too. `hint`: why, and what to do.
  //
  // None of `others` stands beside `name`.
  void Excludes(const std::string& name, const std::vector<std::string>& others,
                const std::string& hint = {}) {
    AddRule(RuleKind::kExcludes, {name}, others, hint);
  }
  // Where `name` is given, one of `others` is.
  void Needs(const std::string& name, const std::vector<std::string>& others,
             const std::string& hint = {}) {
    AddRule(RuleKind::kNeeds, {name}, others, hint);
  }
  // One of these at least, or exactly one.
  void Needed(const std::vector<std::string>& names, const std::string& hint = {}) {
    AddRule(RuleKind::kNeeded, names, {}, hint);
  }
  void OneOf(const std::vector<std::string>& names, const std::string& hint = {}) {
    AddRule(RuleKind::kOneOf, names, {}, hint);
  }
  // What no rule can say: called when all flags have their values.
  void Check(std::function<Result<void>()> check) { checks_.push_back(std::move(check)); }

  const std::deque<Flag>& all() const { return all_; }
  // By "--name" or "-n"; nullptr: there is none.
  const Flag* Find(std::string_view name) const { return FindIn(all_, name); }
  Flag* Find(std::string_view name) { return FindIn(all_, name); }
  // false: there is one argument too many.
  bool TakePositionals(const std::vector<std::string>& words);

  // Checks the rules, and gives each target its value: what was typed, or else what `settings` say.
  Result<void> Assign(Settings& settings);

 private:
  enum class RuleKind { kExcludes, kNeeds, kNeeded, kOneOf };
  struct Rule {
    RuleKind kind;
    std::vector<Flag*> flags;  // of kExcludes and kNeeds, the first is the one that does
    std::string hint;
  };
  using Assignment = std::function<Result<void>(const Flag::Values&)>;

  template <typename All>
  static auto FindIn(All& all, std::string_view name) -> decltype(&all.front()) {
    for (auto& flag : all) {
      if (flag.is_positional()) continue;
      if (flag.name == name || (!name.empty() && flag.short_name == name)) return &flag;
    }
    return nullptr;
  }
  template <typename V, typename T>
  static void Set(V value, T* target) {
    using Type = typename Held<T>::Type;
    static_assert(!std::is_same_v<V, std::string> || !std::is_same_v<Type, std::string_view>,
                  "nothing would hold the text");
    *target = static_cast<Type>(std::move(value));
  }
  template <typename T, typename Parse>
  static Assignment Last(std::string name, T* target, Parse parse) {
    return [name = std::move(name), target, parse](const Flag::Values& values) -> Result<void> {
      auto value = TRY(parse(name, values.back()));
      Set(std::move(value), target);
      return {};
    };
  }
  template <typename T, typename Parse>
  static Assignment All(std::string name, std::vector<T>* target, Parse parse) {
    return [name = std::move(name), target, parse](const Flag::Values& values) -> Result<void> {
      for (const std::string& text : values) {
        auto value = TRY(parse(name, text));
        Set(std::move(value), &target->emplace_back());
      }
      return {};
    };
  }
  template <typename U>
  static std::string Names(const std::vector<std::pair<std::string, U>>& choices,
                           std::string_view between) {
    std::string names;
    for (const auto& [word, value] : choices) {
      names.append(names.empty() ? "" : between).append(word);
    }
    return names;
  }
  static std::string LongName(const std::string& names) {
    return names.substr(names.find(',') + 1);
  }
  static std::vector<std::string> WordsIn(const std::string& words);
  static Error NoSuchWord(std::string_view flag, const std::string& text, const std::string& words);

  Flag& Add(Flag::Kind kind, const std::string& name, const std::string& placeholder,
            const std::string& help, Assignment assign, FlagTraits traits = kUsual);
  void AddRule(RuleKind kind, const std::vector<std::string>& first,
               const std::vector<std::string>& others, const std::string& hint);
  bool AsksSettings(const Flag& flag) const;
  Result<void> CheckRule(const Rule& rule) const;
  Result<void> TakeSupplied(Settings& settings);
  Result<void> CheckStandardInput() const;

  std::deque<Flag> all_;
  std::vector<Rule> rules_;
  std::vector<std::pair<const Flag*, Supply>> sources_;
  std::vector<std::function<Result<void>()>> checks_;
  bool common_ = false;
};

// "true" or "false".
Result<bool> ParseBoolean(std::string_view flag, const std::string& text);

// The one of `known` that `word` is most likely a slip of the pen for; empty: none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

// "did you mean NEAREST?", or `otherwise`.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known,
                       std::string_view otherwise);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_FLAGS_H_
