// A simulated node's life as a trace (waybill/trace.h): what its owner would have written.

#ifndef WAYBILL_BENCH_SIZING_TRACE_EVENTS_H_
#define WAYBILL_BENCH_SIZING_TRACE_EVENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/sizing/trace.h"
#include "waybill/trace.h"

namespace waybill::bench {

class TraceEvents {
 public:
  // The images that came with the node, and those that it begins with, are listed as such.
  explicit TraceEvents(const Trace& trace);
  std::vector<TraceEvent> Of(const Event& event);

 private:
  using Tenants = std::map<std::uint32_t, std::uint32_t>;  // and their credentials
  TraceEvent Begin(TraceEvent::Kind kind, ImageId image) const;
  TraceEvent Use(const Event& event);

  std::map<std::uint32_t, Tenants> records_;  // by ref; of a public image, none
  std::vector<TraceEvent> preloaded_;
  std::int64_t second_ = 0;
};

// A trace of `days`, as text.
std::string TraceText(const cli::NodeShape& shape, std::uint64_t seed, double days);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_TRACE_EVENTS_H_
