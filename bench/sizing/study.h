// What is measured of simulated nodes: a preset's node, replayed against waybill and against an LRU
// of each size, some times, and perhaps for weeks; what a record and an opening cost; and all of
// that as a table, as JSON, as a plot, and as the recorded model (report.cc).

#ifndef WAYBILL_BENCH_SIZING_STUDY_H_
#define WAYBILL_BENCH_SIZING_STUDY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/sizing/replay.h"
#include "bindings/cli/sizing_model.h"

namespace waybill::bench {

struct StoreSize {
  double records = 0;
  double bytes = 0;             // on disk
  double start_seconds = 0;     // the median of some openings, warm
  double recovery_seconds = 0;  // and after its owner was killed within a commit, a pull in flight
};

// A fresh store with records of so many Secrets each (0: open to all pods), all of them in the
// runtime's list, as on a node. Makes and deletes a store in `directory`.
StoreSize MeasureStore(const std::filesystem::path& directory, std::uint32_t records,
                       std::uint32_t secrets);

// What a record costs on disk by its number of Secrets, and what opening costs by the store's size.
struct Calibration {
  std::vector<cli::RecordSize> record_sizes = {};
  cli::SizingModel model = {};  // without record sizes and presets
  // With the record sizes, which must outlive it.
  cli::SizingModel Model() const;
};
Calibration Calibrate(const std::filesystem::path& directory);

struct StudyOptions {
  std::filesystem::path directory = {};
  std::uint64_t seed = 1;
  double days = 1;
  int rounds = 3;        // replays of each side, in turn; times are medians
  double year_days = 0;  // of the longer replay; 0: there is none
};

// Times are medians of the rounds, all else is of the last one.
struct Study {
  cli::NodeShape shape = {};
  double days = 0;
  ReplayResult store = {};
  std::vector<ReplayResult> files = {};  // behind an LRU of each of cli::kCapacities
  // Only waybill; four lists a day, since lists that delete nothing do not change what is stored.
  double year_days = 0;
  std::optional<ReplayResult> year = {};
};

// Throws if a side gave another answer than the trace.
Study StudyNode(const cli::NodeShape& shape, const StudyOptions& options);

// The recorded model's form of a study. Without a year, that of the recorded one is kept.
cli::PresetFigures FiguresOf(const Study& study, const cli::SizingModel& sizes);

// A whole run.
struct Findings {
  Machine machine;
  std::uint64_t seed = 0;
  int rounds = 0;
  Calibration calibration = {};
  std::vector<Study> studies = {};
};

std::string TextOf(const Findings& run);
// What bench/fill writes into docs/figures.md.
std::string JsonOf(const Findings& run);
// SVG. How long decisions take beside LRUs of each size.
std::string PlotOfCaches(const Findings& run);
// Needs each preset's study, with its year.
std::string ModelOf(const Findings& run);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_STUDY_H_
