// waybill_peers: waybill beside other ways to keep the same records, in one run. See
// bench/README.md.

#include <algorithm>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/machine.h"
#include "bench/peers/peer.h"
#include "bench/peers/rows.h"
#include "bench/program.h"
#include "bench/scratch.h"

namespace waybill::bench {

namespace {

using std::chrono::milliseconds;

struct Plan {
  std::vector<std::size_t> sizes{2000, 20'000};
  ReadPlan reads;
  // Fewer where a flush takes long: what is then measured is the flushes, which vary little.
  std::vector<WritePlan> writes{{milliseconds(0), 20, 25, 1024, 9},
                                {milliseconds(1), 10, 9, 256, 5},
                                {milliseconds(8), 4, 5, 128, 3}};
};

Plan QuickPlan() {
  Plan plan;
  plan.sizes = {100};
  plan.reads = {.batch = 20, .turns = 3};
  plan.writes = {{milliseconds(0), 2, 2, 16, 1},
                 {milliseconds(1), 2, 1, 16, 1},
                 {milliseconds(8), 1, 1, 8, 1}};
  return plan;
}

void MeasureSizes(const Plan& plan, const Scratch& scratch, Figures& figures) {
  for (const std::size_t records : plan.sizes) {
    const StoredBytes bytes(scratch.path(), records);
    for (const WritePlan& writes : plan.writes) {
      // New stores for each latency, since pulls add records.
      const std::filesystem::path directory =
          scratch.path() /
          ("peers-" + std::to_string(records) + "-" + std::to_string(writes.latency.count()));
      std::filesystem::create_directory(directory);
      const Peers peers = MakePeers(directory);
      for (const auto& peer : peers) peer->Fill(records, bytes);
      if (&writes == plan.writes.data()) {
        MeasureDisk(peers, records, figures);
      }
      for (const auto& peer : peers) peer->Open();
      if (&writes == plan.writes.data()) MeasureReads(peers, records, plan.reads, figures);
      MeasureWrites(peers, records, writes, figures);
      for (const auto& peer : peers) peer->Close();
      std::filesystem::remove_all(directory);
    }
  }
}

Figures::Head HeadOf(const Plan& plan, const Options& options, const Scratch& scratch) {
  Figures::Head head{.name = "peers", .again = "./dev bench peers", .flushes = true};
  head.facts = MachineFacts(scratch.path());
  std::string sizes;
  for (const std::size_t size : plan.sizes) {
    sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  }
  head.again += " --records " + sizes + (options.quick ? " --quick" : "");
  head.warnings = WarningsOf(options, scratch.path());
  for (const auto& [library, version] :
       {std::pair("SQLite", SqliteVersion()), std::pair("RocksDB", RocksdbVersion())}) {
    if (version.empty()) {
      head.warnings.push_back(std::string("built without ") + library + ": its rows are missing");
    } else {
      head.facts.emplace_back(library, version);
    }
  }
  std::string rounds = std::to_string(plan.reads.turns) + " turns of reads";
  for (const WritePlan& writes : plan.writes) {
    rounds += "; +" + std::to_string(writes.latency.count()) +
              " ms a flush: " + std::to_string(writes.turns) + " alone, " +
              std::to_string(writes.together_turns) + " of 64 callers";
  }
  head.facts.emplace_back("rounds", rounds);
  head.facts.emplace_back(
      "ratios", "how many times as long as waybill, turn by turn; above 1, waybill is faster");
  return head;
}

int Measure(const Options& options) {
  Plan plan = options.quick ? QuickPlan() : Plan();
  if (!options.records.empty()) plan.sizes = options.records;
  const Scratch scratch;
  Figures figures(HeadOf(plan, options, scratch));
  figures.PrintHead();
  MeasureSizes(plan, scratch, figures);
  figures.PrintFoot();
  WriteText(options.json, figures.Json());
  return 0;
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  using namespace waybill::bench;
  const CommandLine line{
      .about =
          "Measures waybill beside LMDB, SQLite, RocksDB and files, on the same data, in one "
          "run. Their stores are made below TMPDIR, or below /var/tmp, which must be a disk.",
      .records_help = "sizes of the stores (2000,20000)"};
  return RunProgram(argc, argv, line, Measure);
}
