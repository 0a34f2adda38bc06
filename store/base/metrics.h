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

namespace waybill {

// How many values of Reason and of DegradedKind there is room for.
inline constexpr std::size_t kMaxReasons = 32;

inline constexpr std::size_t kMaxTrustKinds = 16;

// By PullPolicy, then present_locally and pull_required: 0 false, 1 true, 2 unknown.
using EnsureImageRequests = std::array<std::array<std::array<std::uint64_t, 3>, 3>, 3>;

// KEP-2535's service level indicator, 0 to 1: the share of requests that had to verify a present
// image again, among those without an error and with a policy other than Always. Above 0.9 hardly
// any pod shares credentials, or records are lost. nullopt: there was no such request.
std::optional<double> ReverificationRatio(const EnsureImageRequests& requests);

// How a pull ended, for waybill_pulls_total. Numbers do not change.
enum class PullEnd : std::uint8_t {
  kSucceeded,
  kFailed,   // PullOutcome::kFailed or kNothing
  kUnknown,  // PullOutcome::kUnknown
};

inline constexpr std::size_t kPullEnds = 3;

// How many values of PullErrorClass there is room for.
inline constexpr std::size_t kMaxPullErrorClasses = 8;

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

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_METRICS_H_
