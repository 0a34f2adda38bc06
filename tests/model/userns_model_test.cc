// Random histories of ID mappings: crashes, other pools and lengths, take-overs of files. No two
// pods ever share a host ID, and no pod's IDs change. WAYBILL_MODEL_STEPS: steps in all.
// WAYBILL_SEED: play one history again.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "tests/model/userns_history.h"
#include "tests/support/drawn_random.h"
#include "tests/support/memory_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(userns_model)

namespace {

constexpr std::uint64_t kDefaultSteps = 100'000;
constexpr std::uint64_t kStepsPerHistory = 5'000;

}  // namespace

BOOST_AUTO_TEST_CASE(no_two_pods_share_host_ids) {
  const std::uint64_t steps = NumberFromEnv("WAYBILL_MODEL_STEPS", kDefaultSteps);
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST(steps > 0U);
  std::map<std::string, std::uint64_t> counts;
  for (std::uint64_t done = 0, i = 0; done < steps; done += kStepsPerHistory, ++i) {
    const MemoryDir scratch;
    const DrawnRandom random(seed + i);
    try {
      UsernsHistory history(scratch.path(), seed + i);
      history.Play(std::min(kStepsPerHistory, steps - done));
      for (const auto& [what, count] : history.counts()) counts[what] += count;
    } catch (const std::exception& mismatch) {
      BOOST_FAIL("WAYBILL_SEED=" << seed + i << ": " << mismatch.what());
    }
  }
  for (const auto& [what, count] : counts) BOOST_TEST_MESSAGE(what << ": " << count);
  if (steps < kDefaultSteps) return;
  for (const char* what :
       {"new", "same",
        "refused: could not find an empty slot to allocate a user "
        "namespace",
        "refused: no new ID mapping can be handed out", "refused: are unverified", "adopted",
        "adopted held", "cleaned up", "kept as newer", "other pool", "crash", "imported", "held",
        "off the pool"}) {
    BOOST_TEST(counts[what] > 10U, what << ": " << counts[what]);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
