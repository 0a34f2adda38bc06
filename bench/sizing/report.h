// What a run found: as a table, as JSON, as plots, and as the recorded model.

#ifndef WAYBILL_BENCH_SIZING_REPORT_H_
#define WAYBILL_BENCH_SIZING_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "bench/sizing/study.h"

namespace waybill::bench {

struct Year {
  cli::NodeShape shape = {};
  ReplayResult result = {};
};

struct Run {
  std::vector<std::pair<std::string, std::string>> facts = {};  // of the machine
  std::vector<std::string> warnings = {};
  std::uint64_t seed = 0;
  int rounds = 0;
  bool flushing = false;
  double clock_nanoseconds = 0;
  Calibration calibration = {};
  std::vector<Study> studies = {};
  std::vector<Year> years = {};
};

std::string TextOf(const Run& run);
std::string JsonOf(const Run& run);
// SVG. How long decisions take beside LRUs of each size; and how records grow.
std::string PlotOfCaches(const Run& run);
std::string PlotOfYears(const Run& run);
// Needs each preset's study and year.
std::string ModelOf(const Run& run);
std::string PresetsText();

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_REPORT_H_
