// Decisions that hit one secret, beside bare lookups of the same records in the same order.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/rows.h"
#include "tests/support/allocations.h"

namespace waybill::bench {

namespace {

// Figures of kubelet v1.36.3, recorded on another machine; see README.md.
constexpr double kKubeletCacheNs = 4100;
constexpr double kKubeletFilesNs = 35000;

// Goes through the questions again and again.
class Round {
 public:
  explicit Round(const Questions& questions, std::size_t start = 0)
      : questions_(questions), next_(start) {}
  const Question& Next() {
    if (next_ == questions_.size()) next_ = 0;
    return questions_[next_++];
  }

 private:
  const Questions& questions_;
  std::size_t next_;
};

void Decide(NodeStore& store, Round& round, std::size_t count) {
  std::size_t hits = 0;
  for (std::size_t i = 0; i < count; ++i) hits += Hit(store, round.Next()) ? 1 : 0;
  if (hits != count) throw std::runtime_error("a decision did not hit; the figures are void");
}

void LookUp(BareLmdb& peer, Round& round, std::size_t count) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) found += peer.Lookup(round.Next().image_ref) ? 1 : 0;
  benchmark::DoNotOptimize(found);
  if (found != count) throw std::runtime_error("a bare lookup found nothing; the figures are void");
}

}  // namespace

bool Hit(NodeStore& store, const Question& question) {
  FixedCredentials credentials({.secrets = {&question.secret, 1}, .service_account = {}});
  const Decision decision = store.MustAttemptPull(
      {.image = question.image, .image_ref = question.image_ref}, credentials);
  return !decision.pull && decision.reason == Reason::kSecretHashMatches;
}

void MeasureDecisions(const Bench& bench, ScratchStore& store, std::size_t records, double reach) {
  const Questions questions(records);
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("lookups-{}", records));
  store.Open();

  const std::size_t batch = bench.effort.decision_batch;
  Round ours(questions);
  Round theirs(questions);
  for (std::size_t done = 0; done < records; done += batch) {  // warm
    Decide(*store, ours, batch);
    LookUp(peer, theirs, batch);
  }
  Turns turns;
  const auto each = static_cast<double>(batch);
  for (std::size_t i = 0; i < bench.effort.decision_turns; ++i) {
    const double mine = NanosecondsOf([&] { Decide(*store, ours, batch); });
    const double bare = NanosecondsOf([&] { LookUp(peer, theirs, batch); });
    turns.Add(mine / each, bare / each);
  }
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("decision, hit, one secret, {} records", Grouped(records)),
                    Duration(result.ours), "bare lookup " + Duration(result.theirs), result.ratio,
                    "x", AtMost(reach)});

  Round counted(questions);
  const std::size_t before = testing::AllocationsOfThread();
  Decide(*store, counted, batch);
  const auto allocations = static_cast<double>(testing::AllocationsOfThread() - before);
  bench.report.Add({fmt::format("  allocations in a decision, {} records", Grouped(records)), "",
                    "", allocations / each, "", AtMost(0)});
  // The kubelet was recorded at 2,000 records.
  if (records >= 100'000) return;
  for (const auto& [where, kubelet_ns, reach_times] :
       {std::tuple{"its cache", kKubeletCacheNs, 10.0}, {"its files", kKubeletFilesNs, 100.0}}) {
    bench.report.Add({fmt::format("  times faster than the kubelet, {} records", Grouped(records)),
                      Duration(result.ours),
                      fmt::format("{}, recorded: {}", where, Duration(kubelet_ns)),
                      kubelet_ns / result.ours, "x", AtLeast(reach_times)});
  }
}

namespace {

// Decisions a second by so many threads, which share the work. Each first decides on what it will
// decide on.
double RateOf(std::size_t threads, NodeStore& store, const Questions& questions,
              std::size_t count) {
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> start{false};
  std::vector<std::jthread> all;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      Round round(questions, thread * questions.size() / threads);
      Decide(store, round, count / threads);
      ++ready;
      while (!start) std::this_thread::yield();
      Decide(store, round, count / threads);
    });
  }
  while (ready < threads) std::this_thread::yield();
  const double time = NanosecondsOf([&] {
    start = true;
    all.clear();
  });
  return static_cast<double>(count) / time;
}

void MeasureManyThreads(const Bench& bench, ScratchStore& store, const Questions& questions) {
  constexpr std::size_t kMany = 16;
  // Enough for many turns of each thread on its processor.
  const std::size_t count = bench.effort.decision_batch * 2000;
  Turns turns;
  for (std::size_t turn = 0; turn < std::max<std::size_t>(1, bench.effort.thread_turns / 20);
       ++turn) {
    const double many = RateOf(kMany, *store, questions, count);
    turns.Add(many, RateOf(2, *store, questions, count));
  }
  const Comparison result = turns.Result();
  bench.report.Add(
      {fmt::format("decisions on {} threads, {} records", kMany, Grouped(questions.size())),
       fmt::format("{:.2f} M/s", result.ours * 1e3),
       fmt::format("2 threads {:.2f} M/s", result.theirs * 1e3), result.ratio, "x", AtLeast(1)});
}

}  // namespace

void MeasureThreads(const Bench& bench, ScratchStore& store, std::size_t records) {
  const Questions questions(records);
  const std::size_t count = bench.effort.decision_batch * 5;
  Round first(questions);
  Round second(questions, records / 2);

  // The second thread waits in a loop: waking it would cost more than its work.
  std::atomic<std::size_t> started{0};
  std::atomic<std::size_t> finished{0};
  std::atomic<bool> stop{false};
  std::jthread helper([&] {
    for (std::size_t turn = 1; !stop; ++turn) {
      while (started < turn && !stop) std::this_thread::yield();
      if (stop) return;
      Decide(*store, second, count);
      finished = turn;
    }
  });
  Decide(*store, first, count);
  Turns turns;
  for (std::size_t turn = 1; turn <= bench.effort.thread_turns; ++turn) {
    const double two = NanosecondsOf([&] {
      started = turn;
      Decide(*store, first, count);
      while (finished < turn) std::this_thread::yield();
    });
    const double one = NanosecondsOf([&] { Decide(*store, first, count); });
    const auto decisions = static_cast<double>(count);
    turns.Add(2 * decisions / two, decisions / one);
  }
  stop = true;
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("decisions on 2 threads, {} records", Grouped(records)),
                    fmt::format("{:.2f} M/s", result.ours * 1e3),
                    fmt::format("1 thread {:.2f} M/s", result.theirs * 1e3), result.ratio, "x",
                    AtLeast(1.9)});
  MeasureManyThreads(bench, store, questions);
}

}  // namespace waybill::bench
