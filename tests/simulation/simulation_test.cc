// Some lives in every run of the tests, and the judge's own test: it notices mistakes of callers.
// WAYBILL_SIMULATED_DECISIONS: in all. WAYBILL_SEED: play them again.

#include <boost/test/unit_test.hpp>

#include "tests/simulation/node_life.h"
#include "tests/simulation/simulate.h"
#include "tests/support/draw.h"

namespace waybill::simulation {

BOOST_AUTO_TEST_SUITE(simulation)

BOOST_AUTO_TEST_CASE(nothing_opens_wrongly) {
  const std::uint64_t seed = testing::SeedOfThisRun();
  const std::uint64_t decisions = testing::NumberFromEnv("WAYBILL_SIMULATED_DECISIONS", 50'000);
  for (const Scenario& scenario : Scenarios()) {
    try {
      const Figures figures = Simulate(scenario, decisions / Scenarios().size(), seed);
      BOOST_TEST(figures.opened > 0U);
    } catch (const Wrong& wrong) {
      BOOST_FAIL(wrong.what());
    }
  }
}

// The same lives each time: whether a mistake shows is no matter of chance.
BOOST_AUTO_TEST_CASE(each_mistake_of_a_caller_is_noticed) {
  for (int i = 1; i <= static_cast<int>(kLastBreakage); ++i) {
    const Breakage breakage = static_cast<Breakage>(i);
    BOOST_TEST_CONTEXT(BreakageName(breakage)) {
      const auto lives = [&] {
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
          if (breakage > kLastBreakageOfEvidence) {
            Simulate(*FindScenario("forgetting"), 50'000, seed, kLife, breakage);
            continue;
          }
          Simulate(*FindScenario("no-losses"), 50'000, seed, kLife, breakage);
          Simulate(*FindScenario("troubles"), 50'000, seed, kLife, breakage);
        }
      };
      BOOST_CHECK_THROW(lives(), Wrong);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::simulation
