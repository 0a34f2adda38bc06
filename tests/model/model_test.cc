// Random histories: the store answers and holds what the model does.
// WAYBILL_MODEL_STEPS: steps in all.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "tests/model/history.h"
#include "tests/support/drawn_random.h"
#include "tests/support/memory_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(model)

namespace {

constexpr std::uint64_t kDefaultSteps = 100'000;
constexpr std::uint64_t kStepsPerHistory = 5'000;

// Histories of a few thousand steps each, since an empty store is a state, too.
void PlayHistories(const HistoryPlan& plan, std::uint64_t steps) {
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST(steps > 0U);
  for (std::uint64_t done = 0, i = 0; done < steps; done += kStepsPerHistory, ++i) {
    const MemoryDir scratch;
    BOOST_TEST_CHECKPOINT("seed " << seed + i);
    const DrawnRandom random(seed + i);
    try {
      History history(scratch.path(), plan, seed + i);
      history.Play(std::min(kStepsPerHistory, steps - done));
    } catch (const Mismatch& mismatch) {
      BOOST_FAIL("WAYBILL_SEED=" << seed + i << ": " << mismatch.what());
    }
  }
}

std::uint64_t Steps() { return NumberFromEnv("WAYBILL_MODEL_STEPS", kDefaultSteps); }

}  // namespace

BOOST_AUTO_TEST_CASE(kubelet_rules) { PlayHistories({{Mode::kKubelet}}, Steps() * 3 / 10); }

BOOST_AUTO_TEST_CASE(closed_rules) { PlayHistories({{Mode::kStrict}}, Steps() * 6 / 10); }

// With the default handler alone a registry of handlers makes no difference.
BOOST_AUTO_TEST_CASE(the_default_handler_is_as_before) {
  PlayHistories({{Mode::kKubelet, Mode::kKubelet}, Relation::kSameAnswers}, Steps() / 20);
  PlayHistories({{Mode::kStrict, Mode::kStrict}, Relation::kSameAnswers}, Steps() / 20);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
