#include "sizing/miss_curves.h"

#include <algorithm>
#include <cmath>

#include "sizing/stack_distances.h"

namespace waybill::sizing {

namespace {

double Part(double part, double whole) {
  return whole <= 0 ? 0 : std::clamp(part / whole, 0.0, 1.0);
}

double AsReal(std::uint64_t count) { return static_cast<double>(count); }

std::uint64_t Scaled(std::uint64_t size, double rate) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(AsReal(size) * rate)));
}

}  // namespace

std::vector<std::uint64_t> SizesFor(const Requests& requests, Unit unit, std::size_t points,
                                    double rate) {
  // With less of them a sample's cache is a matter of luck.
  constexpr double kLeastObjects = 100;
  std::vector<std::uint64_t> sizes;
  if (requests.bytes.empty() || points == 0) return sizes;
  const bool objects = unit == Unit::kObjects;
  const std::uint64_t most = objects ? requests.bytes.size() : requests.distinct_bytes();
  double least =
      objects ? 1 : AsReal(*std::max_element(requests.bytes.begin(), requests.bytes.end()));
  if (rate < 1) {
    const double one = AsReal(most) / AsReal(requests.bytes.size());
    least = std::max(least, std::min(AsReal(most), kLeastObjects * one / rate));
  }
  const double factor =
      points < 2 ? 1 : std::pow(AsReal(most) / least, 1 / static_cast<double>(points - 1));
  for (std::size_t i = 0; i + 1 < points; ++i) {
    const auto size =
        static_cast<std::uint64_t>(std::llround(least * std::pow(factor, static_cast<double>(i))));
    if (size < most && (sizes.empty() || size > sizes.back())) sizes.push_back(size);
  }
  sizes.push_back(most);
  return sizes;
}

MissCurves CurvesOf(const Requests& requests, Unit unit, const CurveOptions& options) {
  MissCurves result{.unit = unit};
  if (requests.all.empty()) return result;
  Sample sample;
  const bool whole = requests.bytes.size() <= options.most_objects;
  if (!whole) {
    sample = SampleObjects(requests, AsReal(options.most_objects) / AsReal(requests.bytes.size()));
    result.rate = sample.rate;
  }
  const Requests& played = whole ? requests : sample.requests;
  const std::vector<std::uint64_t> sizes = SizesFor(requests, unit, options.points, result.rate);
  std::vector<std::uint64_t> capacities;
  capacities.reserve(sizes.size());
  for (const std::uint64_t size : sizes) capacities.push_back(Scaled(size, result.rate));

  // What a sample of this rate has on average. SHARDS-adj counts what this one has more or less of
  // as hits, since it is made by few objects that are used often.
  const double expected = AsReal(requests.all.size()) * result.rate;
  const double expected_bytes = AsReal(requests.total_bytes()) * result.rate;

  result.first_requests = Part(AsReal(requests.bytes.size()), AsReal(requests.all.size()));
  result.first_bytes = Part(AsReal(requests.distinct_bytes()), AsReal(requests.total_bytes()));
  for (const Policy policy : kPolicies) {
    MissCurve curve{.policy = policy};
    std::vector<Misses> misses;
    if (policy == Policy::kLru) {
      misses = LruMisses(played, unit, capacities);
    } else {
      for (const std::uint64_t capacity : capacities) {
        misses.push_back(Simulate(policy, played, unit, capacity));
      }
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      curve.points.push_back({.size = sizes[i],
                              .requests = Part(AsReal(misses[i].requests), expected),
                              .bytes = Part(AsReal(misses[i].bytes), expected_bytes)});
    }
    result.curves.push_back(std::move(curve));
  }
  return result;
}

}  // namespace waybill::sizing
