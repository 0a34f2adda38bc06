#include "runtime/cri/command_line.h"

#include <sstream>

namespace waybill::cri {

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

}  // namespace waybill::cri
