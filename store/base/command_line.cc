#include "store/base/command_line.h"

#include <sstream>

namespace waybill::internal {

CommandLine CommandLine::Of(const std::string& text) {
  CommandLine line;
  std::istringstream rest(text);
  for (std::string word; std::getline(rest, word, '\0');) line.words.push_back(word);
  return line;
}

std::vector<std::string> CommandLine::Values(std::string_view flag) const {
  std::vector<std::string> values;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (!word.starts_with(flag)) continue;
    if (word.size() > flag.size() && word[flag.size()] == '=') {
      values.emplace_back(word.substr(flag.size() + 1));
    } else if (word == flag) {
      const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with('-');
      values.push_back(has_value ? words[i + 1] : "true");
    }
  }
  return values;
}

std::string CommandLine::Flag(std::string_view flag) const {
  const auto values = Values(flag);
  return values.empty() ? "" : values.back();
}

// proc(5): the second field, in brackets, may have anything in it; the third is the state, the 22nd
// the time.
std::optional<std::int64_t> StartOf(const std::string& stat) {
  constexpr int kStartTime = 22;
  const std::size_t bracket = stat.rfind(") ");
  if (bracket == stat.npos) return std::nullopt;
  std::istringstream fields(stat.substr(bracket + 2));
  std::string state;
  std::string ignored;
  fields >> state;
  for (int field = 4; field < kStartTime; ++field) fields >> ignored;
  std::int64_t ticks = -1;
  fields >> ticks;
  const bool is_gone = state == "Z" || state == "X";
  return ticks < 0 || fields.fail() || is_gone ? std::nullopt : std::optional(ticks);
}

}  // namespace waybill::internal
