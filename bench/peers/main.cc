// waybill_peers: waybill beside other ways to keep the same records, in one run. See
// bench/README.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/machine.h"
#include "bench/peers/flushes.h"
#include "bench/peers/peer.h"
#include "bench/peers/resident.h"
#include "bench/peers/rows.h"
#include "bench/report.h"
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
  plan.reads = {.batch = 20, .turns = 3, .openings = 2};
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
        MeasureMemory(peers, records, figures);
        MeasureOpenings(peers, records, plan.reads, figures);
        for (const auto& peer : peers) peer->Open();
        MeasureReads(peers, records, plan.reads, figures);
      } else {
        for (const auto& peer : peers) peer->Open();
      }
      MeasureWrites(peers, records, writes, figures);
      for (const auto& peer : peers) peer->Close();
      std::filesystem::remove_all(directory);
    }
  }
}

Figures::Head HeadOf(const Plan& plan, bool quick, const std::string& kubelet,
                     const Scratch& scratch) {
  Figures::Head head{.name = "peers", .again = "./dev bench peers", .flushes = true};
  head.facts = MachineFacts(scratch.path());
  std::string sizes;
  for (const std::size_t size : plan.sizes) {
    sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  }
  head.again += " --records " + sizes + (quick ? " --quick" : "");
  head.warnings = MachineWarnings(scratch.path());
  for (const auto& [library, version] :
       {std::pair("SQLite", SqliteVersion()), std::pair("RocksDB", RocksdbVersion())}) {
    if (version.empty()) {
      head.warnings.push_back(std::string("built without ") + library + ": its rows are missing");
    } else {
      head.facts.emplace_back(library, version);
    }
  }
  if (kubelet.empty()) {
    head.warnings.emplace_back("no Go: the rows of the kubelet's own manager are missing");
  }
  head.facts.emplace_back(
      "ratios", "how many times as long as waybill, turn by turn; above 1, waybill is faster");
  if (quick) head.warnings.emplace_back("a quick run measures nothing");
  return head;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Measures waybill beside LMDB, SQLite, RocksDB and files, on the same data, in one run. "
      "Their "
      "stores are made below TMPDIR, or below /var/tmp, which must be a disk.");
  bool quick = false;
  std::vector<std::size_t> sizes;
  std::string json;
  std::string kubelet;
  std::string resident;
  std::string store;
  app.add_option("--records", sizes, "sizes of the stores (2000,20000)")
      ->delimiter(',')
      ->check(CLI::Range(10, 1'000'000));
  app.add_flag("--quick", quick, "a tiny run that shows that everything works; measures nothing");
  app.add_option("--json", json, "write the figures to this file, too");
  app.add_option("--kubelet", kubelet, "figures of bindings/go/kubelet/bench, to show them, too");
  app.add_option("--resident", resident, "")->group("");  // see resident.h
  app.add_option("--store", store, "")->group("");
  CLI11_PARSE(app, argc, argv);

  if (!resident.empty()) {
    for (const auto& peer : MakePeers(store)) {
      if (peer->name() == resident) return RunResident(*peer, sizes.at(0));
    }
    throw std::runtime_error("there is no peer " + resident);
  }

  Plan plan = quick ? QuickPlan() : Plan();
  if (!sizes.empty()) plan.sizes = sizes;
  const Scratch scratch;
  if (!quick) RequireDisk(scratch.path());
  CheckThatFlushesAreCounted(scratch.path());
  Figures figures(HeadOf(plan, quick, kubelet, scratch));
  figures.PrintHead();
  DescribePeers(MakePeers(scratch.path()));
  MeasureSizes(plan, scratch, figures);
  if (!kubelet.empty()) AddKubelet(kubelet, figures);
  figures.PrintFoot();
  if (!json.empty() && !figures.WriteJson(json)) {
    std::fprintf(stderr, "error: cannot write %s\n", json.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  try {
    return waybill::bench::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
