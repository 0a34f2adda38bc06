// The power fails at a random point of a run: what was written but not synced may be there or not.
// What was acknowledged is there, and a power cut alone never leads to distrust.
// WAYBILL_POWER_CUTS: how many.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/crash/work_judge.h"
#include "tests/crash/workload.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(power_cut)

namespace {

constexpr Timestamp kNow{kFakeEpoch, 0};

NodeStoreOptions OptionsFor(const std::filesystem::path& directory, Mode rules) {
  NodeStoreOptions options = OptionsIn(directory, rules);
  options.witness = Witness::At(directory / "kubelet" / "waybill");
  MakeRoomForWorkers(options);
  options.evidence = kEvidenceOfWorkers;
  return options;
}

NodeStoreOptions AfterReboot(const std::filesystem::path& directory, Mode rules) {
  NodeStoreOptions options = OptionsFor(directory, rules);
  FakeClock clock;
  clock.Reboot();
  options.boot_clock = clock.AsBootClock();
  return options;
}

// A mark: whose operation began or was acknowledged, and the first host ID that it was given.
constexpr std::size_t kBegan = 0;
constexpr std::size_t kAcknowledged = 1;
std::size_t MarkOf(std::size_t worker, std::size_t what, std::uint32_t host_id = 0) {
  return (std::size_t{host_id} * kWorkers + worker) * 2 + what;
}

std::vector<WorkJudge::Progress> ProgressAt(const std::vector<DiskEvent>& log, std::size_t cut) {
  std::vector<WorkJudge::Progress> progress(kWorkers);
  for (std::size_t i = 0; i < cut; ++i) {
    if (log[i].kind != DiskEvent::Kind::kMark) continue;
    WorkJudge::Progress& of_worker = progress[log[i].index / 2 % kWorkers];
    if (log[i].index % 2 == kBegan) {
      ++of_worker.started;
    } else {
      ++of_worker.acknowledged;
      of_worker.host_ids.push_back(static_cast<std::uint32_t>(log[i].index / 2 / kWorkers));
    }
  }
  return progress;
}

std::vector<DiskEvent> Record(const WorkPlan& plan, const std::filesystem::path& root) {
  Recorder recorder(root);
  BOOST_REQUIRE(Work(plan));
  std::vector<DiskEvent> log = recorder.Take();
  // The undisturbed result must not help any of the cuts.
  std::filesystem::remove_all(root / "store");
  std::filesystem::remove_all(root / "kubelet");
  return log;
}

// What the power cut left, under the paths that it was recorded under: the store remembers its
// witness.
void PlayInPlace(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                 const std::filesystem::path& root) {
  const MemoryDir after;
  PlayPowerCut(log, cut, draw, after.path());
  for (const char* name : {"store", "kubelet"}) {
    std::filesystem::remove_all(root / name);
    if (!std::filesystem::exists(after / name)) continue;
    std::filesystem::rename(after / name, root / name);
  }
}

WorkPlan PlanIn(const std::filesystem::path& root, Mode rules, std::uint64_t seed) {
  return {
      .options = OptionsFor(root, rules),
      .seed = seed,
      .sessions = 3,
      .operations = 15,
      .started = [](std::size_t worker, std::uint64_t) { Recorder::Mark(MarkOf(worker, kBegan)); },
      .done =
          [](std::size_t worker, std::uint64_t, std::uint32_t host_id) {
            Recorder::Mark(MarkOf(worker, kAcknowledged, host_id));
          }};
}

void CutOften(Mode rules, std::uint64_t cuts) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  constexpr std::uint64_t kCutsPerRun = 50;
  for (std::uint64_t run = 0; run * kCutsPerRun < cuts; ++run) {
    const MemoryDir scratch;
    const WorkPlan plan = PlanIn(scratch.path(), rules, seed + run);
    const std::vector<DiskEvent> log = Record(plan, scratch.path());
    if (run == 0) BOOST_TEST_MESSAGE(log.size() << " events in the first run");
    for (std::uint64_t i = 0; i < kCutsPerRun; ++i) {
      const std::size_t cut = draw.Below(log.size() + 1);
      PlayInPlace(log, cut, draw, scratch.path());
      BOOST_TEST_CONTEXT("run " << run << ", cut " << i << " after " << cut << " events") {
        auto store = NodeStore::Open(AfterReboot(scratch.path(), rules));
        if (!store) BOOST_FAIL(store.error().ToString());
        const OpeningReport& report = (*store)->recovery_report();
        BOOST_TEST(!report.set_aside);
        BOOST_TEST(!report.distrustful, report.distrust_reason);
        BOOST_TEST(report.findings.empty());
        BOOST_TEST(Must((*store)->Verify()).sound);
        WorkJudge judge(rules, kNow);
        BOOST_TEST(judge.Judge(plan, ProgressAt(log, cut), **store) == "");
        Must((*store)->Close());
      }
    }
  }
}

std::uint64_t Cuts() { return NumberFromEnv("WAYBILL_POWER_CUTS", 600); }

}  // namespace

BOOST_AUTO_TEST_CASE(under_closed_rules) { CutOften(Mode::kStrict, Cuts() / 2); }

BOOST_AUTO_TEST_CASE(under_kubelet_rules) { CutOften(Mode::kKubelet, Cuts() / 2); }

// The control: if the disk does not sync, this test sees the loss.
BOOST_AUTO_TEST_CASE(of_a_disk_that_does_not_sync_is_seen) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  const MemoryDir scratch;
  const WorkPlan plan = PlanIn(scratch.path(), Mode::kStrict, seed);
  std::vector<DiskEvent> log = Record(plan, scratch.path());
  for (DiskEvent& event : log) {
    if (event.kind == DiskEvent::Kind::kSynced) event.file = 0;
  }
  unsigned seen = 0;
  for (int i = 0; i < 40; ++i) {
    const std::size_t cut = draw.Below(log.size() + 1);
    PlayInPlace(log, cut, draw, scratch.path());
    auto store = NodeStore::Open(AfterReboot(scratch.path(), Mode::kStrict));
    WorkJudge judge(Mode::kStrict, kNow);
    if (!store || (*store)->recovery_report().distrustful ||
        !judge.Judge(plan, ProgressAt(log, cut), **store).empty()) {
      ++seen;
    }
  }
  BOOST_TEST_MESSAGE(seen << " of 40 losses seen");
  BOOST_TEST(seen > 10U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
