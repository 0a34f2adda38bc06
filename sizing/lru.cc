#include "sizing/lru.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace waybill::sizing {

namespace {

// Counts over a row of places, each of which holds one object or none.
class FenwickTree {
 public:
  explicit FenwickTree(std::size_t places) : sums_(places + 1) {}
  std::size_t places() const { return sums_.size() - 1; }
  void Add(std::size_t place, std::int64_t value) {
    for (std::size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += value;
  }
  // Of the places before `place`.
  std::int64_t SumBefore(std::size_t place) const {
    std::int64_t sum = 0;
    for (std::size_t i = place; i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }
  void Clear() { std::fill(sums_.begin(), sums_.end(), 0); }

 private:
  std::vector<std::int64_t> sums_;
};

// Objects by their last use, the latest last.
class Stack {
 public:
  explicit Stack(std::size_t objects)
      : tree_(2 * objects + 1), object_at_(tree_.places(), kNone), place_of_(objects, kNone) {}

  // How many objects an LRU must hold for this request to hit; 0: this is the first use.
  std::uint64_t Use(std::uint32_t object) {
    if (next_ == tree_.places()) CloseUp();
    std::int64_t distance = 0;
    if (const std::uint32_t place = place_of_[object]; place != kNone) {
      distance = total_ - tree_.SumBefore(place);
      tree_.Add(place, -1);
      object_at_[place] = kNone;
    } else {
      ++total_;
    }
    Put(object);
    return static_cast<std::uint64_t>(distance);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void Put(std::uint32_t object) {
    tree_.Add(next_, 1);
    object_at_[next_] = object;
    place_of_[object] = static_cast<std::uint32_t>(next_++);
  }

  // Out of places: half of them, at least, are empty.
  void CloseUp() {
    tree_.Clear();
    next_ = 0;
    for (std::uint32_t& at : object_at_) {
      const std::uint32_t object = std::exchange(at, kNone);
      if (object != kNone) Put(object);
    }
  }

  FenwickTree tree_;
  std::vector<std::uint32_t> object_at_;
  std::vector<std::uint32_t> place_of_;
  std::size_t next_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace

std::vector<std::uint64_t> LruMisses(const Requests& requests,
                                     std::span<const std::uint64_t> capacities) {
  // By the smallest capacity that hits; the last place: none does.
  std::vector<std::uint64_t> hits(capacities.size() + 1);
  Stack stack(requests.bytes.size());
  for (const Request& request : requests.all) {
    const std::uint64_t distance = stack.Use(request.object);
    const auto least = distance == 0
                           ? capacities.end()
                           : std::lower_bound(capacities.begin(), capacities.end(), distance);
    ++hits[static_cast<std::size_t>(least - capacities.begin())];
  }
  std::vector<std::uint64_t> misses(capacities.size());
  std::uint64_t sum = 0;
  for (std::size_t i = capacities.size(); i > 0; --i) misses[i - 1] = sum += hits[i];
  return misses;
}

MissCurve LruCurve(const Requests& requests, std::size_t points) {
  MissCurve curve;
  if (requests.all.empty()) return curve;
  const auto most = static_cast<double>(requests.bytes.size());
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < points; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points - 1);
    const auto size = static_cast<std::uint64_t>(std::llround(std::pow(most, part)));
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
  }
  const auto all = static_cast<double>(requests.all.size());
  const std::vector<std::uint64_t> misses = LruMisses(requests, sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    curve.points.push_back({sizes[i], static_cast<double>(misses[i]) / all});
  }
  curve.first_requests = curve.points.back().requests;
  return curve;
}

}  // namespace waybill::sizing
