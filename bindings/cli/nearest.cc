#include "bindings/cli/nearest.h"

#include <algorithm>
#include <cstddef>

namespace waybill::cli {
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
