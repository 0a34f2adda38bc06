// Miss ratio against size, for each policy.

#ifndef WAYBILL_SIZING_MISS_CURVES_H_
#define WAYBILL_SIZING_MISS_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sizing/policies.h"
#include "sizing/requests.h"

namespace waybill::sizing {

struct MissPoint {
  std::uint64_t size = 0;
  double requests = 0;  // the part of all requests that miss, 0 to 1
  double bytes = 0;     // of all bytes that are asked for
};

struct MissCurve {
  Policy policy = Policy::kLru;
  std::vector<MissPoint> points = {};
};

struct MissCurves {
  Unit unit = Unit::kObjects;
  double rate = 1;  // of the objects that were played; 1: all, and the curves are exact
  // What no cache avoids: each object's first use. As in MissPoint.
  double first_requests = 0;
  double first_bytes = 0;
  std::vector<MissCurve> curves = {};  // by kPolicies, all of the same sizes
};

struct CurveOptions {
  std::size_t points = 32;
  // With more objects than this a sample of about so many is played: LRU with SHARDS' adjustment,
  // the others in caches that are smaller by the same rate (Waldspurger et al., ATC 2017).
  std::size_t most_objects = 20'000;
};

// No requests: no curves.
MissCurves CurvesOf(const Requests& requests, Unit unit, const CurveOptions& options = {});

// From the smallest size that is worth a look (one object; by bytes the largest one) to what holds
// all: ascending, each about as many times the one before. Of a sample of `rate`, from the size of
// which it shows enough objects.
std::vector<std::uint64_t> SizesFor(const Requests& requests, Unit unit, std::size_t points,
                                    double rate = 1);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_MISS_CURVES_H_
