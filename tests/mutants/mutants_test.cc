// The fuzzers, briefly and unguided: each gets what the fixtures have, changed at random. The
// sanitised build plays them, too. ./dev fuzz plays them for longer, guided by coverage.
// WAYBILL_MUTANTS: how many for each.

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/draw.h"

// One for each of FUZZERS in ../CMakeLists.txt.
#define WAYBILL_FUZZER(name) extern "C" int name(const std::uint8_t* data, std::size_t size);
#include "mutants/fuzzers.inc"
#undef WAYBILL_FUZZER

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(mutants)

namespace {

constexpr std::uint64_t kDefaultMutants = 20'000;
constexpr std::size_t kLongestSeed = 4096;

struct Fuzzer {
  const char* name;
  int (*play)(const std::uint8_t* data, std::size_t size);
};
std::ostream& operator<<(std::ostream& out, const Fuzzer& fuzzer) { return out << fuzzer.name; }

const std::vector<Fuzzer> kFuzzers = {
#define WAYBILL_FUZZER(name) {#name, name},
#include "mutants/fuzzers.inc"
#undef WAYBILL_FUZZER
};

// Lines of the fixtures, and short files as a whole.
const std::vector<std::string>& Seeds() {
  static const std::vector<std::string> seeds = [] {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(WAYBILL_FIXTURES)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      std::string whole;
      for (std::string line; std::getline(file, line); whole += line + '\n') {
        if (!line.empty() && line.size() <= kLongestSeed) all.push_back(line);
      }
      if (whole.size() <= kLongestSeed) all.push_back(std::move(whole));
    }
    std::ranges::sort(all);
    return all;
  }();
  return seeds;
}

void Change(std::string& text, Draw& draw) {
  const std::size_t at = draw.Below(text.size() + 1);
  const std::size_t bytes = draw.Below(std::min<std::size_t>(text.size() - at, 16) + 1);
  switch (draw.Below(5)) {
    case 0:
      text.erase(at, bytes);
      break;
    case 1:
      text.insert(at, text.substr(at, bytes));
      break;
    case 2: {
      const std::string& other = draw.From(Seeds());
      const std::size_t from = draw.Below(other.size());
      text.replace(at, bytes, other.substr(from, draw.Below(32)));
      break;
    }
    case 3:
      text.insert(at, 1, "{}[]\",:\\/@-0e.\n\0"[draw.Below(16)]);
      break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(draw.Below(256));
  }
}

}  // namespace

BOOST_DATA_TEST_CASE(a_fuzzer_accepts_what_is_changed, boost::unit_test::data::make(kFuzzers)) {
  Draw draw(SeedOfThisRun());
  const std::uint64_t mutants = NumberFromEnv("WAYBILL_MUTANTS", kDefaultMutants);
  BOOST_TEST_REQUIRE(Seeds().size() > 1000U);
  for (std::uint64_t i = 0; i < mutants; ++i) {
    std::string text = draw.From(Seeds());
    for (std::size_t changes = draw.Below(6); changes > 0; --changes) Change(text, draw);
    BOOST_TEST_CHECKPOINT("mutant " << i << ": " << text);
    BOOST_TEST_REQUIRE(
        sample.play(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
