// What the store knows of time, beside what really passed.

#include "store/engine/database/clocks.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <limits>

#include "tests/support/draw.h"
#include "tests/support/drawn_random.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(clocks)

using internal::Clocks;
using std::chrono::nanoseconds;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'800'000'000;

// A machine with a true time, which boots, is off, and has a wall clock that jumps.
BOOST_AUTO_TEST_CASE(what_ran_is_never_more_than_the_truth_and_ages_are_never_less) {
  Draw draw(SeedOfThisRun());
  for (int machine = 0; machine < 200; ++machine) {
    BootTime boot{{1}, 100 * kSecond};
    std::int64_t truth = 0;  // since the first commit; likewise below
    std::int64_t ran = 0;
    std::int64_t lead = 0;  // of the wall clock
    const auto wall = [&] { return internal::Plus({kStart, 0}, nanoseconds(truth + lead)); };
    Clocks clocks = Clocks().At(boot, wall());
    const Timestamp first = clocks.ages;
    for (int step = 0; step < 100; ++step) {
      const auto passed = static_cast<std::int64_t>(draw.Below(100'000)) * kSecond / 7;
      switch (draw.Below(8)) {
        case 0:  // it is off, and boots
          truth += passed;
          boot = {{static_cast<std::uint8_t>(boot.boot_id[0] % 250 + 1)}, 0};
          break;
        case 1:
          lead += draw.OneIn(2) ? passed : -passed;
          break;
        case 2:
          lead = 0;
          break;
        default:
          truth += passed;
          ran += passed;
          boot.nanoseconds += passed;
      }
      const Clocks now = clocks.At(draw.OneIn(10) ? BootTime() : boot, wall());
      BOOST_TEST_REQUIRE(now.ran.count() <= ran);
      BOOST_TEST_REQUIRE((now.ran >= clocks.ran));
      BOOST_TEST_REQUIRE((now.boot_ran <= now.ran));
      BOOST_TEST_REQUIRE((now.ages >= clocks.ages));
      if (draw.OneIn(2)) clocks = now;
    }
    // Once the clock is right, all that passed has counted.
    lead = 0;
    const Clocks last = clocks.At(boot, wall());
    BOOST_TEST_REQUIRE((internal::Between(first, last.ages).count() >= truth));
  }
}

BOOST_AUTO_TEST_CASE(no_stored_or_given_time_overflows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t seconds : {kLeast, std::int64_t{0}, kStart, kMost}) {
    for (const std::int64_t ticks : {kLeast, std::int64_t{0}, kMost}) {
      Clocks clocks{.boot = {{1}, ticks}, .wall = {seconds, 0}, .ages = {seconds, 0}};
      clocks.ran = internal::kLongestRun;
      for (const std::int64_t now : {kLeast, std::int64_t{-1}, kStart, kMost}) {
        for (std::uint8_t boot = 0; boot < 3; ++boot) {
          const Clocks later = clocks.At({{boot}, now}, {now, 999'999'999});
          BOOST_TEST((later.ran <= internal::kLongestRun));
          BOOST_TEST((later.ages >= clocks.ages || clocks.ages == Timestamp()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
