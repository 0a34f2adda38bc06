// The shape of a node (node_shape.h of the command), fitted to its history, so that a simulation
// can go on where the trace ends: the same node with twice as many tenants.

#ifndef WAYBILL_SIZING_SHAPE_FIT_H_
#define WAYBILL_SIZING_SHAPE_FIT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/node_history.h"

namespace waybill::sizing {

struct Fitted {
  std::string_view flag;  // of the shape's field: "--zipf-skew"
  double value = 0;
  std::string from = {};  // "8,412 uses of 97 repositories"
};

// What the history can tell; fields that it can't are left out. `containers_per_pod`: no trace says
// which containers are of one pod.
std::vector<Fitted> FitShape(const NodeHistory& history, double containers_per_pod);

// The exponent of the Zipf law by which things are likeliest to be used so often, 0 to 4 (maximum
// likelihood). Fewer than two that are used: 0.
double FitZipf(std::span<const std::uint64_t> uses);

// The part of `repositories` that never get a new version, if `unchanged` of them got none while
// all others together got `versions`, each as often.
double FitFixedPart(double repositories, double unchanged, double versions);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_SHAPE_FIT_H_
