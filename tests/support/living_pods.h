// Pods that run with ID ranges, and what must never happen to these ranges.

#ifndef WAYBILL_TESTS_SUPPORT_LIVING_PODS_H_
#define WAYBILL_TESTS_SUPPORT_LIVING_PODS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/node_store.h"

namespace waybill::testing {

struct LivingPod {
  std::string uid;
  std::uint64_t host_id = 0;
  std::uint64_t length = 0;
};

// The first fault: a pod has another mapping than it runs with, or some of its IDs could be handed
// out. "": no fault. Writes nothing.
std::string FaultOfRanges(const NodeStore& store, const std::vector<LivingPod>& living);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_LIVING_PODS_H_
