#include "sizing/lru.h"

#include <algorithm>
#include <cmath>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>

namespace waybill::sizing {

namespace {

// Objects by their last use, the latest last.
class Stack {
 public:
  explicit Stack(std::size_t objects) : last_use_(objects, kNever) {}

  // How many objects an LRU must hold for this request to hit; 0: this is the first use.
  std::uint64_t Use(std::uint32_t object) {
    std::uint64_t& last = last_use_[object];
    std::uint64_t distance = 0;
    if (last != kNever) {
      distance = uses_.size() - uses_.order_of_key(last);
      uses_.erase(last);
    }
    last = now_++;
    uses_.insert(last);
    return distance;
  }

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;
  // Knows how many uses are older than one.
  using Uses =
      __gnu_pbds::tree<std::uint64_t, __gnu_pbds::null_type, std::less<>, __gnu_pbds::rb_tree_tag,
                       __gnu_pbds::tree_order_statistics_node_update>;

  std::uint64_t now_ = 0;
  std::vector<std::uint64_t> last_use_;
  Uses uses_;
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
