// What a run found: as a table, as JSON, as columns for gnuplot, and as the recorded model.

#ifndef WAYBILL_BENCH_SIZING_REPORT_H_
#define WAYBILL_BENCH_SIZING_REPORT_H_

#include <filesystem>
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
// PRESET.tsv: capacity, p50, p99 and hit rate of LRUs, and waybill's; PRESET-year.tsv: samples.
void WriteColumns(const Run& run, const std::filesystem::path& directory);
// Needs each preset's study and year.
std::string ModelOf(const Run& run);
std::string PresetsText();

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_REPORT_H_
