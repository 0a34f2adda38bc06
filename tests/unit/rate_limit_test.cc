#include "waybill/rate_limit.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/draw.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(rate_limit)

namespace {

__extension__ using Wide = unsigned __int128;

constexpr auto kMaxBytes = std::numeric_limits<std::uint64_t>::max();
constexpr auto kEarliest = std::numeric_limits<std::int64_t>::min();
constexpr auto kLatest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

BOOST_AUTO_TEST_CASE(no_limit) {
  RateLimit limit({}, 0);
  BOOST_TEST(limit.Take(kMaxBytes, 0) == kMaxBytes);
  BOOST_TEST(limit.Take(kMaxBytes, kEarliest) == kMaxBytes);
  BOOST_TEST(limit.Wait(kMaxBytes, kLatest) == 0);
  limit.GiveBack(kMaxBytes);
  RateLimit with_burst({.burst_bytes = 5}, 0);
  BOOST_TEST(with_burst.Take(100, 0) == 100U);
  BOOST_TEST(with_burst.burst_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_bucket) {
  RateLimit limit({.bytes_per_second = 1000, .burst_bytes = 100}, 7);
  BOOST_TEST(limit.Wait(100, 7) == 0);
  BOOST_TEST(limit.Take(30, 7) == 30U);
  BOOST_TEST(limit.Take(100, 7) == 70U);
  BOOST_TEST(limit.Take(1, 7) == 0U);
  BOOST_TEST(limit.Wait(1, 7) == kSecond / 1000);
  BOOST_TEST(limit.Wait(1, 8) == kSecond / 1000 - 1);
  BOOST_TEST(limit.Take(1, 7 + kSecond / 1000 - 1) == 0U);
  BOOST_TEST(limit.Take(1, 7 + kSecond / 1000) == 1U);
  // It never holds more than the burst, and so never asks to wait for more.
  BOOST_TEST(limit.Wait(kMaxBytes, 7 + kSecond / 1000) == kSecond / 10);
  BOOST_TEST(limit.Take(kMaxBytes, 100 * kSecond) == 100U);
}

BOOST_AUTO_TEST_CASE(asking_often) {
  RateLimit limit({.bytes_per_second = 1}, 0);
  BOOST_TEST(limit.Take(1, 0) == 1U);
  // Asking neither gains nor loses a billionth of a byte.
  for (std::int64_t now = 0; now <= 1000; ++now) BOOST_REQUIRE(limit.Take(1, now) == 0U);
  BOOST_TEST(limit.Take(1, kSecond - 1) == 0U);
  BOOST_TEST(limit.Take(1, kSecond) == 1U);
}

BOOST_AUTO_TEST_CASE(default_bursts) {
  BOOST_TEST(RateLimit({.bytes_per_second = 1}, 0).burst_bytes() == 1U);
  BOOST_TEST(RateLimit({.bytes_per_second = 19}, 0).burst_bytes() == 1U);
  BOOST_TEST(RateLimit({.bytes_per_second = 1 << 20}, 0).burst_bytes() == (1U << 20) / 10);
  BOOST_TEST(RateLimit({.bytes_per_second = kMaxBytes}, 0).burst_bytes() == kMaxBytes / 10);
  BOOST_TEST(RateLimit({.bytes_per_second = 9, .burst_bytes = 4}, 0).bytes_per_second() == 9U);
}

BOOST_AUTO_TEST_CASE(giving_back) {
  RateLimit limit({.bytes_per_second = 1000, .burst_bytes = 100}, 0);
  BOOST_TEST(limit.Take(80, 0) == 80U);
  limit.GiveBack(50);
  BOOST_TEST(limit.Take(100, 0) == 70U);
  limit.GiveBack(kMaxBytes);
  BOOST_TEST(limit.Take(kMaxBytes, 0) == 100U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back) {
  RateLimit limit({.bytes_per_second = 1000, .burst_bytes = 100}, 50 * kSecond);
  BOOST_TEST(limit.Take(100, 50 * kSecond) == 100U);
  BOOST_TEST(limit.Take(100, kEarliest) == 0U);
  BOOST_TEST(limit.Wait(10, kEarliest) == kSecond / 100);
  BOOST_TEST(limit.Take(10, kEarliest + kSecond / 100) == 10U);
}

BOOST_AUTO_TEST_CASE(the_largest_numbers) {
  RateLimit fastest({.bytes_per_second = kMaxBytes, .burst_bytes = kMaxBytes}, kEarliest);
  BOOST_TEST(fastest.Take(kMaxBytes, kEarliest) == kMaxBytes);
  BOOST_TEST(fastest.Wait(kMaxBytes, kEarliest) == kSecond);
  BOOST_TEST(fastest.Take(kMaxBytes, kLatest) == kMaxBytes);
  RateLimit slowest({.bytes_per_second = 1, .burst_bytes = kMaxBytes}, kEarliest);
  BOOST_TEST(slowest.Take(kMaxBytes, kEarliest) == kMaxBytes);
  BOOST_TEST(slowest.Wait(kMaxBytes, kEarliest) == kLatest);
  // 2^64 - 1 nanoseconds later.
  BOOST_TEST(slowest.Take(kMaxBytes, kLatest) == kMaxBytes / kSecond);
}

// Any schedule: never more than burst + rate * elapsed. A greedy caller: all of it, within a byte.
BOOST_AUTO_TEST_CASE(what_passes) {
  testing::Draw draw(testing::SeedOfThisRun());
  for (int round = 0; round < 300; ++round) {
    const auto number = [&](int bits) {
      return draw.Below(std::size_t{1} << (1 + draw.Below(static_cast<std::size_t>(bits))));
    };
    const std::uint64_t rate = 1 + number(40);
    const std::uint64_t burst = 1 + number(30);
    const bool greedy = draw.OneIn(2);
    std::int64_t now = static_cast<std::int64_t>(number(60));
    RateLimit limit({.bytes_per_second = rate, .burst_bytes = burst}, now);
    Wide elapsed = 0;
    Wide passed = 0;
    bool full = false;  // was it full for a while, so that some of the rate is lost?
    if (greedy) passed += limit.Take(kMaxBytes, now);
    for (int step = 0; step < 300; ++step) {
      if (!greedy && draw.OneIn(8)) {
        now -= static_cast<std::int64_t>(number(40));
      } else {
        // Greedy callers come before the bucket is full.
        const std::uint64_t most =
            greedy ? std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min<Wide>(
                                                 Wide{burst} * kSecond / rate, kSecond * 1000)),
                                             1)
                   : std::uint64_t{1} << 40;
        const auto forward = static_cast<std::int64_t>(draw.Below(most));
        if (Wide{static_cast<std::uint64_t>(forward)} * rate > (Wide{burst} - 1) * kSecond) {
          full = true;
        }
        now += forward;
        elapsed += static_cast<std::uint64_t>(forward);
      }
      const std::uint64_t wanted = greedy || draw.OneIn(4) ? kMaxBytes : number(32);
      const std::uint64_t took = limit.Take(wanted, now);
      passed += took;
      if (!greedy && took > 0 && draw.OneIn(4)) {
        const std::uint64_t back = draw.Below(took) + 1;
        limit.GiveBack(back);
        passed -= back;
      }
      if (!greedy && draw.OneIn(4)) {
        // Waiting as long as it says is enough, and a nanosecond less is not.
        const std::uint64_t ask = 1 + number(30);
        const std::int64_t wait = limit.Wait(ask, now);
        BOOST_REQUIRE(wait >= 0);
        if (wait > 0 && wait < kSecond * 1'000'000) {
          RateLimit early = limit;
          BOOST_REQUIRE(early.Take(ask, now + wait - 1) < std::min(ask, burst));
          now += wait;
          elapsed += static_cast<std::uint64_t>(wait);
          const std::uint64_t after = limit.Take(ask, now);
          BOOST_REQUIRE(after == std::min(ask, burst));
          passed += after;
        }
      }
      BOOST_REQUIRE(passed <= burst + elapsed * rate / kSecond);
      if (greedy && !full) BOOST_REQUIRE(passed == burst + elapsed * rate / kSecond);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
