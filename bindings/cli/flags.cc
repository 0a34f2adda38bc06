#include "bindings/cli/flags.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bindings/cli/parse.h"
#include "bindings/cli/settings.h"
#include "store/base/try.h"

namespace waybill::cli {

bool Flag::given() const { return option->count() > 0; }

std::vector<std::string> Flag::values() const {
  std::vector<std::string> values = option->results();
  for (std::string& value : values) {
    if (value.starts_with(kShieldedWord)) value.erase(0, 1);
  }
  return values;
}

std::string Shielded(const std::string& word) {
  const bool would_be_taken_apart = word.starts_with('[') && word.ends_with(']');
  return would_be_taken_apart || word.starts_with(kShieldedWord) ? kShieldedWord + word : word;
}

namespace {

// Flags whose default nearly every node keeps, or that are for the day on which something is wrong.
bool IsSeldomNeeded(std::string_view name) {
  constexpr std::string_view kSeldom[] = {"--allow-untested-lmdb",
                                          "--after-gap",
                                          "--no-after-gap",
                                          "--strict",
                                          "--no-migrate",
                                          "--skip-unreadable",
                                          "--grace",
                                          "--window",
                                          "--remember",
                                          "--max-age",
                                          "--max-age-service-accounts",
                                          "--max-age-node-pods",
                                          "--keep-revocations",
                                          "--ids-per-pod",
                                          "--max-pods",
                                          "--pool",
                                          "--subuids",
                                          "--subgids",
                                          "--no-user-namespaces",
                                          "--rules",
                                          "--forget-witness",
                                          "--no-witness",
                                          "--map-size",
                                          "--runtime-config",
                                          "--allow-preloaded-only",
                                          "--wait",
                                          "--pods-dir"};
  return std::find(std::begin(kSeldom), std::end(kSeldom), name) != std::end(kSeldom);
}

}  // namespace

Flag& Flags::Add(Flag flag) {
  const bool is_switch = flag.kind == Flag::Kind::kSwitch;
  const std::string names = flag.name;  // "--quiet", or "-q,--quiet"
  if (const std::size_t comma = names.find(','); comma != std::string::npos) {
    flag.short_name = names.substr(0, comma);
    flag.name = names.substr(comma + 1);
  }
  flag.option = is_switch ? app_.add_flag(names)->description(flag.help)
                          : app_.add_option(names, CLI::callback_t{}, flag.help);
  if (!is_switch) flag.option->type_name(flag.placeholder);
  if (flag.kind == Flag::Kind::kList || flag.kind == Flag::Kind::kPositionals) {
    flag.option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(flag.kind == Flag::Kind::kPositionals);
  }
  if (flag.required) flag.option->required();
  flag.common = common_;
  flag.seldom = IsSeldomNeeded(flag.name);
  if (common_) {
    flag.option->group("Options of every command");
  } else if (flag.seldom) {
    flag.option->group("Seldom needed");
  }
  return all_.emplace_back(std::move(flag));
}

void Flags::Switch(const std::string& name, bool* target, const std::string& help) {
  Add({.kind = Flag::Kind::kSwitch, .name = name, .help = help});
  assignments_.emplace_back(
      [name = all_.back().name, target](const std::vector<std::string>& values) -> Result<void> {
        if (values.empty()) return {};
        const std::string& value = values.back();
        if (value != "true" && value != "false") {
          return BadFlag(name, fmt::format("'{}' is neither true nor false", value.substr(0, 200)));
        }
        *target = value == "true";
        return {};
      });
}

void Flags::Value(const std::string& name, std::optional<std::string>* target,
                  const std::string& placeholder, const std::string& help) {
  Add({.kind = Flag::Kind::kValue, .name = name, .placeholder = placeholder, .help = help});
  assignments_.emplace_back([target](const std::vector<std::string>& values) -> Result<void> {
    if (!values.empty()) *target = values.back();
    return {};
  });
}

void Flags::Required(const std::string& name, std::string* target, const std::string& placeholder,
                     const std::string& help) {
  Add({.kind = Flag::Kind::kValue,
       .name = name,
       .placeholder = placeholder,
       .help = help,
       .required = true});
  assignments_.emplace_back([name, target](const std::vector<std::string>& values) -> Result<void> {
    *target = values.back();
    return {};
  });
}

void Flags::List(const std::string& name, std::vector<std::string>* target,
                 const std::string& placeholder, const std::string& help) {
  Add({.kind = Flag::Kind::kList, .name = name, .placeholder = placeholder, .help = help});
  assignments_.emplace_back([target](const std::vector<std::string>& values) -> Result<void> {
    *target = values;
    return {};
  });
}

void Flags::Positional(const std::string& name, std::optional<std::string>* target,
                       const std::string& help) {
  Value(name, target, "", help);
  all_.back().kind = Flag::Kind::kPositional;
}

void Flags::Positionals(const std::string& name, std::vector<std::string>* target,
                        const std::string& help) {
  Add({.kind = Flag::Kind::kPositionals, .name = name, .help = help});
  assignments_.emplace_back([target](const std::vector<std::string>& values) -> Result<void> {
    *target = values;
    return {};
  });
}

void Flags::TakesSetting(std::string_view name, FromSettings when) {
  const auto flag = std::find_if(all_.begin(), all_.end(),
                                 [&](const Flag& declared) { return declared.name == name; });
  flag->settings = std::move(when);
  flag->option->required(false);
}

const Flag* Flags::Find(std::string_view name) const {
  for (const Flag& flag : all_) {
    if (flag.is_positional()) continue;
    if (flag.name == name || (!name.empty() && flag.short_name == name)) return &flag;
  }
  return nullptr;
}

bool Flags::IsGiven(std::string_view word) const {
  if (word.starts_with("-")) {
    const Flag* flag = Find(word);
    return flag != nullptr && flag->given();
  }
  for (const Flag& flag : all_) {
    if (flag.is_positional()) return flag.given() && flag.values().front() == word;
  }
  return false;
}

bool Flags::AsksSettings(const Flag& flag) const {
  if (!flag.settings) return false;
  const auto is_given = [&](const std::string& word) { return IsGiven(word); };
  const auto& [unless, only_with] = *flag.settings;
  return std::none_of(unless.begin(), unless.end(), is_given) &&
         (only_with.empty() || std::any_of(only_with.begin(), only_with.end(), is_given));
}

Result<void> Flags::Assign(Settings& settings) {
  // First, since typed flags decide which settings count.
  for (const Flag& flag : all_) {
    if (!flag.given()) continue;
    TRY(settings.NoteGiven(flag));
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Flag& flag = all_[i];
    std::vector<std::string> values = flag.values();
    if (!flag.given() && AsksSettings(flag)) {
      values = TRY(settings.Ask(flag));
    }
    if (values.empty() && flag.required && flag.settings) return settings.Missing(flag);
    TRY(assignments_[i](values));
  }
  return {};
}

}  // namespace waybill::cli
