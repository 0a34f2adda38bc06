// An LRU of all sizes at once, against one of each size that looks through all that it holds, on
// random requests; and against what libCacheSim 0.3.5 says of requests that both make the same.

#include "sizing/lru.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(lru)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)

// The oldest first.
std::uint64_t SlowMisses(const Requests& requests, std::uint64_t capacity) {
  std::vector<std::uint32_t> held;
  std::uint64_t misses = 0;
  for (const Request& request : requests.all) {
    const auto found = std::find(held.begin(), held.end(), request.object);
    if (found != held.end()) {
      held.erase(found);
    } else {
      ++misses;
      if (held.size() == capacity) held.erase(held.begin());
    }
    held.push_back(request.object);
  }
  return misses;
}

Requests Drawn(Draw& draw) {
  Requests requests;
  const std::size_t objects = 1 + draw.Below(40);
  requests.bytes.assign(objects, 1);
  const std::size_t few = 1 + draw.Below(objects);
  for (std::size_t i = 0; i < 400; ++i) {
    const std::size_t object = draw.Below(draw.OneIn(3) ? objects : few);
    requests.all.push_back({static_cast<std::uint32_t>(object), static_cast<std::int64_t>(i)});
  }
  return requests;
}

// splitmix64, so that another program makes the same requests.
std::uint64_t Mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Requests Skewed(std::uint64_t count, std::uint32_t objects) {
  Requests requests;
  requests.bytes.assign(objects, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t least =
        std::min({Mixed(3 * i) % objects, Mixed(3 * i + 1) % objects, Mixed(3 * i + 2) % objects});
    requests.all.push_back({static_cast<std::uint32_t>(least), static_cast<std::int64_t>(i)});
  }
  return requests;
}

}  // namespace

BOOST_AUTO_TEST_CASE(as_a_slow_lru_of_each_size) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  std::vector<std::uint64_t> capacities;
  for (std::uint64_t i = 1; i <= 45; ++i) capacities.push_back(i);
  for (int round = 0; round < 50; ++round) {
    const Requests requests = Drawn(draw);
    const std::vector<std::uint64_t> found = LruMisses(requests, capacities);
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      BOOST_TEST(found[i] == SlowMisses(requests, capacities[i]),
                 "an LRU of " << capacities[i] << ", round " << round << ", seed " << seed);
    }
  }
}

// Made with LRU of libCacheSim's Python package.
BOOST_AUTO_TEST_CASE(as_libcachesim_on_the_same_requests) {
  const std::vector<std::uint64_t> capacities = {20, 200, 500, 1500};
  const std::vector<std::uint64_t> misses = {49150, 41225, 28795, 2701};
  BOOST_TEST(LruMisses(Skewed(50'000, 2000), capacities) == misses,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_curve_falls_to_the_first_uses) {
  const Requests requests = Skewed(8000, 500);
  const MissCurve curve = LruCurve(requests, 12);
  BOOST_TEST(curve.points.size() == 12U);
  BOOST_TEST(curve.points.back().size == 500U);
  std::set<std::uint32_t> used;
  for (const Request& request : requests.all) used.insert(request.object);
  BOOST_TEST(curve.points.back().requests == static_cast<double>(used.size()) / 8000);
  BOOST_TEST(curve.first_requests == curve.points.back().requests);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const MissPoint& point = curve.points[i];
    BOOST_TEST(point.requests == static_cast<double>(SlowMisses(requests, point.size)) / 8000);
    if (i == 0) continue;
    BOOST_TEST(point.size > curve.points[i - 1].size);
    BOOST_TEST(point.requests <= curve.points[i - 1].requests);
  }
}

BOOST_AUTO_TEST_CASE(nothing_asked_for_is_no_curve) {
  BOOST_TEST(LruCurve({}, 12).points.empty());
  const MissCurve curve = LruCurve({.bytes = {7}, .all = {{0, 0}, {0, 1}}}, 12);
  BOOST_TEST(curve.points.size() == 1U);
  BOOST_TEST(curve.points.front().size == 1U);
  BOOST_TEST(curve.points.front().requests == 0.5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
