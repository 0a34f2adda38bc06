// Some lives in every run of the tests, and the judge's own tests: it notices mistakes of callers.
// WAYBILL_SIMULATED_DECISIONS: in all. WAYBILL_SEED: play them again.

#include <boost/test/unit_test.hpp>
#include <initializer_list>
#include <string_view>

#include "tests/simulation/node_life.h"
#include "tests/simulation/simulate.h"
#include "tests/support/draw.h"

namespace waybill::simulation {

BOOST_AUTO_TEST_SUITE(simulation)

BOOST_AUTO_TEST_CASE(nothing_opens_wrongly) {
  const std::uint64_t seed = testing::SeedOfThisRun();
  const std::uint64_t decisions = testing::NumberFromEnv("WAYBILL_SIMULATED_DECISIONS", 30'000);
  for (const Scenario& scenario : Scenarios()) {
    try {
      // A disk is away for hours, so that takes longer lives.
      const std::size_t parts = scenario.disks > 0 ? 5 : Scenarios().size();
      const Figures figures = Simulate(scenario, decisions / parts, seed);
      BOOST_TEST(figures.opened > 0U);
    } catch (const Wrong& wrong) {
      BOOST_FAIL(wrong.what());
    }
  }
}

// What is remembered of images that are gone mends some mistakes, and most of what the limits name.
Scenario Forgetful(std::string_view name) {
  Scenario scenario = *FindScenario(name);
  scenario.remembers = false;
  return scenario;
}

// The same lives each time: whether a mistake shows is no matter of chance.
void CheckNoticed(Breakage breakage, std::initializer_list<std::string_view> scenarios,
                  bool remembers = false) {
  BOOST_TEST_CONTEXT(BreakageName(breakage) << ", " << *scenarios.begin()) {
    const auto lives = [&] {
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        for (const std::string_view scenario : scenarios) {
          Simulate(remembers ? *FindScenario(scenario) : Forgetful(scenario), 50'000, seed,
                   breakage);
        }
      }
    };
    BOOST_CHECK_THROW(lives(), Wrong);
  }
}

BOOST_AUTO_TEST_CASE(each_mistake_of_a_caller_is_noticed) {
  for (int i = 1; i <= static_cast<int>(kLastBreakageOfForgetting); ++i) {
    const Breakage breakage = static_cast<Breakage>(i);
    if (breakage > kLastBreakageOfEvidence) {
      CheckNoticed(breakage, {"forgetting"});
    } else {
      CheckNoticed(breakage, {"no-losses", "troubles"});
    }
  }
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_a_kubelet_ran) {
  CheckNoticed(Breakage::kGapUnreported, {"kubelet-alone"});
  CheckNoticed(Breakage::kKubeletUnseen, {"take-over"});
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_hashes_are_forgotten) {
  CheckNoticed(Breakage::kForgettingUntold, {"hashes"});
  CheckNoticed(Breakage::kOtherHashForgotten, {"hashes"});
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_strangers_pull_the_same_string) {
  CheckNoticed(Breakage::kSuccessOfAnotherPull, {"strangers"});
  CheckNoticed(Breakage::kForgettingUntold, {"strange-hours"});
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_the_runtime_tells_more) {
  CheckNoticed(Breakage::kImportedAlways, {"by-hand"});
  CheckNoticed(Breakage::kQuietTooEarly, {"by-hand"});
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_a_mirror_asks_nobody) {
  CheckNoticed(Breakage::kMirrorsUntold, {"mirrors"});
  CheckNoticed(Breakage::kEndsUntold, {"mirrors"});
}

BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_the_node_has_credentials) {
  CheckNoticed(Breakage::kNodeHadNone, {"node-credentials"});
}

// What is not remembered opens when it comes back.
BOOST_AUTO_TEST_CASE(mistakes_are_noticed_where_images_are_away) {
  constexpr bool kRemembers = true;
  CheckNoticed(Breakage::kNone, {"many-away"});
  CheckNoticed(Breakage::kAgesUntold, {"wrong-clocks"}, kRemembers);
  CheckNoticed(Breakage::kForgettingUntold, {"wrong-clocks"}, kRemembers);
  CheckNoticed(Breakage::kClosingsUntold, {"words"}, kRemembers);
  CheckNoticed(Breakage::kClosingsUntold, {"restores"}, kRemembers);
}

BOOST_AUTO_TEST_CASE(what_is_brought_by_hand_is_seldom_shut) {
  const Scenario& by_hand = *FindScenario("by-hand");
  Scenario untold = by_hand;
  untold.tells_imports = untold.tells_quiet = untold.remembers = false;
  const auto closings = [](const Scenario& scenario) {
    return Simulate(scenario, 10'000, 3).WrongClosingsIn1000();
  };
  BOOST_TEST(closings(by_hand) <= by_hand.wrong_closings_at_most);
  BOOST_TEST(closings(untold) > by_hand.wrong_closings_at_most);
}

BOOST_AUTO_TEST_CASE(strangers_who_fail_cost_nobody_his_proofs) {
  const Scenario& strangers = *FindScenario("strangers");
  const auto closings = [&](Breakage breakage) {
    return Simulate(strangers, 30'000, 1, breakage).WrongClosingsIn1000();
  };
  BOOST_TEST(closings(Breakage::kNone) <= strangers.wrong_closings_at_most);
  BOOST_TEST(closings(Breakage::kMixedPullsProveNothing) > strangers.wrong_closings_at_most);
}

BOOST_AUTO_TEST_CASE(what_the_limits_name_is_counted) {
  const Figures limits = Simulate(Forgetful("limits"), 100'000, 6000);
  BOOST_TEST(limits.late > 0U);
  BOOST_TEST(limits.partial_lists > 0U);
  BOOST_TEST(limits.retagged > 0U);
  BOOST_TEST(Simulate(Forgetful("lost"), 30'000, 1).lost > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::simulation
