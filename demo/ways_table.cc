// waybill_demo: plays each way in which a kubelet opens a private image, or shuts a preloaded one,
// under both sets of rules, and prints the answers side by side. Exit code 1: an answer differs
// from the promised one.

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/ways.h"

namespace {

using waybill::Mode;
using waybill::testing::Way;

constexpr std::string_view kRow = "  {:<62}{:<10}{:<9}{}\n";

std::string_view Word(bool open) { return open ? "OPEN" : "closed"; }

void PrintHead(std::string_view title) {
  fmt::print("\n");
  fmt::print(fmt::runtime(kRow), title, "kubelet", "waybill, under", "");
  fmt::print(fmt::runtime(kRow), "Before that:", "v1.36.3", "kubelet", "closed rules");
  fmt::print("  {:-<93}\n", "");
}

// Returns whether the answers are the promised ones.
bool PrintRow(const Way& way) {
  const bool under_kubelet_rules = !way.play(Mode::kKubelet).pull;
  const bool under_closed_rules = !way.play(Mode::kStrict).pull;
  fmt::print(fmt::runtime(kRow), way.story, Word(way.open_in_the_kubelet),
             Word(under_kubelet_rules), Word(under_closed_rules));
  return under_kubelet_rules == way.open_under_kubelet_rules &&
         under_closed_rules == way.open_under_closed_rules;
}

bool PrintTable(std::string_view title, std::span<const Way> ways) {
  PrintHead(title);
  bool as_promised = true;
  for (const Way& way : ways) {
    try {
      as_promised = PrintRow(way) && as_promised;
    } catch (const std::exception& e) {
      fmt::print(stderr, "error: {}: {}\n", way.story, e.what());
      as_promised = false;
    }
  }
  return as_promised;
}

}  // namespace

int main() {
  const bool first = PrintTable("A pod without credentials asks for a private image.",
                                waybill::testing::WaysTheKubeletOpens());
  fmt::print(
      "\n  First row: the closed rules ask for the complete list of images, and are given it here. "
      "An\n"
      "  image that a list leaves out by mistake loses its record under any rules.\n");
  const bool second = PrintTable("The same, where no record proves nothing.",
                                 waybill::testing::WaysToAPrivateImage());
  const bool third = PrintTable("A pod without credentials asks for a preloaded image.",
                                waybill::testing::WaysToAPreloadedImage());
  return first && second && third ? 0 : 1;
}
