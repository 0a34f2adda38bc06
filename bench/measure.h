// Timing. To compare two things, run short batches of each in turns, and take the median of the
// batches' ratios: other load on the machine then affects both or neither.

#ifndef WAYBILL_BENCH_MEASURE_H_
#define WAYBILL_BENCH_MEASURE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace waybill::bench {

template <typename Work>
double NanosecondsOf(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

inline constexpr std::size_t kCallers = 64;

// Calls `write` with 0 to `count` - 1 from `threads` threads. Throws if it returns false; it may
// not throw itself.
template <typename Write>
void FromAllCallers(std::size_t count, const Write& write, std::size_t threads = kCallers) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::jthread> callers;
  for (std::size_t i = 0; i < threads; ++i) {
    callers.emplace_back([&] {
      for (std::size_t at = next++; at < count && !failed; at = next++) {
        if (!write(at)) failed = true;
      }
    });
  }
  callers.clear();
  if (failed) throw std::runtime_error("a durable write failed; the figures are void");
}

// A median with its quartiles, or a single value. Serves as a number: the median.
struct Spread {
  double median = 0;
  double low = 0;   // a quarter of the values lies below
  double high = 0;  // a quarter lies above

  Spread() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a single value is a figure, too.
  Spread(double only) : median(only), low(only), high(only) {}
  explicit Spread(std::vector<double> values) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    const auto at = [&values](double part) {
      const double place = part * static_cast<double>(values.size() - 1);
      const auto below = static_cast<std::size_t>(place);
      const std::size_t above = std::min(below + 1, values.size() - 1);
      return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
    };
    median = at(0.5);
    low = at(0.25);
    high = at(0.75);
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator double() const { return median; }
};

inline double Median(std::vector<double> values) { return Spread(std::move(values)).median; }

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MEASURE_H_
