// LRU caches of all sizes in one pass.

#ifndef WAYBILL_SIZING_STACK_DISTANCES_H_
#define WAYBILL_SIZING_STACK_DISTANCES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sizing/requests.h"

namespace waybill::sizing {

// What an LRU of each capacity misses, exactly, by stack distances (Mattson et al., 1970) in a
// Fenwick tree. `capacities` ascend. By bytes each must hold the largest object.
std::vector<Misses> LruMisses(const Requests& requests, Unit unit,
                              std::span<const std::uint64_t> capacities);

// Part of the objects, drawn by a hash of each, with all their requests (SHARDS; Waldspurger et
// al., FAST 2015). A cache of `rate` of the size sees of them what the whole one sees of all.
struct Sample {
  Requests requests = {};
  double rate = 1;
};
Sample SampleObjects(const Requests& requests, double rate);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_STACK_DISTANCES_H_
