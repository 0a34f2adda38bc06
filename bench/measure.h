// Timing. To compare two things, run short batches of each in turns, and take the median of the
// batches' ratios: other load on the machine then affects both or neither.

#ifndef WAYBILL_BENCH_MEASURE_H_
#define WAYBILL_BENCH_MEASURE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

namespace waybill::bench {

template <typename Work>
double NanosecondsOf(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

inline constexpr std::size_t kCallers = 64;

// Calls `write` with 0 to `count` - 1 from 64 threads, which share commits. Throws if it returns
// false.
template <typename Write>
void FromAllCallers(std::size_t count, const Write& write) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::jthread> callers;
  for (std::size_t i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      for (std::size_t at = next++; at < count && !failed; at = next++) {
        if (!write(at)) failed = true;
      }
    });
  }
  callers.clear();
  if (failed) throw std::runtime_error("a durable write failed; the figures are void");
}

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Comparison {
  double ours = 0;  // medians
  double theirs = 0;
  double ratio = 0;  // median of ours / theirs, turn by turn
};

class Turns {
 public:
  void Add(double ours, double theirs) {
    ours_.push_back(ours);
    theirs_.push_back(theirs);
    ratios_.push_back(ours / theirs);
  }
  Comparison Result() const { return {Median(ours_), Median(theirs_), Median(ratios_)}; }

 private:
  std::vector<double> ours_;
  std::vector<double> theirs_;
  std::vector<double> ratios_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MEASURE_H_
