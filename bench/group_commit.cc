// waybill_group_commit: the gain from sharing commits. 64 callers put and delete intents, first one
// by one behind a mutex, then sharing commits, beside one caller alone; on the disk as it is, and
// with time added to every flush (peers/flushes.h). See README.md.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/figures.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/peers/flushes.h"
#include "bench/program.h"
#include "bench/scratch.h"

namespace waybill::bench {

namespace {

struct Way {
  const char* name;
  std::size_t callers;
  bool one_by_one;
};
constexpr Way kWays[] = {{"1 caller", 1, false},
                         {"64 callers, one by one behind a mutex", kCallers, true},
                         {"64 callers, sharing commits", kCallers, false}};

struct Rate {
  double changes_per_second = 0;
  double flushes_per_change = 0;
};

Rate RateOf(NodeStore& store, const Way& way, std::chrono::milliseconds length) {
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<bool> failed{false};
  std::atomic<std::size_t> done{0};
  const std::uint64_t flushes = Flushes();
  const double took = NanosecondsOf([&] {
    std::vector<std::jthread> callers;
    for (std::size_t caller = 0; caller < way.callers; ++caller) {
      callers.emplace_back([&, caller] {
        const std::string image = fmt::format("registry.example.com/app-{}", caller);
        for (bool there = false; !stop || there; there = !there) {
          std::unique_lock lock(mutex, std::defer_lock);
          if (way.one_by_one) lock.lock();
          if (!(there ? store.DeleteIntent({.image = image}) : store.PutIntent({.image = image}))) {
            failed = true;
            return;
          }
          ++done;
        }
      });
    }
    std::this_thread::sleep_for(length);
    stop = true;
  });
  if (failed) throw std::runtime_error("a change failed; the figures are void");
  const auto changes = static_cast<double>(done);
  return {1e9 * changes / took, static_cast<double>(Flushes() - flushes) / changes};
}

void MeasureLatency(NodeStore& store, std::chrono::microseconds latency, bool quick,
                    Figures& figures) {
  AddToFlushes(latency);
  constexpr std::size_t kNumber = std::size(kWays);
  std::vector<double> rates[kNumber];
  std::vector<double> ratios[kNumber];
  std::vector<double> flushes[kNumber];
  for (std::size_t turn = 0; turn < (quick ? 1U : 5U); ++turn) {
    for (std::size_t i = 0; i < kNumber; ++i) {
      const Rate rate = RateOf(store, kWays[i], std::chrono::milliseconds(quick ? 5 : 300));
      rates[i].push_back(rate.changes_per_second);
      ratios[i].push_back(rate.changes_per_second / rates[0].back());
      flushes[i].push_back(rate.flushes_per_change);
    }
  }
  AddToFlushes({});
  figures.Begin(fmt::format("+{:g} ms a flush", static_cast<double>(latency.count()) / 1000),
                "x 1 caller");
  for (std::size_t i = 0; i < kNumber; ++i) {
    figures.Add({.what = kWays[i].name,
                 .ratio = Spread(ratios[i]),
                 .value = Spread(rates[i]),
                 .unit = Unit::kPerSecond,
                 .flushes = Median(flushes[i])});
  }
}

int Measure(const Options& options) {
  const Scratch scratch;
  Figures::Head head{
      .name = "group-commit",
      .again = std::string("./dev bench group-commit") + (options.quick ? " --quick" : ""),
      .flushes = true,
      .facts = MachineFacts(scratch.path()),
      .warnings = WarningsOf(options, scratch.path())};
  CheckThatFlushesAreCounted(scratch.path());
  Figures figures(std::move(head));
  figures.PrintHead();
  ScratchStore store(scratch.path() / "store");
  store.Open();
  for (const int microseconds : {0, 200, 1000, 8000}) {
    MeasureLatency(*store, std::chrono::microseconds(microseconds), options.quick, figures);
  }
  store.Close();
  figures.PrintFoot();
  WriteText(options.json, figures.Json());
  return 0;
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  return waybill::bench::RunProgram(
      argc, argv,
      {.about =
           "Measures what sharing commits gains. The store is made below TMPDIR, or /var/tmp."},
      waybill::bench::Measure);
}
