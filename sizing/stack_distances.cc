#include "sizing/stack_distances.h"

#include <algorithm>
#include <utility>

namespace waybill::sizing {

namespace {

// Sums over a row of places, of which each may be changed.
class FenwickTree {
 public:
  explicit FenwickTree(std::size_t places) : sums_(places + 1) {}
  std::size_t places() const { return sums_.size() - 1; }
  void Add(std::size_t place, std::uint64_t value) {  // also what wraps around: a subtraction
    for (std::size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += value;
  }
  // Of the places before `place`.
  std::uint64_t SumBefore(std::size_t place) const {
    std::uint64_t sum = 0;
    for (std::size_t i = place; i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }
  void Clear() { std::fill(sums_.begin(), sums_.end(), 0); }

 private:
  std::vector<std::uint64_t> sums_;
};

// Objects by their last use, the latest last.
class Stack {
 public:
  Stack(const Requests& requests, Unit unit)
      : requests_(requests),
        unit_(unit),
        tree_(2 * requests.bytes.size() + 1),
        object_at_(tree_.places(), kNone),
        place_of_(requests.bytes.size(), kNone) {}

  // What an LRU must hold for this request to hit; 0: this is the first use.
  std::uint64_t Use(std::uint32_t object) {
    if (next_ == tree_.places()) CloseUp();
    const std::uint64_t weight = unit_ == Unit::kObjects ? 1 : requests_.bytes[object];
    std::uint64_t distance = 0;
    if (const std::uint32_t place = place_of_[object]; place != kNone) {
      distance = total_ - tree_.SumBefore(place);
      tree_.Add(place, ~weight + 1);
      object_at_[place] = kNone;
    } else {
      total_ += weight;
    }
    Put(object, weight);
    return distance;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void Put(std::uint32_t object, std::uint64_t weight) {
    tree_.Add(next_, weight);
    object_at_[next_] = object;
    place_of_[object] = static_cast<std::uint32_t>(next_++);
  }

  // Out of places: half of them, at least, are empty.
  void CloseUp() {
    tree_.Clear();
    next_ = 0;
    for (std::size_t i = 0; i < object_at_.size(); ++i) {
      const std::uint32_t object = std::exchange(object_at_[i], kNone);
      if (object != kNone) Put(object, unit_ == Unit::kObjects ? 1 : requests_.bytes[object]);
    }
  }

  const Requests& requests_;
  Unit unit_;
  FenwickTree tree_;
  std::vector<std::uint32_t> object_at_;
  std::vector<std::uint32_t> place_of_;
  std::size_t next_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

std::vector<Misses> LruMisses(const Requests& requests, Unit unit,
                              std::span<const std::uint64_t> capacities) {
  // By the smallest capacity that hits; the last place: none does.
  std::vector<Misses> hits(capacities.size() + 1);
  Stack stack(requests, unit);
  for (const Request& request : requests.all) {
    const std::uint64_t distance = stack.Use(request.object);
    const auto least = distance == 0
                           ? capacities.end()
                           : std::lower_bound(capacities.begin(), capacities.end(), distance);
    Misses& bucket = hits[static_cast<std::size_t>(least - capacities.begin())];
    ++bucket.requests;
    bucket.bytes += requests.bytes[request.object];
  }
  std::vector<Misses> misses(capacities.size());
  Misses sum;
  for (std::size_t i = capacities.size(); i > 0; --i) {
    sum.requests += hits[i].requests;
    sum.bytes += hits[i].bytes;
    misses[i - 1] = sum;
  }
  return misses;
}

Sample SampleObjects(const Requests& requests, double rate) {
  constexpr std::uint64_t kModulus = 1 << 24;
  const auto threshold = static_cast<std::uint64_t>(rate * static_cast<double>(kModulus));
  constexpr std::uint32_t kNone = UINT32_MAX;
  Sample sample{.rate = static_cast<double>(threshold) / static_cast<double>(kModulus)};
  std::vector<std::uint32_t> number(requests.bytes.size(), kNone);
  for (std::uint32_t object = 0; object < requests.bytes.size(); ++object) {
    if (Mixed(object) % kModulus >= threshold) continue;
    number[object] = static_cast<std::uint32_t>(sample.requests.bytes.size());
    sample.requests.bytes.push_back(requests.bytes[object]);
  }
  for (const Request& request : requests.all) {
    if (number[request.object] == kNone) continue;
    sample.requests.all.push_back({number[request.object], request.time_ms});
  }
  return sample;
}

}  // namespace waybill::sizing
