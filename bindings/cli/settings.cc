#include "bindings/cli/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bindings/cli/flags.h"
#include "bindings/cli/input.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "store/base/toml_document.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kStoreFlag = "--store";
constexpr std::string_view kKubeletFlag = "--kubelet-dir";
// Flags whose values must be of one node.
constexpr std::string_view kOfItsNode[] = {kStoreFlag, kKubeletFlag, "--witness", "--cri"};

Result<std::string> SettingText(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) {
    if (text->get().size() <= kMaxSettingBytes) return text->get();
    return internal::AboutLine(node.source(),
                               fmt::format("{} has more than {} bytes", key, kMaxSettingBytes),
                               ErrorCode::kLimitExceeded);
  }
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  return internal::AboutLine(node.source(),
                             fmt::format("{} is neither a string nor a number", key));
}

Result<std::vector<std::string>> SettingValues(const toml::node& node, std::string_view key,
                                               const Flag& flag) {
  if (flag.kind == Flag::Kind::kSwitch) {
    const auto* value = node.as_boolean();
    if (value == nullptr) {
      return internal::AboutLine(node.source(), fmt::format("{} is neither true nor false", key));
    }
    return std::vector<std::string>{value->get() ? "true" : "false"};
  }
  const toml::array* array = flag.kind == Flag::Kind::kList ? node.as_array() : nullptr;
  if (array != nullptr && array->size() > kMaxSettingValues) {
    return internal::AboutLine(node.source(),
                               fmt::format("{} has more than {} values", key, kMaxSettingValues),
                               ErrorCode::kLimitExceeded);
  }
  std::vector<std::string> values;
  const auto take = [&](const toml::node& item) -> Result<void> {
    auto text = TRY(SettingText(item, key));
    // All directories share the file, so its paths can't be relative.
    const bool is_path =
        flag.placeholder.starts_with("DIR") || flag.placeholder.starts_with("FILE");
    if (is_path && !text.starts_with("/")) {
      return internal::AboutLine(item.source(), fmt::format("{} must be an absolute path", key));
    }
    values.push_back(std::move(text));
    return {};
  };
  if (array == nullptr) {
    TRY(take(node));
    return values;
  }
  for (const toml::node& item : *array) {
    TRY(take(item));
  }
  return values;
}

// The same directory, by whatever path. It need not exist.
bool IsSamePlace(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const auto plain = [](const std::string& path) {
    std::error_code ignored;
    const auto whole = std::filesystem::absolute(path) / "";
    auto real = std::filesystem::weakly_canonical(whole, ignored);
    return ((ignored ? whole.lexically_normal() : real) / "").lexically_normal();
  };
  return plain(a) == plain(b);
}

std::string ShellWords(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : " ") + ShellWord(value);
  return text;
}

}  // namespace

std::string_view SettingType(Flag::Kind kind) {
  switch (kind) {
    case Flag::Kind::kSwitch:
      return "true or false";
    case Flag::Kind::kList:
      return "array of strings";
    default:
      return "string";
  }
}

Result<void> Settings::TakeConfig(std::string_view text, const std::string& path) {
  auto table = TRY(internal::ReadToml(text, kMaxConfigBytes));
  for (const auto& [key, node] : table) {
    const std::string flag = "--" + std::string(key.str());
    const auto known = known_.find(flag);
    if (known == known_.end()) {
      std::vector<std::string> keys;
      for (const auto& [name, setting] : known_) keys.push_back(name.substr(2));
      Error error = internal::AboutLine(
          key.source(), fmt::format("there is no setting '{}'", key.str().substr(0, 200)));
      error.hint = DidYouMean(key.str(), keys, "see man waybill-config, or waybill man config");
      return error;
    }
    auto values = TRY(SettingValues(node, key.str(), *known->second));
    file_[flag] = {std::move(values), path};
  }
  return CheckNode();
}

Result<void> Settings::CheckNode() const {
  const auto has = [&](std::string_view flag) { return file_.contains(std::string(flag)); };
  for (const std::string_view flag : kOfItsNode) {
    for (const std::string_view needed : {kStoreFlag, kKubeletFlag}) {
      if (!has(flag) || has(needed)) continue;
      if (needed == kKubeletFlag && flag != "--cri") continue;
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is there without {}", flag.substr(2), needed.substr(2)),
                   "store, kubelet-dir, witness and cri say of one node what belongs together"};
    }
  }
  return {};
}

Result<void> Settings::ReadConfig() {
  if (std::exchange(read_, true)) return {};
  for (const auto& [variable, holds] :
       {std::pair(kStoreVariable, "the store's directory"), {kConfigVariable, "a file, or none"}}) {
    const char* value = std::getenv(variable);
    if (value == nullptr) continue;
    if (*value == '\0') {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} is empty", variable),
                   fmt::format("set it to {}, or unset it", holds)};
    }
    if (variable == kStoreVariable) store_variable_ = {{value}, variable};
    if (variable == kConfigVariable && !config_) config_ = value;
  }
  if (config_ == "none") return {};
  const std::string path = config_.value_or(kConfigPath);
  auto text = ReadOwnFile(path, kMaxConfigBytes);
  if (!text) {
    // The file is optional, unless the user named it.
    if (!config_ && text.error().code == ErrorCode::kNotFound) return {};
    Error error = text.error();
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kInvalidArgument;
    return error;
  }
  auto taken = TakeConfig(*text, path);
  if (!taken) {
    file_.clear();
    return AboutInput(path, taken.error(), "see man waybill-config, or waybill man config");
  }
  return {};
}

bool Settings::IsOtherNode() const {
  const auto differs = [&](std::string_view flag, const std::string& value) {
    const auto own = file_.find(std::string(flag));
    return own != file_.end() && !IsSamePlace(own->second.values.front(), value);
  };
  for (const std::string_view flag : {kStoreFlag, kKubeletFlag}) {
    const auto given = given_.find(std::string(flag));
    if (given != given_.end() && differs(flag, given->second)) return true;
  }
  return !given_.contains(std::string(kStoreFlag)) && store_variable_ &&
         differs(kStoreFlag, store_variable_->values.front());
}

Result<const Settings::Setting*> Settings::Find(const std::string& flag) {
  TRY(ReadConfig());
  if (flag == kStoreFlag && store_variable_) return &*store_variable_;
  const auto found = file_.find(flag);
  return found == file_.end() ? nullptr : &found->second;
}

Result<std::vector<std::string>> Settings::Ask(const Flag& flag) {
  auto found = TRY(Find(flag.name));
  if (found == nullptr) return std::vector<std::string>();
  const Setting& setting = *found;
  const bool is_of_node =
      std::find(std::begin(kOfItsNode), std::end(kOfItsNode), flag.name) != std::end(kOfItsNode);
  if (is_of_node && setting.origin != kStoreVariable && IsOtherNode()) {
    left_store_ = left_store_ || flag.name == kStoreFlag;
    notes_.push_back(fmt::format("{} of {} is not taken: that file is about another node",
                                 flag.name, setting.origin));
    return std::vector<std::string>();
  }
  if (flag.name == kStoreFlag && store_variable_) {
    const auto own = file_.find(flag.name);
    if (own != file_.end() && own->second.values != setting.values) {
      notes_.push_back(fmt::format("{} of {} wins over that of {}", flag.name, kStoreVariable,
                                   own->second.origin));
    }
  }
  NoteOrigin(flag, setting.values, setting.origin);
  return setting.values;
}

void Settings::NoteOrigin(const Flag& flag, const std::vector<std::string>& values,
                          const std::string& origin) {
  origins_[flag.name] = origin;
  notes_.push_back(fmt::format("{} {}, from {}", flag.name, ShellWords(values), origin));
}

void Settings::NoteWins(const Flag& flag, const std::string& over) {
  const auto origin = origins_.find(flag.name);
  notes_.push_back(fmt::format("{} of {} wins over that of {}", flag.name,
                               origin == origins_.end() ? "the command line" : origin->second,
                               over));
}

Result<void> Settings::NoteGiven(const Flag& flag) {
  if (!flag.settings) return {};
  const std::vector<std::string>& given = flag.typed;
  given_[flag.name] = given.front();
  if (!verbose_) return {};
  auto found = TRY(Find(flag.name));
  if (found == nullptr || found->values == given) return {};
  NoteWins(flag, found->origin);
  return {};
}

Error Settings::Missing(const Flag& flag) const {
  const std::string key = flag.name.substr(2);
  const bool is_store = flag.name == kStoreFlag;
  if (is_store && left_store_) {
    return BadFlag(flag.name, "it is missing",
                   fmt::format("the store of {} belongs to another kubelet directory; name the one "
                               "of this",
                               config_.value_or(kConfigPath)));
  }
  return BadFlag(
      flag.name, "it is missing",
      fmt::format("give {} {},{} or write `{} = \"…\"` into {}", flag.name, flag.placeholder,
                  is_store ? fmt::format(" set {},", kStoreVariable) : std::string(), key,
                  config_ == "none" ? kConfigPath : config_.value_or(kConfigPath)));
}

Error Settings::WithOrigin(Error error) const {
  for (const auto& [flag, origin] : origins_) {
    if (!error.message.starts_with(flag + ":")) continue;
    error.hint = fmt::format("{}{}{} comes from {}", HintOf(error),
                             HintOf(error).empty() ? "" : "; ", flag, origin);
    error.hint_code = Hint::kNone;
    break;
  }
  return error;
}

}  // namespace waybill::cli
