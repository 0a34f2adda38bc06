#include "tests/support/living_pods.h"

#include <algorithm>

namespace waybill::testing {

namespace {

bool Covers(HostIdRange range, const LivingPod& pod) {
  return range.first <= pod.host_id && range.first + range.length >= pod.host_id + pod.length;
}

}  // namespace

std::string FaultOfRanges(const NodeStore& store, const std::vector<LivingPod>& living) {
  const auto mappings = store.ListUserNamespaces();
  const auto held = store.ListHeldPods();
  const auto statistics = store.GetUserNamespaceStatistics();
  if (!mappings || !held || !statistics) return "the ranges can't be read";
  const bool refused = !statistics->refused_because.empty();
  for (const LivingPod& pod : living) {
    bool has_it = false;
    for (const PodMapping& mapping : *mappings) {
      if (mapping.pod_uid != pod.uid) continue;
      has_it = mapping.host_id == pod.host_id && mapping.length == pod.length;
      if (!has_it) return "pod " + pod.uid + " has another range";
    }
    const bool is_held = std::any_of(held->begin(), held->end(), [&](const QuarantinedPod& one) {
      return std::any_of(one.ranges.begin(), one.ranges.end(),
                         [&](HostIdRange range) { return Covers(range, pod); });
    });
    if (!has_it && !is_held && !refused) {
      return "the range of pod " + pod.uid + " could be handed out again";
    }
  }
  return {};
}

}  // namespace waybill::testing
