// What a run found: as a table, as JSON, as plots, and as the recorded model.

#ifndef WAYBILL_BENCH_SIZING_REPORT_H_
#define WAYBILL_BENCH_SIZING_REPORT_H_

#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/sizing/study.h"

namespace waybill::bench {

struct Run {
  Machine machine;
  std::uint64_t seed = 0;
  int rounds = 0;
  Calibration calibration = {};
  std::vector<Study> studies = {};
};

std::string TextOf(const Run& run);
// What bench/fill writes into docs/figures.md.
std::string JsonOf(const Run& run);
// SVG. How long decisions take beside LRUs of each size.
std::string PlotOfCaches(const Run& run);
// Needs each preset's study, with its year.
std::string ModelOf(const Run& run);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_REPORT_H_
