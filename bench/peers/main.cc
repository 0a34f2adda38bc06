// waybill_peers: waybill beside other ways to keep the same records, in one run. See
// bench/README.md. Within a row the peers take turns: in each turn every peer does a short batch,
// the turns begin with another peer each time, and a ratio is that of one turn.

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/disk_calls.h"
#include "bench/figures.h"
#include "bench/measure.h"
#include "bench/peers/peer.h"
#include "bench/program.h"
#include "bench/scratch.h"

namespace waybill::bench {

namespace {

using std::chrono::milliseconds;

using Peers = std::vector<std::unique_ptr<Peer>>;  // the first is waybill

struct ReadPlan {
  std::size_t batch = 500;
  std::size_t turns = 301;
};

struct WritePlan {
  std::chrono::milliseconds latency{0};  // added to every flush
  std::size_t batch = 0;                 // of one caller
  std::size_t turns = 0;
  std::size_t together = 0;  // of all callers
  std::size_t together_turns = 0;
};

// What one peer took in the turns of a row.
struct Taken {
  std::vector<double> each;  // nanoseconds an operation
  std::uint64_t flushes = 0;
  std::size_t operations = 0;
};

struct Cost {
  double nanoseconds = 0;
  std::uint64_t flushes = 0;
};

template <typename Work>
Cost CostOf(Work&& work) {
  const std::uint64_t before = DiskCallsSoFar().flushes;
  const double nanoseconds = NanosecondsOf(work);
  return {nanoseconds, DiskCallsSoFar().flushes - before};
}

// One batch of the peer at this place: returns the cost of what counts.
using Batch = std::function<Cost(std::size_t peer, std::size_t turn)>;

std::vector<Taken> TakeTurns(const Peers& peers, std::size_t turns, std::size_t operations,
                             const Batch& batch) {
  std::vector<Taken> taken(peers.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t k = 0; k < peers.size(); ++k) {
      const std::size_t i = (turn + k) % peers.size();
      const Cost cost = batch(i, turn);
      taken[i].each.push_back(cost.nanoseconds / static_cast<double>(operations));
      taken[i].flushes += cost.flushes;
      taken[i].operations += operations;
    }
  }
  return taken;
}

Spread RatioTo(const Taken& one, const Taken& ours) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < one.each.size(); ++turn) {
    ratios.push_back(one.each[turn] / ours.each[turn]);
  }
  return Spread(std::move(ratios));
}

enum class As { kTime, kRate };

void AddRows(const Peers& peers, const std::vector<Taken>& taken, As as, Figures& figures) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    std::vector<double> values = taken[i].each;
    if (as == As::kRate) {
      for (double& value : values) value = 1e9 / value;
    }
    figures.Add({.what = peers[i]->name(),
                 .ratio = RatioTo(taken[i], taken[0]),
                 .value = Spread(std::move(values)),
                 .unit = as == As::kRate ? Unit::kPerSecond : Unit::kNanoseconds,
                 .flushes = static_cast<double>(taken[i].flushes) /
                            static_cast<double>(taken[i].operations)});
  }
}

std::size_t DiskBytes(const std::filesystem::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return 0;
  std::size_t bytes = static_cast<std::size_t>(status.st_blocks) * 512;
  if (!S_ISDIR(status.st_mode)) return bytes;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    bytes += DiskBytes(entry.path());
  }
  return bytes;
}

std::vector<Pull> NewPulls(std::uint64_t& next, std::size_t count) {
  std::vector<Pull> pulls;
  pulls.reserve(count);
  for (std::size_t i = 0; i < count; ++i) pulls.emplace_back(next++);
  return pulls;
}

// A durable peer flushes at least once for each write.
void CheckFlushes(const Peers& peers, const std::vector<Taken>& taken) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (taken[i].flushes < taken[i].operations) {
      throw std::runtime_error(fmt::format("{} made {} flushes in {} writes; the figures are void",
                                           peers[i]->name(), taken[i].flushes,
                                           taken[i].operations));
    }
  }
}

// From all callers. An exception may not leave their threads.
void WriteTogether(Peer& peer, const std::vector<Pull>& pulls) {
  FromAllCallers(pulls.size(), [&](std::size_t i) {
    try {
      peer.Put(pulls[i]);
      return true;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", peer.name().c_str(), e.what());
      return false;
    }
  });
}

// The peers are closed, before and after.
void MeasureDisk(const Peers& peers, std::size_t records, Figures& figures) {
  figures.Begin(fmt::format("disk, {} records: blocks of all its files, closed", Grouped(records)));
  const auto ours = static_cast<double>(DiskBytes(peers[0]->directory()));
  const auto add = [&](const std::string& what, const std::filesystem::path& directory) {
    const auto bytes = static_cast<double>(DiskBytes(directory));
    figures.Add(
        {.what = what,
         .ratio = bytes / ours,
         .value = bytes,
         .unit = Unit::kBytes,
         .note = fmt::format("{:.0f} bytes a record", bytes / static_cast<double>(records))});
  };
  for (const auto& peer : peers) add(peer->name(), peer->directory());
  // As on a node, where the runtime lists each image that was pulled.
  ScratchStore listed(peers[0]->directory().parent_path() / "listed");
  listed.Fill(records);
  Must(listed->ObserveImages(
      {.images = ListOfImages(0, records), .token = Must(listed->BeginList()), .complete = true}));
  listed.Close();
  add("waybill, each image listed", listed.directory());
}

// The peers are open, before and after, also of MeasureWrites.
void MeasureReads(const Peers& peers, std::size_t records, const ReadPlan& plan, Figures& figures) {
  const Questions questions(records);
  const auto ask = [&](Peer& peer, std::size_t first, std::size_t count) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      found += peer.Read(questions[(first + i) % records]) ? 1 : 0;
    }
    if (found != count) throw std::runtime_error(peer.name() + ": a read found nothing");
  };
  for (const auto& peer : peers) ask(*peer, 0, records);  // warm
  const auto taken = TakeTurns(peers, plan.turns, plan.batch, [&](std::size_t i, std::size_t turn) {
    return CostOf([&] { ask(*peers[i], turn * plan.batch, plan.batch); });
  });
  figures.Begin(fmt::format("read, warm, {} records, random order", Grouped(records)));
  AddRows(peers, taken, As::kTime, figures);
}

// Pulls alone, and from 64 callers. Adds their records.
void MeasureWrites(const Peers& peers, std::size_t records, const WritePlan& plan,
                   Figures& figures) {
  std::vector<std::uint64_t> next(peers.size());  // each peer gets the same pulls
  const auto run = [&](bool together, std::size_t turns, std::size_t batch) {
    return TakeTurns(peers, turns, batch, [&](std::size_t i, std::size_t /*turn*/) {
      Peer& peer = *peers[i];
      const std::vector<Pull> some = NewPulls(next[i], batch);
      AddToFlushes(plan.latency);
      const Cost cost = CostOf([&] {
        if (together) {
          WriteTogether(peer, some);
        } else {
          for (const Pull& pull : some) peer.Put(pull);
        }
      });
      AddToFlushes({});
      return cost;
    });
  };
  // The first write after opening costs more: a log is made, and its directory flushed.
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i]->Put(NewPulls(next[i], 1).front());
  const auto begin = [&](const std::string& who) {
    figures.Begin(
        fmt::format("durable pull (intent; then record and intent removed), {}, {} records, +{} ms "
                    "a flush",
                    who, Grouped(records), plan.latency.count()));
  };
  const auto alone = run(false, plan.turns, plan.batch);
  CheckFlushes(peers, alone);
  begin("alone");
  AddRows(peers, alone, As::kTime, figures);
  begin(fmt::format("{} callers", kCallers));
  AddRows(peers, run(true, plan.together_turns, plan.together), As::kRate, figures);
}

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
          scratch.path() / fmt::format("peers-{}-{}", records, writes.latency.count());
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
  Figures::Head head{
      .name = "peers",
      .again = fmt::format("./dev bench peers --records {}{}", fmt::join(plan.sizes, ","),
                           options.quick ? " --quick" : ""),
      .machine = MachineOf(options, scratch.path()),
      .flushes = true};
  for (const auto& [library, version] :
       {std::pair("SQLite", SqliteVersion()), std::pair("RocksDB", RocksdbVersion())}) {
    if (version.empty()) {
      head.machine.warnings.push_back(std::string("built without ") + library +
                                      ": its rows are missing");
    } else {
      head.machine.facts.emplace_back(library, version);
    }
  }
  std::string rounds = fmt::format("{} turns of reads", plan.reads.turns);
  for (const WritePlan& writes : plan.writes) {
    rounds += fmt::format("; +{} ms a flush: {} alone, {} of 64 callers", writes.latency.count(),
                          writes.turns, writes.together_turns);
  }
  head.machine.facts.emplace_back("rounds", rounds);
  head.machine.facts.emplace_back(
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
