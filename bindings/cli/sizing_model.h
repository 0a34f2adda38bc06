// What a node needs, from what simulations of nodes measured: sizing_model.inc holds those figures,
// and `./dev bench sizing` writes it. Pure.

#ifndef WAYBILL_BINDINGS_CLI_SIZING_MODEL_H_
#define WAYBILL_BINDINGS_CLI_SIZING_MODEL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bindings/cli/node_shape.h"

namespace waybill::cli {

// Bytes of data.mdb for a record with that many Secrets, with what it takes in all tables.
struct RecordSize {
  double secrets = 0;
  double bytes = 0;
};

// An LRU of decoded records in front of files.
struct CachePoint {
  double capacity = 0;
  double hit_rate = 0;  // 0 to 1
  double bytes = 0;     // of the heap
};
// The capacities that were simulated.
inline constexpr std::array<double, 7> kCapacities = {50, 100, 250, 500, 1000, 2000, 4000};
using OfCapacities = std::array<double, kCapacities.size()>;

// What operations of one kind did to the disk: means.
struct OperationFigures {
  double per_day = 0;
  double flushes = 0;
  double bytes = 0;
};

// What a preset's node did.
struct PresetFigures {
  std::string_view name = {};
  // In `days`, with files and LRUs beside it.
  double days = 0;
  double decisions_per_day = 0;
  OperationFigures pulls = {};
  OperationFigures failed_pulls = {};
  OperationFigures write_backs = {};
  OperationFigures collections = {};  // lists after images were deleted
  OperationFigures lists = {};        // all others
  double resident_share = 0;          // of data.mdb's bytes
  double decision_p50_ns = 0;
  double decision_p99_ns = 0;
  double start_base_seconds = 0;
  double file_start_seconds_per_record = 0;
  double cache_hit_ns = 0;  // of an LRU that holds everything: the median
  OfCapacities cache_hit_rates = {};
  OfCapacities cache_bytes = {};
  // In the longer simulation, of `year_days`. The most records, and what there is in the end.
  double year_days = 0;
  double records_per_image = 0;  // records in the store for each image of the shape
  double secrets_growth = 0;     // Secrets a record, for each Secret of the shape
  double disk_growth = 0;        // bytes on disk, for each byte that RecordSize foretells
};

struct SizingModel {
  std::string_view recorded_on = {};    // machine and file system
  std::string_view recorded_with = {};  // LMDB and schema
  double empty_bytes = 0;               // of a store without records
  double start_seconds_per_byte = 0;
  // Of a store whose owner was killed within a commit, a pull in flight.
  double recovery_base_seconds = 0;
  double recovery_seconds_per_byte = 0;
  std::span<const RecordSize> record_sizes = {};  // by number of Secrets, ascending
  std::span<const PresetFigures> presets = {};
};

const SizingModel& RecordedModel();

// What the flags of `waybill advise` add to a preset.
struct SizingQuestion {
  NodeShape shape = {};
  std::optional<double> pulls_per_day = {};  // nullopt: as the preset's node had, for its images
  // What is known of the node itself, in place of what the preset's did.
  std::optional<double> records = {};
  std::optional<double> secrets_per_record = {};
  std::optional<double> bytes_per_record = {};
  std::optional<double> decisions_per_day = {};
  std::optional<double> failed_pulls_per_day = {};
  std::optional<double> write_backs_per_day = {};
  std::optional<double> collections_per_day = {};
  std::optional<double> cache_hit_rate = {};
};

struct SizingAdvice {
  double pulls_per_day = 0;
  double decisions_per_day = 0;
  double records = 0;
  double secrets_per_record = 0;
  double bytes_per_record = 0;
  double simulated_days = 0;
  double disk_bytes = 0;     // the most in that time
  double map_bytes = 0;      // a power of two
  double reserve_bytes = 0;  // of the map, for deletions
  double resident_bytes = 0;
  double flushes_per_day = 0;
  double written_bytes_per_day = 0;
  double start_seconds = 0;
  double recovery_seconds = 0;
  double file_start_seconds = 0;
  double decision_p50_ns = 0;
  double decision_p99_ns = 0;
  // A cache in front: that of the kubelet's size for so many pods.
  CachePoint cache = {};
  double cache_saves_seconds_per_day = 0;  // of one processor; negative: it costs them
  bool cache_pays = false;
};

// A cache pays if it saves a processor more time a day than this.
inline constexpr double kCacheMustSaveSeconds = 1;

// Of a cache in front for so many pods, the size that the kubelet's own has.
double KubeletsCapacity(double pods);

SizingAdvice Advise(const SizingModel& model, const PresetFigures& figures,
                    const SizingQuestion& question);

// Bytes for a record with that many Secrets: between two figures on their line, beyond the last on
// that of the last two.
double BytesOfRecord(const SizingModel& model, double secrets);

const PresetFigures* FindFigures(const SizingModel& model, std::string_view preset);

// One line: the map, the disk, and whether a cache in front would pay.
std::string AdviceLine(const SizingQuestion& question, const SizingAdvice& advice);

std::string BytesText(double bytes);      // "1.6 MiB"
std::string SecondsText(double seconds);  // "0.42 µs"

// What deletions keep of the map for themselves (docs/design.md, "A commit").
constexpr double ReserveOf(double map_bytes) {
  constexpr double kPageBytes = 4096;
  return std::clamp(map_bytes / kPageBytes / 16, 64.0, 1024.0) * kPageBytes;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SIZING_MODEL_H_
