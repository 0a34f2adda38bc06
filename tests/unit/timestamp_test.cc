#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <utility>

#include "tests/support/mutation.h"
#include "waybill/kubelet_format.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(timestamp)

BOOST_AUTO_TEST_CASE(reads_what_go_reads) {
  struct Case {
    std::string_view text;
    Timestamp time;
  };
  constexpr std::int64_t kBase = 1767323045;  // 2026-01-02T03:04:05Z
  for (const Case& c : std::initializer_list<Case>{
           {"2026-01-02T03:04:05Z", {kBase, 0}},
           {"2026-01-02T3:04:05Z", {kBase, 0}},
           {"2026-01-02T03:04:05.678Z", {kBase, 678000000}},
           {"2026-01-02T03:04:05,5Z", {kBase, 500000000}},
           {"2026-01-02T03:04:05.123456789Z", {kBase, 123456789}},
           {"2026-01-02T03:04:05.1234567899999Z", {kBase, 123456789}},
           {"2026-01-02T03:04:05+02:00", {kBase - 7200, 0}},
           {"2026-01-02T03:04:05-00:30", {kBase + 1800, 0}},
           {"2026-01-02T03:04:05+24:60", {kBase - 86400 - 3600, 0}},
           {"1970-01-01T00:00:00Z", {0, 0}},
           {"1969-12-31T23:59:59.5Z", {-1, 500000000}},
           {"2024-02-29T00:00:00Z", {1709164800, 0}},
           {"0001-01-01T00:00:00Z", {-62135596800, 0}},
           {"9999-12-31T23:59:59Z", {253402300799, 0}},
       }) {
    BOOST_TEST_CONTEXT(c.text) {
      const auto time = ParseTimestamp(c.text);
      BOOST_REQUIRE(time);
      BOOST_TEST((*time == c.time));
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_go_refuses) {
  for (const std::string_view text : {
           "",
           "Z",
           "2026-01-02",
           "2026-01-02T03:04:05",
           "2026-01-02 03:04:05Z",
           "2026-01-02t03:04:05Z",
           "2026-01-02T03:04:05z",
           "2026-01-02T03:04:05.Z",
           "2026-01-02T03:04:05+0200",
           "2026-01-02T03:04:05+25:00",
           "2026-01-02T03:04:05+02:61",
           "2026-02-30T03:04:05Z",
           "2025-02-29T03:04:05Z",
           "2026-13-01T03:04:05Z",
           "2026-00-01T03:04:05Z",
           "2026-01-00T03:04:05Z",
           "2026-01-02T24:00:00Z",
           "2026-01-02T03:60:05Z",
           "2016-12-31T23:59:60Z",
           "20260-01-02T03:04:05Z",
           "2026-1-02T03:04:05Z",
           "2026-01-02T03:4:05Z",
           "2026-01-02T03:04:05Z ",
           " 2026-01-02T03:04:05Z",
           "-026-01-02T03:04:05Z",
           "2026-01-02T03:04:05Zx",
       }) {
    BOOST_TEST_CONTEXT(text) { BOOST_TEST(!ParseTimestamp(text)); }
  }
}

BOOST_AUTO_TEST_CASE(refuses_years_that_cannot_be_written) {
  BOOST_TEST(!ParseTimestamp("0000-01-01T00:00:00Z"));
  BOOST_TEST(!ParseTimestamp("0001-01-01T00:00:00+00:01"));
  BOOST_TEST(!ParseTimestamp("9999-12-31T23:59:59-00:01"));
  BOOST_TEST(ParseTimestamp("0000-12-31T23:59:59-00:01").has_value());
}

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
  std::mt19937_64 random(testing::TestSeed());
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
