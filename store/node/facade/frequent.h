// The most frequent names of a stream, in a fixed number of places: the space-saving sketch
// (Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data
// streams", 2005). A name that is new takes the place of the least frequent, and its count.

#ifndef WAYBILL_STORE_NODE_FACADE_FREQUENT_H_
#define WAYBILL_STORE_NODE_FACADE_FREQUENT_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/metrics.h"

namespace waybill::internal {

// Allocates nothing. `kNameBytes`: longer names are cut, but not taken for one another.
template <std::size_t kNameBytes>
class Frequent {
 public:
  void Count(std::string_view name) noexcept {
    const std::size_t hash = std::hash<std::string_view>()(name);
    const std::string_view cut = name.substr(0, kNameBytes);
    Place* place = nullptr;
    for (Place& one : places_) {
      if (one.count != 0 && one.hash == hash && one.size == name.size() && one.name() == cut) {
        ++one.count;
        return;
      }
      if (place == nullptr || one.count < place->count) place = &one;
    }
    place->over = place->count;
    ++place->count;
    place->hash = hash;
    place->size = name.size();
    std::ranges::copy(cut, place->text.begin());
  }
  std::vector<Reverified> Most() const {
    std::vector<Reverified> all;
    for (const Place& one : places_) {
      if (one.count != 0) all.push_back({std::string(one.name()), one.count, one.over});
    }
    std::sort(all.begin(), all.end(), [](const Reverified& a, const Reverified& b) {
      return a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    return all;
  }

 private:
  struct Place {
    std::uint64_t count = 0;  // 0: free
    std::uint64_t over = 0;
    std::size_t hash = 0;
    std::size_t size = 0;  // of the whole name
    std::array<char, kNameBytes> text{};

    std::string_view name() const { return {text.data(), std::min(size, kNameBytes)}; }
  };
  std::array<Place, kMaxReverified> places_{};
};

// What decisions that were "pull" were about.
class Reverifications {
 public:
  // Waits for nobody: while another thread counts, it drops this one.
  void Count(std::string_view image, std::string_view namespace_name) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      missed_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    ++counted_;
    images_.Count(image);
    namespaces_.Count(namespace_name);
  }
  ReverificationReport Report() const {
    ReverificationReport report;
    const std::scoped_lock lock(mutex_);
    report.counted = counted_;
    report.missed = missed_.load(std::memory_order_relaxed);
    report.images = images_.Most();
    report.namespaces = namespaces_.Most();
    return report;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t counted_ = 0;
  std::atomic<std::uint64_t> missed_{0};
  Frequent<256> images_;
  Frequent<64> namespaces_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_FACADE_FREQUENT_H_
