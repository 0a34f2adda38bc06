// waybill_bench: the table of README.md, in one run.

#include <algorithm>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/program.h"
#include "bench/report.h"
#include "bench/rows.h"

namespace waybill::bench {

Effort QuickEffort() {
  Effort effort;
  effort.quick = true;
  effort.decision_batch = 10;
  effort.decision_turns = 3;
  effort.thread_turns = 2;
  effort.commits = 2;
  effort.group_turns = 1;
  effort.openings = 1;
  effort.lists = 1;
  effort.forgets = 1;
  effort.previews = 1;
  effort.migrations = 1;
  effort.import_files = 50;
  effort.pods = 200;
  effort.allocations = 2;
  effort.bindings_batch = 10;
  effort.bindings_turns = 1;
  return effort;
}

namespace {

// The targets are for 2,000 and 100,000 records. Sizes between have the target of 2,000.
double DecisionReach(std::size_t records) { return records >= 100'000 ? 1.2 : 1.4; }

void Run(const Scratch& scratch, const std::vector<std::size_t>& sizes, const Effort& effort,
         const std::string& go_program, Report& report) {
  const Bench bench{scratch, effort, report};
  double first_pull = 0;
  for (const std::size_t records : sizes) {
    ScratchStore store(scratch.path() / ("store-" + std::to_string(records)));
    store.Fill(records);
    if (records == sizes.back()) {
      MeasureSize(bench, store, records);
      MeasureOpening(bench, store, records);
      MeasureMigrations(bench, store, records);
      MeasureRevocation(bench, records);
      MeasurePreviews(bench, store, records);
    }
    MeasureDecisions(bench, store, records, DecisionReach(records));
    // One list is one transaction: with 100,000 records and as many preloaded it fills the map.
    MeasureEvidence(bench, std::min<std::size_t>(records, 50'000));
    if (records == sizes.front()) {
      MeasureThreads(bench, store, records);
      MeasureBindings(bench, store, records, go_program);
      MeasureIntents(bench, store, records);
      MeasureUserNamespaces(bench, store, records);
    }
    const double pull = MeasurePulls(bench, store, records);
    if (records == sizes.front()) {
      first_pull = pull;
    } else {
      report.Add({"  beside a pull at " + Grouped(sizes.front()) + " records", Duration(pull),
                  Duration(first_pull), pull / first_pull, "x", AtMost(1.5)});
    }
    store.Close();
  }
  MeasureImport(bench);
}

int Measure(const Options& options, const std::string& go_program) {
  std::vector<std::size_t> sizes = options.records;
  if (sizes.empty()) sizes = {2000, 100'000};
  if (options.records.empty() && options.quick) sizes = {50, 200};
  const Scratch scratch;
  auto warnings = WarningsOf(options, scratch.path());
  auto facts = MachineFacts(scratch.path());
  std::string text;
  for (const std::size_t size : sizes) text += (text.empty() ? "" : " and ") + Grouped(size);
  facts.emplace_back("sizes", text + " records, one secret each");
  Report report(std::move(facts), std::move(warnings), !options.quick);
  report.PrintHead();
  Run(scratch, sizes, options.quick ? QuickEffort() : Effort{}, go_program, report);
  report.PrintFoot();
  WriteText(options.json, report.Json());
  return 0;
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  using namespace waybill::bench;
  std::string go_program;
  const CommandLine line{
      .about =
          "Measures waybill beside bare LMDB on the same data, in one run. Stores are made "
          "below TMPDIR, or below /var/tmp: let that be a disk.",
      .records_help = "sizes of the stores, smallest first (2000,100000)",
      .max_records = 10'000'000,
      .texts = {
          {"--go", "the program of bindings/go/bench; without it Go is skipped", &go_program}}};
  return RunProgram(argc, argv, line,
                    [&](const Options& options) { return Measure(options, go_program); });
}
