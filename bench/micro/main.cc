// waybill_micro: what docs/figures.md cites of a store's calls. See bench/README.md.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/micro/rows.h"
#include "bench/program.h"

namespace waybill::bench {

namespace {

// Makes a figure of a row's repetitions.
class Reporter final : public benchmark::BenchmarkReporter {
 public:
  explicit Reporter(Figures& figures) : figures_(figures) {}

  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    if (runs.front().run_type == Run::RT_Aggregate) return;
    const bool rate = runs.front().counters.contains("items_per_second");
    std::vector<double> values;
    std::vector<double> ratios;
    for (const Run& run : runs) {
      if (run.error_occurred)
        throw std::runtime_error(run.error_message + "; the figures are void");
      const double ours = run.GetAdjustedRealTime();
      const double bare = run.counters.at(kBare);
      values.push_back(rate ? 1e9 / ours : ours);
      ratios.push_back(rate ? bare / ours : ours / bare);
    }
    figures_.Add({.what = runs.front().run_name.function_name,
                  .ratio = Spread(std::move(ratios)),
                  .value = Spread(std::move(values)),
                  .unit = rate ? Unit::kPerSecond : Unit::kNanoseconds});
  }

 private:
  Figures& figures_;
};

void MeasureStore(const Micro& micro, std::size_t records) {
  ScratchStore store(micro.scratch.path() / fmt::format("store-{}", records));
  store.Fill(records);
  const std::size_t ledger = std::min<std::size_t>(records, micro.quick ? 10 : 1000);
  FromAllCallers(ledger, [&](std::size_t i) {
    Must(store->Call(
        AllowImage{.image = ListOfImages(kLedgerImages + i, 1).front(), .reason = "there before"}));
  });
  store.Close();
  BareLmdb peer(store.directory(), micro.scratch.path() / fmt::format("bare-{}", records));
  store.Open();
  const Questions questions(records);
  Bare bare(peer, questions);
  const MicroStore on{store, records, ledger, questions, bare};
  const auto begin = [&](const char* what, const char* beside) {
    micro.figures.Begin(fmt::format("{}, {} records", what, Grouped(records)), beside);
  };
  for (std::size_t i = 0; i < records; ++i) {  // warm
    bare.Lookup();
    static_cast<void>(Decide(*store, questions[i]));
  }
  begin("decisions", "x lookup");
  MeasureKindsOfDecisions(micro, on);
  begin("decisions on several threads", "x 1 thread");
  MeasureThreads(micro, on);
  begin("decisions through C and Go", "x C++");
  MeasureBindings(micro, on);
  begin("calls that commit", "x commit");
  MeasureCommits(micro, on);
  begin("runtime handlers and user namespaces: reads beside a lookup, commits beside a commit",
        "x bare");
  MeasureUserNamespaces(micro, on);
  begin("calls on the whole store", "x scan");
  MeasureWholeStores(micro, on);
  store.Close();
}

void Measure(const Run& run) {
  const Micro micro{run};
  std::vector<std::string> flags{"waybill_micro", "--benchmark_repetitions=21",
                                 "--benchmark_min_time=0.003"};
  if (run.quick) flags = {flags[0], "--benchmark_repetitions=2", "--benchmark_min_time=0"};
  run.figures.machine().facts.emplace_back(
      "rounds", fmt::format("{}; {} of calls on whole stores",
                            fmt::join(flags.begin() + 1, flags.end(), " "), kLong.repetitions));
  run.figures.machine().facts.emplace_back(
      "ratios",
      "lookup: bare LMDB hashes the ref, renews a transaction, mdb_get; "
      "commit: bare LMDB commits one value; scan: bare LMDB opens and reads "
      "every entry");
  std::vector<char*> arguments;
  for (std::string& flag : flags) arguments.push_back(flag.data());
  auto count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  for (const std::size_t records : run.records) {
    MeasureStore(micro, records);
    MeasureRevocation(micro, records);
  }
  run.figures.Begin("secrets of an image", "x lookup");
  MeasureSecrets(micro);
  run.figures.Begin("pools of host IDs", "x 1 % full");
  MeasureFullPool(micro);
}

}  // namespace

void Micro::Row(const std::string& what, const std::function<void(State&)>& body,
                const Times& times) const {
  auto* const row = benchmark::RegisterBenchmark(what.c_str(), body);
  times.by_hand ? row->UseManualTime() : row->UseRealTime();
  if (times.iterations > 0) row->Iterations(quick ? 1 : times.iterations);
  if (times.repetitions > 0) row->Repetitions(quick ? 1 : times.repetitions);
  Reporter reporter(figures);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace waybill::bench

int main(int argc, char** argv) {
  using namespace waybill::bench;
  return RunProgram(argc, argv,
                    {.name = "micro",
                     .about = "Measures what a node asks of its store, beside bare LMDB.",
                     .records = {50, 2000, 100'000},
                     .quick_records = 50,
                     .text_flag = "--go",
                     .text_help = "the program of bindings/go/bench; without it Go is left out"},
                    Measure);
}
