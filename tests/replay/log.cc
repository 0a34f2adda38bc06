#include "tests/replay/log.h"

#include <fmt/core.h>

#include <algorithm>

namespace waybill::replay {

namespace {

// What is shown of a text that differs from another at byte `at`: all, or where it is long, the
// neighbourhood.
std::string Excerpt(const std::string& text, std::size_t at) {
  constexpr std::size_t kBefore = 80;
  constexpr std::size_t kShown = 240;
  if (text.size() <= kShown) return text;
  std::size_t begin = at > kBefore ? at - kBefore : 0;
  std::size_t end = std::min(text.size(), begin + kShown);
  const auto inside_character = [&text](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
  };
  while (begin > 0 && inside_character(begin)) --begin;
  while (inside_character(end)) ++end;
  return fmt::format("{}{}{}", begin > 0 ? "…" : "", text.substr(begin, end - begin),
                     end < text.size() ? "…" : "");
}

}  // namespace

void Log::Compare(const std::string& what, const std::string& expected, const std::string& got) {
  if (expected == got) {
    Same();
  } else {
    const auto e = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end()).first;
    const auto at = static_cast<std::size_t>(e - expected.begin());
    Different(fmt::format("{}\n  expected  {}\n  got       {}", what, Excerpt(expected, at),
                          Excerpt(got, at)));
  }
}

void Log::Different(const std::string& text) {
  ++compared_;
  if (++different_ <= kPrintedMax) {
    fmt::print("{}: {}\n", Where(), text);
  } else if (different_ == kPrintedMax + 1) {
    fmt::print("(further differences are only counted)\n");
  }
}

}  // namespace waybill::replay
