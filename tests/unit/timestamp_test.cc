#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/support/draw.h"
#include "waybill/kubelet_format.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(timestamp)

BOOST_AUTO_TEST_CASE(writes_the_shortest_form) {
  BOOST_TEST(FormatTimestamp({1767323045, 0}) == "2026-01-02T03:04:05Z");
  BOOST_TEST(FormatTimestamp({1767323045, 678000000}) == "2026-01-02T03:04:05.678Z");
  BOOST_TEST(FormatTimestamp({1767323045, 1}) == "2026-01-02T03:04:05.000000001Z");
  BOOST_TEST(FormatTimestamp({-1, 0}) == "1969-12-31T23:59:59Z");
}

BOOST_AUTO_TEST_CASE(clamps_what_cannot_be_written) {
  BOOST_TEST(FormatTimestamp({INT64_MIN, -1}) == "0001-01-01T00:00:00Z");
  BOOST_TEST(FormatTimestamp({INT64_MAX, INT32_MAX}) == "9999-12-31T23:59:59Z");
}

BOOST_AUTO_TEST_CASE(any_time_comes_back) {
  std::mt19937_64 random(testing::SeedOfThisRun());
  std::uniform_int_distribution<std::int64_t> seconds(-62135596800, 253402300799);
  std::uniform_int_distribution<std::int32_t> nanoseconds(0, 999999999);
  for (int round = 0; round < 20000; ++round) {
    const Timestamp time{seconds(random), nanoseconds(random)};
    const auto again = ParseTimestamp(FormatTimestamp(time));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == time));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
