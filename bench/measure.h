// Timing. To compare two things, run short batches of each in turns, and take the median of the
// batches' ratios: other load on the machine then affects both or neither.

#ifndef WAYBILL_BENCH_MEASURE_H_
#define WAYBILL_BENCH_MEASURE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <mutex>
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

// Calls `work` with 0 to `count` - 1 from all callers' threads. Throws what one of them threw.
template <typename Work>
void FromAllCallers(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  std::vector<std::jthread> callers;
  for (std::size_t i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      try {
        for (std::size_t at = next++; at < count; at = next++) work(at);
      } catch (...) {
        next = count;
        const std::lock_guard lock(mutex);
        failed = std::current_exception();
      }
    });
  }
  callers.clear();
  if (failed) std::rethrow_exception(failed);
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
