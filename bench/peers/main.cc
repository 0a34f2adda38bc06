// waybill_peers: waybill beside other ways to keep the same records, in one run. See
// bench/README.md. Within a row the peers take turns: in each turn every peer does a short batch,
// the turns begin with another peer each time, and a ratio is that of one turn.

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
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

// In each turn every peer does `work`, of so many operations; only that counts. `prepare` goes
// before it. Both get the peer's place.
template <typename Prepare, typename Work>
std::vector<Taken> TakeTurns(const Peers& peers, std::size_t turns, std::size_t operations,
                             std::chrono::nanoseconds latency, const Prepare& prepare,
                             const Work& work) {
  std::vector<Taken> taken(peers.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t k = 0; k < peers.size(); ++k) {
      const std::size_t i = (turn + k) % peers.size();
      prepare(i);
      const std::uint64_t flushes = DiskCallsSoFar().flushes;
      AddToFlushes(latency);
      const double nanoseconds = NanosecondsOf([&] { work(i, turn); });
      AddToFlushes({});
      taken[i].each.push_back(nanoseconds / static_cast<double>(operations));
      taken[i].flushes += DiskCallsSoFar().flushes - flushes;
      taken[i].operations += operations;
    }
  }
  return taken;
}

void AddRows(const Peers& peers, const std::vector<Taken>& taken, Unit unit, Figures& figures) {
  for (std::size_t i = 0; i < peers.size(); ++i) {
    std::vector<double> values = taken[i].each;
    std::vector<double> ratios = taken[i].each;
    for (std::size_t turn = 0; turn < ratios.size(); ++turn) {
      ratios[turn] /= taken[0].each[turn];
      if (unit == Unit::kPerSecond) values[turn] = 1e9 / values[turn];
    }
    figures.Add({.what = peers[i]->name(),
                 .ratio = Spread(std::move(ratios)),
                 .value = Spread(std::move(values)),
                 .unit = unit,
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
  const ListToken token = Must(listed->Call(BeginList())).token;
  Must(listed->Call(ClassifyImages{
      .list = {.images = ListOfImages(0, records), .token = token, .complete = true}}));
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
  const auto taken = TakeTurns(
      peers, plan.turns, plan.batch, {}, [](std::size_t) {},
      [&](std::size_t i, std::size_t turn) { ask(*peers[i], turn * plan.batch, plan.batch); });
  figures.Begin(fmt::format("read, warm, {} records, random order", Grouped(records)));
  AddRows(peers, taken, Unit::kNanoseconds, figures);
}

// Pulls alone, and from 64 callers. Adds their records.
void MeasureWrites(const Peers& peers, std::size_t records, const WritePlan& plan,
                   Figures& figures) {
  std::vector<std::uint64_t> next(peers.size());  // each peer gets the same pulls
  const auto run = [&](bool together, std::size_t turns, std::size_t batch) {
    std::vector<Pull> pulls;
    return TakeTurns(
        peers, turns, batch, plan.latency, [&](std::size_t i) { pulls = NewPulls(next[i], batch); },
        [&](std::size_t i, std::size_t) {
          if (together) {
            FromAllCallers(batch, [&](std::size_t pull) { peers[i]->Put(pulls[pull]); });
          } else {
            for (const Pull& pull : pulls) peers[i]->Put(pull);
          }
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
  AddRows(peers, alone, Unit::kNanoseconds, figures);
  begin(fmt::format("{} callers", kCallers));
  AddRows(peers, run(true, plan.together_turns, plan.together), Unit::kPerSecond, figures);
}

struct Plan {
  ReadPlan reads = {};
  // Fewer where a flush takes long: what is then measured is the flushes, which vary little.
  std::vector<WritePlan> writes = {{milliseconds(0), 20, 25, 1024, 9},
                                   {milliseconds(1), 10, 9, 256, 5},
                                   {milliseconds(8), 4, 5, 128, 3}};
};

Plan QuickPlan() {
  return {.reads = {.batch = 20, .turns = 3},
          .writes = {{milliseconds(0), 2, 2, 16, 1},
                     {milliseconds(1), 2, 1, 16, 1},
                     {milliseconds(8), 1, 1, 8, 1}}};
}

void MeasureSize(const Plan& plan, std::size_t records, const Run& run) {
  const StoredBytes bytes(run.scratch.path(), records);
  for (const WritePlan& writes : plan.writes) {
    // New stores for each latency, since pulls add records.
    const bool is_first = &writes == plan.writes.data();
    const std::filesystem::path directory =
        run.scratch.path() / fmt::format("peers-{}-{}", records, writes.latency.count());
    std::filesystem::create_directory(directory);
    const Peers peers = MakePeers(directory);
    for (const auto& peer : peers) peer->Fill(records, bytes);
    if (is_first) MeasureDisk(peers, records, run.figures);
    for (const auto& peer : peers) peer->Open();
    if (is_first) MeasureReads(peers, records, plan.reads, run.figures);
    MeasureWrites(peers, records, writes, run.figures);
    for (const auto& peer : peers) peer->Close();
    std::filesystem::remove_all(directory);
  }
}

void Measure(const Run& run) {
  const Plan plan = run.quick ? QuickPlan() : Plan();
  Machine& machine = run.figures.machine();
  for (const auto& [library, version] :
       {std::pair("SQLite", SqliteVersion()), std::pair("RocksDB", RocksdbVersion())}) {
    if (version.empty()) {
      machine.warnings.push_back(fmt::format("built without {}: its rows are missing", library));
    } else {
      machine.facts.emplace_back(library, version);
    }
  }
  std::string rounds = fmt::format("{} turns of reads", plan.reads.turns);
  for (const WritePlan& writes : plan.writes) {
    rounds += fmt::format("; +{} ms a flush: {} alone, {} of 64 callers", writes.latency.count(),
                          writes.turns, writes.together_turns);
  }
  machine.facts.emplace_back("rounds", rounds);
  machine.facts.emplace_back(
      "ratios", "how many times as long as waybill, turn by turn; above 1, waybill is faster");
  for (const std::size_t records : run.records) MeasureSize(plan, records, run);
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  using namespace waybill::bench;
  return RunProgram(argc, argv,
                    {.name = "peers",
                     .about = "Measures waybill beside LMDB, SQLite, RocksDB and files, on the "
                              "same data, in one run.",
                     .records = {2000, 20'000},
                     .quick_records = 100},
                    Measure);
}
