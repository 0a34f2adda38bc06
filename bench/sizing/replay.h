// Replays a trace against waybill, or against files behind an LRU. Every answer is compared with
// that of the trace. Each side replays alone: what one leaves in the processor's caches must not
// help another.

#ifndef WAYBILL_BENCH_SIZING_REPLAY_H_
#define WAYBILL_BENCH_SIZING_REPLAY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/disk_calls.h"
#include "bindings/cli/node_shape.h"
#include "waybill/values.h"

namespace waybill::bench {

struct ReplayOptions {
  std::filesystem::path directory = {};  // for the stores; exists
  std::uint64_t seed = 1;
  double days = 1;
  std::optional<std::size_t> cache = {};  // the side of files, behind an LRU of this size
  int starts = 5;                         // at the end, timed
  bool keeps_records = false;
  // Of waybill's side.
  Mode rules = Mode::kStrict;
  std::filesystem::path trace = {};  // the store's owner writes one there
};

// What decisions took, in nanoseconds.
struct Times {
  double p50 = 0;
  double p99 = 0;
};

// What operations of one kind did to the disk.
struct Operations {
  std::uint64_t count = 0;
  DiskCalls io = {};
};

// What the store holds in the end.
struct Held {
  std::uint64_t records = 0;
  std::uint64_t secrets = 0;       // in all records
  std::uint64_t most_secrets = 0;  // in one record
  std::uint64_t store_bytes = 0;   // on disk, without room ahead
};

struct ReplayResult {
  std::uint64_t decisions = 0;
  std::uint64_t allowed = 0;
  std::uint64_t differences = 0;  // answers that are not those of the trace
  std::string first_difference = {};
  // After the node was filled.
  Times decision = {};
  Operations pulls = {};
  Operations failed_pulls = {};
  Operations write_backs = {};
  Operations collections = {};  // lists after images were deleted
  Operations lists = {};        // all others
  Operations restarts = {};
  std::uint64_t resident_bytes = 0;
  double hit_rate = 0;  // of the files
  double start_seconds = 0;
  std::vector<std::string> records = {};  // in the end, as the kubelet writes them, sorted
  // Of waybill.
  Held end = {};
  std::uint64_t most_records = 0;

  DiskCalls io() const {
    DiskCalls all = pulls.io;
    for (const Operations* one : {&failed_pulls, &write_backs, &collections, &lists, &restarts}) {
      all += one->io;
    }
    return all;
  }
};

// Flushes are counted, but do nothing from then on.
ReplayResult Replay(const cli::NodeShape& shape, const ReplayOptions& options);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_REPLAY_H_
