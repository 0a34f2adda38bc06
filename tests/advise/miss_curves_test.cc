// Curves of all sizes; a sample of the objects against all of them.

#include "sizing/miss_curves.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "sizing/stack_distances.h"
#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(miss_curves)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)

double Unit(std::uint64_t seed, std::uint64_t number) {
  return static_cast<double>(Mixed(seed * 0x10001 + number) >> 11) * 0x1p-53;
}

// By a Zipf law, as images and pages are asked for.
Requests Zipf(std::uint64_t seed, std::size_t objects, std::size_t count, double skew) {
  std::vector<double> sums;
  double sum = 0;
  Requests requests;
  std::vector<std::uint32_t> names(objects);
  for (std::size_t i = 0; i < objects; ++i) names[i] = static_cast<std::uint32_t>(i);
  std::shuffle(names.begin(), names.end(), std::mt19937_64(seed));
  for (std::size_t i = 0; i < objects; ++i) {
    sum += std::pow(static_cast<double>(i + 1), -skew);
    sums.push_back(sum);
    requests.bytes.push_back(1 + Mixed(seed + i) % 5000);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), Unit(seed, i) * sum);
    const auto rank = std::min(static_cast<std::size_t>(at - sums.begin()), objects - 1);
    requests.all.push_back({names[rank], static_cast<std::int64_t>(i)});
  }
  return requests;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_point_is_a_cache_of_that_size) {
  const std::uint64_t seed = SeedOfThisRun();
  const Requests requests = Zipf(seed, 300, 5000, 0.9);
  for (const auto unit : {sizing::Unit::kObjects, sizing::Unit::kBytes}) {
    const MissCurves curves = CurvesOf(requests, unit, {.points = 12});
    BOOST_TEST(curves.rate == 1);
    BOOST_TEST(curves.curves.size() == kPolicies.size());
    for (const MissCurve& curve : curves.curves) {
      BOOST_TEST(curve.points.size() == 12U);
      for (const MissPoint& point : curve.points) {
        const Misses one = curve.policy == Policy::kLru
                               ? LruMisses(requests, unit, std::vector{point.size}).front()
                               : Simulate(curve.policy, requests, unit, point.size);
        BOOST_TEST(point.requests == static_cast<double>(one.requests) / 5000);
        BOOST_TEST(point.bytes ==
                   static_cast<double>(one.bytes) / static_cast<double>(requests.total_bytes()));
      }
      // Room for all: only first uses miss.
      BOOST_TEST(std::abs(curve.points.back().bytes - curves.first_bytes) < 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_lru_that_is_larger_misses_no_more) {
  const Requests requests = Zipf(SeedOfThisRun(), 500, 8000, 0.7);
  for (const auto unit : {sizing::Unit::kObjects, sizing::Unit::kBytes}) {
    const MissCurves curves = CurvesOf(requests, unit);
    const std::vector<MissPoint>& points = curves.curves.front().points;
    for (std::size_t i = 1; i < points.size(); ++i) {
      BOOST_TEST(points[i].size > points[i - 1].size);
      BOOST_TEST(points[i].requests <= points[i - 1].requests);
    }
  }
}

// The papers promise about 0.01 with 8,000 objects. The sample is drawn by numbers, not by chance:
// what holds once holds always.
BOOST_AUTO_TEST_CASE(a_sample_tells_what_all_objects_do) {
  for (const std::uint64_t seed : {1, 2}) {
    const Requests requests = Zipf(seed, 100'000, 400'000, 0.9);
    for (const auto unit : {sizing::Unit::kObjects, sizing::Unit::kBytes}) {
      const MissCurves sampled = CurvesOf(requests, unit, {.points = 6, .most_objects = 8'000});
      BOOST_TEST(std::abs(sampled.rate - 0.08) < 0.001);
      for (const MissCurve& curve : sampled.curves) {
        double error = 0;
        for (const MissPoint& point : curve.points) {
          const std::vector size = {point.size};
          const Misses exact = curve.policy == Policy::kLru
                                   ? LruMisses(requests, unit, size).front()
                                   : Simulate(curve.policy, requests, unit, point.size);
          error += std::abs(point.requests - static_cast<double>(exact.requests) / 400'000);
        }
        error /= static_cast<double>(curve.points.size());
        BOOST_TEST(error < 0.015, NameOf(curve.policy) << ", seed " << seed << ": " << error);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_asked_for_is_no_curve) {
  BOOST_TEST(CurvesOf({}, sizing::Unit::kObjects).curves.empty());
  BOOST_TEST(SizesFor({}, sizing::Unit::kBytes, 5).empty());
  const Requests one{.bytes = {7}, .all = {{0, 0}, {0, 1}}};
  const MissCurves curves = CurvesOf(one, sizing::Unit::kBytes);
  BOOST_TEST(curves.curves.front().points.size() == 1U);
  BOOST_TEST(curves.curves.front().points.front().size == 7U);
  BOOST_TEST(curves.curves.front().points.front().requests == 0.5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
