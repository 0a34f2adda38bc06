// LRU caches of records, of all sizes in one pass.

#ifndef WAYBILL_SIZING_LRU_H_
#define WAYBILL_SIZING_LRU_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sizing/requests.h"

namespace waybill::sizing {

// How many requests an LRU of each capacity misses, exactly, by stack distances (Mattson et al.,
// 1970). `capacities` ascend.
std::vector<std::uint64_t> LruMisses(const Requests& requests,
                                     std::span<const std::uint64_t> capacities);

struct MissPoint {
  std::uint64_t size = 0;
  double requests = 0;  // the part of all requests that miss, 0 to 1
};

struct MissCurve {
  // What no cache avoids: each object's first use. As in MissPoint.
  double first_requests = 0;
  std::vector<MissPoint> points = {};
};

// From one object to what holds all, each about as many times the one before. No requests: no
// points.
MissCurve LruCurve(const Requests& requests, std::size_t points);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_LRU_H_
