// A preset's node: replayed against waybill and against an LRU of each size, some times, and
// perhaps for a year.

#ifndef WAYBILL_BENCH_SIZING_STUDY_H_
#define WAYBILL_BENCH_SIZING_STUDY_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/sizing/calibrate.h"
#include "bench/sizing/replay.h"
#include "bindings/cli/sizing_model.h"

namespace waybill::bench {

inline constexpr std::array<std::size_t, 7> kCapacities = {50, 100, 250, 500, 1000, 2000, 4000};

struct StudyOptions {
  std::filesystem::path directory = {};
  std::uint64_t seed = 1;
  double days = 1;
  int rounds = 3;  // replays of each side, in turn; times are medians
  bool flushing = false;
};

// Medians of the rounds, and the least and the most.
struct RoundTimes {
  Times median = {};
  Times least = {};
  Times most = {};
};

struct CacheStudy {
  std::size_t capacity = 0;
  double hit_rate = 0;
  RoundTimes decision = {};
  std::int64_t resident_bytes = 0;
};

struct Study {
  cli::NodeShape shape = {};
  double days = 0;
  ReplayResult store = {};  // of the first round
  RoundTimes decision = {};
  double start_seconds = 0;
  ReplayResult files = {};  // of the first round, behind the largest LRU
  double file_start_seconds = 0;
  std::vector<CacheStudy> caches = {};
};

// Throws if a side gave another answer than the trace.
Study StudyNode(const cli::NodeShape& shape, const StudyOptions& options);

// A year of the node, with a sample each week. Only waybill; four lists a day, since lists
// that delete nothing do not change what is stored.
ReplayResult StudyYear(const cli::NodeShape& shape, const StudyOptions& options, double days);

// The recorded model's form of a study. Without a year, that of `earlier` is kept.
cli::PresetFigures FiguresOf(const Study& study, const Calibration& calibration,
                             const ReplayResult* year, const cli::PresetFigures* earlier);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_STUDY_H_
