// What every picture has, whatever it shows.

#include "sizing/plot.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <regex>
#include <string>

#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(plot)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)

std::size_t Count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_axis_has_three_ticks_at_least) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  const auto real = [&] { return std::pow(10.0, static_cast<double>(draw.Below(8'000)) / 1000); };
  for (int round = 0; round < 2000; ++round) {
    const double x = real();
    const double y = real();
    // Also no more than a hundredth, and nothing.
    const double wide = 1 + real() / 1e4 * static_cast<double>(draw.Below(2));
    Panel panel{.x = {.log = draw.OneIn(2)},
                .y = {.log = draw.OneIn(2)},
                .series = {{.points = {{x, y}, {x * wide, y * wide}}}},
                .marks = {{x, "least"}, {x * wide, "most"}}};
    const std::string picture = SvgOf("node", {panel});
    BOOST_TEST_CONTEXT("round " << round << ", seed " << seed) {
      // Those of y are lines across the panel, those of x stand below it.
      const std::size_t on_y = Count(picture, "stroke=\"#dddddd\"/>");
      const std::size_t on_x = Count(picture, "v5\" stroke=\"#555555\"/>");
      BOOST_TEST(on_y >= 3U);
      BOOST_TEST(on_x >= 3U);
      BOOST_TEST(on_y <= 24U);
      BOOST_TEST(on_x <= 24U);
      BOOST_TEST(Count(picture, ">least<|>most<") == 2U);
      BOOST_TEST(Count(picture, "nan|inf") == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_node_is_called_breaks_no_picture) {
  const std::string picture = SvgOf("<a> & \x01", {{.title = "b"}});
  BOOST_TEST(picture.find("&lt;a&gt; &amp; ?") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
