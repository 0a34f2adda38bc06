// What a store counts and holds, for Prometheus.
//
// There are two sets of names: those of KEP-2535 and of the kubelet's code (kubelet_…), and
// waybill's (waybill_…). Counters come only from a live owner, and begin at 0 when it opens the
// store, as the kubelet's own do at its start; an observer has the gauges that say what the store
// holds. Names, labels and types do not change; new ones may be added.

#ifndef WAYBILL_STORE_BASE_METRICS_H_
#define WAYBILL_STORE_BASE_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waybill/values.h"

namespace waybill {

// How many values of Reason and of DegradedKind there is room for.
inline constexpr std::size_t kMaxReasons = 32;

inline constexpr std::size_t kMaxTrustKinds = 16;

// By PullPolicy, then present_locally and pull_required: 0 false, 1 true, 2 unknown.
using EnsureImageRequests = std::array<std::array<std::array<std::uint64_t, 3>, 3>, 3>;

// How a pull ended, for StoreCounters::pulls. Numbers do not change.
enum class PullEnd : std::uint8_t {
  kSucceeded,
  kFailed,   // PullFailure::kFailed or kNothingTransferred
  kUnknown,  // PullFailure::kUnknown
};

inline constexpr std::size_t kPullEnds = 3;

// How many values of PullErrorClass there is room for.
inline constexpr std::size_t kMaxPullErrorClasses = 8;

// What the owner of a store counts, since it opened the store. It is forgotten with the process.
struct StoreCounters {
  std::array<std::uint64_t, kMaxReasons> decisions{};  // by Reason; those that are counted
  std::array<std::uint64_t, 5> mustpull_checks{};      // by CheckResult; [kNotCounted] stays 0
  EnsureImageRequests ensure_image_requests{};
  std::uint64_t commit_failures = 0;      // changes that were refused, or may not be on disk
  std::uint64_t write_back_failures = 0;  // rotated credentials that could not be written back
  std::uint64_t write_backs_dropped = 0;  // likewise, since the queue was full (Mode::kStrict)
  // Requests for a pod with hostUsers: false that got no mapping.
  std::uint64_t id_range_failures = 0;
  // Pulls that RecordImagePulled, RecordImagePullFailed and RecordImagePullError ended, by
  // PullEnd and PullErrorClass; of those that succeeded in [0].
  std::array<std::array<std::uint64_t, kMaxPullErrorClasses>, kPullEnds> pulls{};
  // How long pulls took, from the intent to the end, and how many that is of: those of which one
  // process recorded both. By the boot clock.
  std::uint64_t pull_nanoseconds = 0;
  std::uint64_t pull_count = 0;

  // KEP-2535's service level indicator, 0 to 1: the share of requests that had to verify a present
  // image again, among those without an error and with a policy other than Always. Above 0.9 hardly
  // any pod shares credentials, or records are lost. nullopt: there was no such request.
  std::optional<double> ReverificationRatio() const;

  friend bool operator==(const StoreCounters&, const StoreCounters&) = default;
};

// What an opening as the owner found, in numbers; OpeningReport has the words.
struct OpeningSummary {
  Timestamp at = {};         // when it ended
  std::uint64_t damage = 0;  // OpeningReport::findings
  std::uint64_t warnings = 0;
  std::uint64_t modes_mended = 0;
  std::uint64_t import_problems = 0;    // files of a kubelet that could not be read
  std::uint64_t id_range_problems = 0;  // pods whose ranges could not be taken over
  std::uint64_t gap_closed = 0;         // images that a gap closed
  bool created = false;
  bool rebuilt = false;        // the database failed its check and was set aside
  bool commit_undone = false;  // a crash had cut the last commit short
  bool witness_made = false;   // the witness was missing
  bool clock_was_ahead = false;
  bool after_gap = false;

  friend bool operator==(const OpeningSummary&, const OpeningSummary&) = default;
};

// How many records a runtime handler has.
struct HandlerRecords {
  std::string runtime_handler = {};  // empty: the default handler
  std::uint64_t records = 0;

  friend bool operator==(const HandlerRecords&, const HandlerRecords&) = default;
};

// A metric with its series.
struct MetricFamily {
  struct Series {
    std::vector<std::pair<std::string, std::string>> labels = {};  // name, value
    double value = 0;
  };
  std::string name = {};
  std::string type = {};  // "counter", "gauge"
  std::string help = {};
  std::vector<Series> series = {};
};

// Prometheus' text exposition format, version 0.0.4.
std::string ToPrometheusText(const std::vector<MetricFamily>& families);

// What a store counts and holds. The kubelet's names are those of KEP-2535.
struct Metrics {
  // By CheckResult; [kNotCounted] stays 0.
  std::array<std::uint64_t, 5> mustpull_checks{};
  EnsureImageRequests ensure_image_requests{};
  std::uint64_t ondisk_pullintents = 0;
  std::uint64_t ondisk_pulledrecords = 0;
  // The store has no cache. Instead of a cache's use, these give how much of a bound is in use:
  // images in flight of kMaxInFlightImages, and used pages of the map.
  double inmemory_pullintents_usage_percent = 0;
  double inmemory_pulledrecords_usage_percent = 0;
  // Images under other runtime handlers than the default (KEP-4216, "How can an operator determine
  // if the feature is in use"). waybill_nondefault_runtime_handler_images.
  std::uint64_t nondefault_runtime_handler_images = 0;
  std::uint64_t preloaded_images = 0;  // in the ledger. waybill_preloaded_images
  std::uint64_t open_pulls = 0;        // Mode::kStrict. waybill_open_pulls
  // This object is the store's owner: its counters are those of the process that decides.
  bool live_owner = false;
  // False: the gauges could not all be read, and are 0 or empty.
  bool readable = false;
  bool distrustful = false;
  bool user_namespaces = false;    // false: they are off, and there are no ranges
  bool id_ranges_refused = false;  // a held pod's range is unknown, so none is handed out
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::vector<HandlerRecords> records_by_handler = {};  // the default handler first, then by name
  // Records that close their image because nobody knows where it came from (closed_because).
  std::uint64_t closed_images = 0;
  std::uint64_t quarantine_entries = 0;
  // Reasons in force, by DegradedKind; [0]: of kinds that this version does not know.
  std::array<std::uint64_t, kMaxTrustKinds> distrust_reasons{};
  // By PullState; [0]: pulls of anything, in any state. Mode::kStrict.
  std::array<std::uint64_t, 4> open_pulls_by_state{};
  std::uint64_t id_mappings = 0;
  std::uint64_t held_pods = 0;
  std::uint64_t id_ranges_free = 0;  // of the pool, in ranges
  std::uint64_t id_ranges_used = 0;
  std::uint64_t map_bytes = 0;
  std::uint64_t used_bytes = 0;  // of the map, free pages inside included
  std::uint32_t readers = 0;
  std::uint32_t max_readers = 0;
  // When the oldest credential was proven by a pull, among those for which that is known; nullopt:
  // there is none. A forgotten credential counts until it is taken out of its record.
  std::optional<Timestamp> oldest_credential = {};
  std::uint64_t undated_credentials = 0;  // nobody knows when they were proven
  std::uint64_t revocations = 0;          // that are kept
  // nullopt: this is an observer.
  std::optional<StoreCounters> counters = {};
  // nullopt: likewise
  std::optional<OpeningSummary> last_opening = {};
  // Of preloaded_images, those presumed since a first start. waybill_presumed_images
  std::uint64_t presumed_images = 0;
  // Credentials on record, by VerifiedBy. waybill_credentials
  std::array<std::uint64_t, 4> credentials_by_checker{};
  // The owner writes a trace (TraceOptions): events that it wrote, and that it could not write.
  bool writes_trace = false;
  std::uint64_t trace_events = 0;
  std::uint64_t trace_events_dropped = 0;

  // Every family that applies, in a fixed order. Series that are 0 are included, so that a rate is
  // defined from the first scrape. Left out are, without a live owner, the kubelet's names, what
  // owners count, and the last opening; gauges that could not be read (waybill_store_readable is 0
  // then); ranges without user namespaces; the age of the oldest credential without one; the ratio
  // without requests.
  std::vector<MetricFamily> Families() const;

  // Families as Prometheus' text exposition format, version 0.0.4.
  std::string ToPrometheusText() const;
};

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_METRICS_H_
