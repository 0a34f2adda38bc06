#include "bindings/cli/flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <stdexcept>

#include "bindings/cli/settings.h"

namespace waybill::cli {

std::string InWords(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() && !last.empty() ? fmt::format(" {} ", last) : ", ";
    text += words[i];
  }
  return text;
}

Flag& Flag::Required(std::string hint) {
  required = true;
  missing_hint = std::move(hint);
  return *this;
}

Flag& Flag::TakesSetting(FromSettings when) {
  settings = std::move(when);
  return *this;
}

bool Flag::given() const {
  const Values& all = values.empty() ? typed : values;
  return !all.empty() && (kind != Kind::kSwitch || all.back() != "false");
}

Result<bool> ParseBoolean(std::string_view flag, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return BadFlag(flag, fmt::format("'{}' is neither true nor false", text.substr(0, 200)));
}

Flag& Flags::Switch(const std::string& name, bool* target, const std::string& help,
                    FlagTraits traits) {
  return Add(Flag::Kind::kSwitch, name, "", help, Last(LongName(name), target, ParseBoolean),
             traits);
}

Flag& Flags::Source(const std::string& name, const std::string& placeholder,
                    const std::string& help, Supply supply) {
  const auto nothing = [](const Flag::Values&) { return Result<void>(); };
  Flag& flag = Add(Flag::Kind::kList, name, placeholder, help, nothing);
  sources_.emplace_back(&flag, supply);
  return flag;
}

Flag& Flags::Add(Flag::Kind kind, const std::string& name, const std::string& placeholder,
                 const std::string& help, Assignment assign, FlagTraits traits) {
  Flag& flag = all_.emplace_back();
  flag.kind = kind;
  flag.name = LongName(name);
  if (flag.name != name) flag.short_name = name.substr(0, name.find(','));
  flag.placeholder = placeholder;
  flag.help = help;
  flag.assign = std::move(assign);
  flag.common = common_;
  flag.required = (traits & kRequired) != 0;
  flag.seldom = (traits & kSeldom) != 0;
  if ((traits & kTakesSetting) != 0) flag.settings.emplace();
  return flag;
}

std::vector<std::string> Flags::WordsIn(const std::string& words) {
  std::vector<std::string> all;
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, '|');) all.push_back(word);
  return all;
}

Error Flags::NoSuchWord(std::string_view flag, const std::string& text, const std::string& words) {
  return BadFlag(flag, fmt::format("there is no '{}'", text.substr(0, 200)),
                 "write one of " + words);
}

void Flags::AddRule(RuleKind kind, const std::vector<std::string>& first,
                    const std::vector<std::string>& others, const std::string& hint) {
  Rule rule = {.kind = kind, .flags = {}, .hint = hint};
  for (const std::vector<std::string>* names : {&first, &others}) {
    for (const std::string& name : *names) {
      const auto flag = std::find_if(all_.begin(), all_.end(),
                                     [&](const Flag& declared) { return declared.name == name; });
      if (flag == all_.end()) throw std::logic_error("a rule names what is no flag: " + name);
      rule.flags.push_back(&*flag);
    }
  }
  rules_.push_back(std::move(rule));
}

bool Flags::TakePositionals(const std::vector<std::string>& words) {
  std::size_t at = 0;
  for (Flag& flag : all_) {
    if (!flag.is_positional()) continue;
    const std::size_t most = flag.kind == Flag::Kind::kPositional ? 1 : words.size();
    while (at < words.size() && flag.typed.size() < most) flag.typed.push_back(words[at++]);
  }
  return at == words.size();
}

// By what is typed alone: a setting makes no other one count.
bool Flags::AsksSettings(const Flag& flag) const {
  if (!flag.settings) return false;
  const auto is_typed = [](const Flag* other) { return !other->typed.empty() && other->given(); };
  const auto is_named = [&](const std::string& name) {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const Flag& other) { return other.name == name && is_typed(&other); });
  };
  const auto& [unless, only_with, beside_excluded] = *flag.settings;
  if (std::any_of(unless.begin(), unless.end(), is_named)) return false;
  if (!only_with.empty() && std::none_of(only_with.begin(), only_with.end(), is_named)) {
    return false;
  }
  if (beside_excluded) return true;
  for (const Rule& rule : rules_) {
    const auto its = std::find(rule.flags.begin(), rule.flags.end(), &flag);
    if (its == rule.flags.end()) continue;
    const bool is_first = its == rule.flags.begin();
    const bool any_other = std::any_of(rule.flags.begin() + 1, rule.flags.end(), is_typed);
    if (rule.kind == RuleKind::kExcludes && (is_first ? any_other : is_typed(rule.flags.front()))) {
      return false;
    }
    if (rule.kind == RuleKind::kNeeds && is_first && !any_other) return false;
    if (rule.kind == RuleKind::kOneOf &&
        std::any_of(rule.flags.begin(), rule.flags.end(), is_typed)) {
      return false;
    }
  }
  return true;
}

Result<void> Flags::CheckRule(const Rule& rule) const {
  std::vector<std::string> names;
  std::vector<std::string> given;
  for (const Flag* flag : rule.flags) {
    names.push_back(flag->name);
    if (flag->given()) given.push_back(flag->name);
  }
  const std::string first = names.front();
  const bool has_first = rule.flags.front()->given();
  switch (rule.kind) {
    case RuleKind::kExcludes:
      // What is typed and what the settings say don't contradict each other: the former wins.
      given.clear();
      for (const Flag* flag : rule.flags) {
        const bool same_origin = flag->typed.empty() == rule.flags.front()->typed.empty();
        if (flag->given() && same_origin) given.push_back(flag->name);
      }
      if (!has_first || given.size() == 1) return {};
      given.erase(given.begin());
      return BadFlag(first, "it excludes " + InWords(given), rule.hint);
    case RuleKind::kNeeds:
      if (!has_first || given.size() > 1) return {};
      names.erase(names.begin());
      return BadFlag(first, "it needs " + InWords(names, "or"), rule.hint);
    case RuleKind::kNeeded:
      if (!given.empty()) return {};
      names.erase(names.begin());
      return BadFlag(first, "it is missing",
                     rule.hint.empty() ? "or give " + InWords(names, "or") : rule.hint);
    case RuleKind::kOneOf:
      if (given.size() == 1) return {};
      return BadFlag(first, fmt::format("exactly one of {} is needed", InWords(names)), rule.hint);
  }
  return {};
}

Result<void> Flags::CheckStandardInput() const {
  bool is_read = false;
  for (const Flag& flag : all_) {
    if (!flag.placeholder.starts_with("FILE|-") || flag.values.empty()) continue;
    if (flag.values.back() == "-" && std::exchange(is_read, true)) {
      return BadFlag(flag.name, "only one flag can read standard input");
    }
  }
  return {};
}

Result<void> Flags::TakeSupplied(Settings& settings) {
  for (const auto& [source, supply] : sources_) {
    if (source->values.empty()) continue;
    const auto all = TRY(supply(*this, source->values));
    for (const Supplied& supplied : all) {
      Flag* flag = Find(supplied.flag);
      if (flag == nullptr) continue;
      if (flag->values.empty()) {
        flag->values = supplied.values;
        settings.NoteOrigin(*flag, supplied.values, supplied.origin);
      } else if (flag->values != supplied.values) {
        settings.NoteWins(*flag, supplied.origin);
      }
    }
  }
  return {};
}

Result<void> Flags::Assign(Settings& settings) {
  // First, since typed flags decide which settings count.
  for (const Flag& flag : all_) {
    if (flag.typed.empty()) continue;
    TRY(settings.NoteGiven(flag));
  }
  for (Flag& flag : all_) {
    flag.values = flag.typed;
    if (flag.typed.empty() && AsksSettings(flag)) {
      flag.values = TRY(settings.Ask(flag));
    }
  }
  for (const Flag& flag : all_) {
    if (!flag.required || !flag.values.empty()) continue;
    if (flag.settings) return settings.Missing(flag);
    return BadFlag(flag.name, "it is missing",
                   flag.missing_hint.empty() && !flag.placeholder.empty()
                       ? fmt::format("give {} {}", flag.name, flag.placeholder)
                       : flag.missing_hint);
  }
  for (const Rule& rule : rules_) {
    TRY(CheckRule(rule));
  }
  TRY(TakeSupplied(settings));
  TRY(CheckStandardInput());
  for (const Flag& flag : all_) {
    if (flag.values.empty()) continue;
    TRY(flag.assign(flag.values));
  }
  for (const auto& check : checks_) {
    TRY(check());
  }
  return {};
}

namespace {

constexpr std::size_t kLongestWord = 64;

// Letters to insert, delete, replace, or swap with their neighbour.
std::size_t Slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() < 2 || word.size() > kLongestWord) return {};
  std::string best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t slips = Slips(word, candidate);
    if (slips >= fewest) continue;
    fewest = slips;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known,
                       std::string_view otherwise) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? std::string(otherwise) : "did you mean " + nearest + "?";
}

}  // namespace waybill::cli
