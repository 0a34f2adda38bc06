#include "bindings/cli/glossary.h"

#include <cctype>
#include <sstream>

namespace waybill::cli {
namespace {

constexpr std::string_view kPage =
#include "glossary.inc"
    ;

bool HasWord(std::string_view text, std::string_view word) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  // In a flag or a path it is a name.
  const auto is_within = [&](char c) { return is_letter(c) || c == '-' || c == '/'; };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    // "gaps" is the word, too.
    const std::size_t behind = end < text.size() && text[end] == 's' ? end + 1 : end;
    if ((at == 0 || !is_within(text[at - 1])) &&
        (behind >= text.size() || !is_letter(text[behind]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Term> Glossary() {
  constexpr std::string_view kBegins = "- **";
  std::vector<Term> terms;
  bool in_errors = false;  // the second part of the page
  std::istringstream page{std::string(kPage)};
  for (std::string line; std::getline(page, line);) {
    in_errors = in_errors || line.starts_with("## ");
    const std::size_t colon = line.find(": ");
    if (!line.starts_with(kBegins) || colon == std::string::npos) continue;
    std::string words = line.substr(kBegins.size(), colon - kBegins.size());
    std::erase(words, '*');
    terms.push_back({std::move(words), line.substr(colon + 2), in_errors});
  }
  return terms;
}

std::string TermsIn(std::string_view text) {
  std::string found;
  for (const Term& term : Glossary()) {
    std::istringstream words(term.words);
    bool is_there = false;
    for (std::string word; std::getline(words >> std::ws, word, ',');) {
      is_there = is_there || HasWord(text, word);
    }
    if (!term.in_errors || !is_there) continue;
    found += (found.empty() ? "" : ", ") + term.words.substr(0, term.words.find(','));
  }
  return found;
}

}  // namespace waybill::cli
