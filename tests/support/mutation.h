// Small damage to a document.

#ifndef WAYBILL_TESTS_SUPPORT_MUTATION_H_
#define WAYBILL_TESTS_SUPPORT_MUTATION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace waybill::testing {

// One to four changes: a byte, a piece cut out, doubled or replaced by something JSON cares about.
inline std::string Mutate(std::string text, std::mt19937_64& random) {
  static constexpr std::array<std::string_view, 16> kTokens = {
      "{",       "}",
      "[",       "]",
      ",",       ":",
      "\"",      "\\u0000",
      "\\ud800", "null",
      "true",    "-1e999",
      "\xff",    "\xe2\x80\xa8",
      "=",       "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, below(24));
    switch (below(4)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.replace(at, below(2) * length, kTokens[below(kTokens.size())]);
        break;
    }
  }
  return text;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MUTATION_H_
