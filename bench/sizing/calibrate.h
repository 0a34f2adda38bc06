// What a record costs on disk by its number of Secrets, and what opening costs by the store's size.

#ifndef WAYBILL_BENCH_SIZING_CALIBRATE_H_
#define WAYBILL_BENCH_SIZING_CALIBRATE_H_

#include <cstdint>
#include <filesystem>
#include <vector>

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

struct Line {
  double base = 0;  // not negative
  double slope = 0;
};
// Of the least squares.
Line RecoveryBySize(const std::vector<StoreSize>& stores);

struct Calibration {
  double empty_bytes = 0;
  double start_seconds_per_byte = 0;
  Line recovery = {};                    // seconds, by bytes
  std::vector<StoreSize> openings = {};  // that both are of
  std::vector<cli::RecordSize> record_sizes = {};
};
Calibration Calibrate(const std::filesystem::path& directory);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_CALIBRATE_H_
