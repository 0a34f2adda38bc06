// Puts the events of a trace in the order of their times. What is too much for memory goes to files
// without names in TMPDIR.

#ifndef WAYBILL_BINDINGS_CLI_TRACE_SORTER_H_
#define WAYBILL_BINDINGS_CLI_TRACE_SORTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "waybill/trace.h"

namespace waybill::cli {

class TraceSorter {
 public:
  // `most`: bytes of lines in memory.
  explicit TraceSorter(std::size_t most = std::size_t{64} << 20) : most_(most) {}

  // kIo, kDiskFull: TMPDIR takes no more.
  Result<void> Add(const TraceEvent& event);
  std::uint64_t events() const { return events_; }
  // Takes the lines in order; those of one time as they were added.
  using Take = std::function<void(std::int64_t time_ms, std::string_view line)>;
  Result<void> Finish(const Take& take);

 private:
  struct Line {
    std::int64_t time_ms = 0;
    std::string text;
  };
  void Sort();
  Result<void> Spill();

  std::size_t most_;
  std::size_t bytes_ = 0;
  std::uint64_t events_ = 0;
  std::vector<Line> lines_;
  std::vector<internal::Fd> runs_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_TRACE_SORTER_H_
