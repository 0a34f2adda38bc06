// While several threads write, open or close, the owner is killed, or the power fails, so that what
// was written but not synced may be there or not: what was acknowledged is there, and the next
// owner finds nothing wrong. WAYBILL_KILLS, WAYBILL_POWER_CUTS: how often.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/crash/work_judge.h"
#include "tests/crash/workload.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;

constexpr Timestamp kNow{kFakeEpoch, 0};

// `may_lack_a_witness`: one that was just made may not have it yet.
void RequireSound(NodeStore& store, bool may_lack_a_witness) {
  const OpeningReport& report = store.recovery_report();
  BOOST_TEST(!report.set_aside);
  BOOST_TEST(!report.distrustful, report.distrust_reason);
  BOOST_TEST((may_lack_a_witness || !report.witness_made));
  BOOST_TEST(report.findings.empty());
  BOOST_TEST(report.user_namespaces.held_pods == 0U);
  BOOST_REQUIRE(Must(store.Verify()).sound);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kill)

namespace {

constexpr std::uint64_t kMaxCalls = 400;
constexpr std::uint64_t kSessions = 100;
constexpr std::size_t kMaxOperations = 20;
constexpr std::size_t kFiles = 4;  // of pods that a kubelet left, if mappings are all that is done

struct Acknowledged {
  std::array<std::atomic<std::uint64_t>, kWorkers> started{};
  std::array<std::atomic<std::uint64_t>, kWorkers> done{};
  // By operation.
  std::array<std::array<std::atomic<std::uint32_t>, kSessions * kMaxOperations>, kWorkers>
      host_ids{};
};

// An observer in a process of its own. It keeps lock.mdb in use when the owner dies.
class LiveObserver {
 public:
  explicit LiveObserver(const NodeStoreOptions& options)
      : child_([&] {
          auto store = NodeStore::Observe({.directory = options.directory});
          ready_->store(store ? 1 : 2);
          while (store) pause();
          return 0;
        }) {
    while (ready_->load() == 0) sched_yield();
    BOOST_TEST(ready_->load() == 1);
  }

 private:
  Shared<std::atomic<int>> ready_;
  Child child_;
};

std::string PodOfFile(std::uint64_t life, std::size_t i) {
  return "f" + std::to_string(life) + "-" + std::to_string(i);
}

void KillOften(Mode rules, std::uint64_t kills, Doing doing = Doing::kAnything) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  UsernsStore scratch(SmallPool(1, 12));
  WorkJudge judge(rules, kNow, doing == Doing::kMappings);
  std::uint64_t acknowledged = 0;
  std::uint64_t in_flight = 0;
  for (std::uint64_t life = 0; life < kills; ++life) {
    if (doing == Doing::kMappings) {
      // Too small for all pods; the files' ranges are outside it.
      if (draw.OneIn(2)) scratch.SetPool(SmallPool(2 + 2 * draw.Below(8), 12, 1 + draw.Below(2)));
      for (std::size_t i = 0; i < kFiles; ++i) scratch.WriteMapping(PodOfFile(life, i), 100 + i);
    }
    Shared<Acknowledged> told;
    WorkPlan plan{.options = scratch.Options()};
    plan.options.rules = rules;
    plan.options.evidence = kEvidenceOfWorkers;
    if (doing == Doing::kAnything) MakeRoomForWorkers(plan.options);
    plan.seed = seed + life;
    plan.sessions = kSessions;
    plan.operations = 1 + draw.Below(kMaxOperations);
    plan.doing = doing;
    plan.started = [&](std::size_t worker, std::uint64_t i) { told->started[worker] = i + 1; };
    plan.done = [&](std::size_t worker, std::uint64_t i, std::uint32_t host_id) {
      told->host_ids[worker][i] = host_id;
      told->done[worker] = i + 1;
    };
    const std::uint64_t calls = 1 + draw.Below(kMaxCalls);
    std::optional<LiveObserver> observer;
    if (life > 0 && draw.OneIn(3)) observer.emplace(plan.options);
    Child child([&] {
      KillBeforeCall(calls);
      return Work(plan) ? 0 : 3;
    });
    BOOST_REQUIRE(child.Wait() == -SIGKILL);

    std::vector<WorkJudge::Progress> progress;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      const std::size_t done = told->done[i];
      const auto host_ids = told->host_ids[i].begin();
      progress.push_back({told->started[i], done, {host_ids, host_ids + done}});
      acknowledged += progress[i].acknowledged;
      in_flight += progress[i].started - progress[i].acknowledged;
    }
    const std::string context =
        "life " + std::to_string(life) + ", killed before call " + std::to_string(calls);
    auto store = NodeStore::Open(plan.options);
    if (!store) BOOST_FAIL(context << ": " << store.error().ToString());
    BOOST_TEST_CONTEXT(context) { RequireSound(**store, life == 0); }
    const std::string difference = judge.Judge(plan, progress, **store);
    if (!difference.empty()) BOOST_FAIL(context << ": " << difference);
    for (std::size_t i = 0; i < (doing == Doing::kMappings ? kFiles : 0); ++i) {
      const std::string uid = PodOfFile(life, i);
      BOOST_TEST(Must((*store)->GetUserNamespace(uid)).host_id == (100 + i) * kIdsPerBlock,
                 context);
      Must((*store)->ReleaseUserNamespace(uid));
    }
    Must((*store)->Close());
    fs::remove_all(scratch.pods());
  }
  BOOST_TEST_MESSAGE(kills << " kills, " << acknowledged << " operations acknowledged, "
                           << in_flight << " in flight");
  BOOST_TEST(acknowledged > 0U);
}

std::uint64_t Kills() { return NumberFromEnv("WAYBILL_KILLS", 240); }

}  // namespace

BOOST_AUTO_TEST_CASE(of_an_owner_under_closed_rules) { KillOften(Mode::kStrict, Kills() / 2); }

BOOST_AUTO_TEST_CASE(of_an_owner_under_kubelet_rules) { KillOften(Mode::kKubelet, Kills() / 2); }
// Several threads take, release and clean up ID mappings of pools that change and are too small,
// and openings take files over.
BOOST_AUTO_TEST_CASE(of_an_owner_that_hands_out_ranges) {
  KillOften(Mode::kStrict, Kills(), Doing::kMappings);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(power_cut)

namespace {

NodeStoreOptions OptionsFor(const fs::path& directory, Mode rules) {
  NodeStoreOptions options = OptionsIn(directory, rules);
  options.witness = Witness::At(directory / "kubelet" / "waybill");
  MakeRoomForWorkers(options);
  options.evidence = kEvidenceOfWorkers;
  return options;
}

NodeStoreOptions AfterReboot(const fs::path& directory, Mode rules) {
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

// `without_a_witness`: it is made so, and gets its first one at the next opening.
std::vector<DiskEvent> Record(const WorkPlan& plan, const fs::path& root,
                              bool without_a_witness = false) {
  Recorder recorder(root);
  if (without_a_witness) {
    NodeStoreOptions without = plan.options;
    without.witness = Witness::None();
    Must(Must(NodeStore::Open(without))->Close());
  }
  BOOST_REQUIRE(Work(plan));
  std::vector<DiskEvent> log = recorder.Take();
  // The undisturbed result must not help any of the cuts.
  fs::remove_all(root / "store");
  fs::remove_all(root / "kubelet");
  return log;
}

// What the power cut left, under the paths that it was recorded under: the store remembers its
// witness.
void PlayInPlace(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                 const fs::path& root) {
  const MemoryDir after;
  PlayPowerCut(log, cut, draw, after.path());
  for (const char* name : {"store", "kubelet"}) {
    fs::remove_all(root / name);
    if (!fs::exists(after / name)) continue;
    fs::rename(after / name, root / name);
  }
}

WorkPlan PlanIn(const fs::path& root, Mode rules, std::uint64_t seed) {
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
    const std::vector<DiskEvent> log = Record(plan, scratch.path(), run % 2 == 1);
    const auto is_mark = [](const DiskEvent& event) {
      return event.kind == DiskEvent::Kind::kMark;
    };
    const auto opened = std::find_if(log.begin(), log.end(), is_mark) - log.begin();
    BOOST_TEST_MESSAGE(log.size() << " events, " << opened << " until it was open");
    for (std::uint64_t i = 0; i < kCutsPerRun; ++i) {
      // Often while it is made with its first witness, or gets one.
      const std::size_t events = draw.OneIn(3) ? static_cast<std::size_t>(opened) : log.size();
      const std::size_t cut = draw.Below(events + 1);
      PlayInPlace(log, cut, draw, scratch.path());
      BOOST_TEST_CONTEXT("run " << run << ", cut " << i << " after " << cut << " events") {
        auto store = NodeStore::Open(AfterReboot(scratch.path(), rules));
        if (!store) BOOST_FAIL(store.error().ToString());
        RequireSound(**store, true);
        WorkJudge judge(rules, kNow);
        BOOST_TEST(judge.Judge(plan, ProgressAt(log, cut), **store) == "");
        Must((*store)->Close());
        store->reset();
        store = NodeStore::Open(AfterReboot(scratch.path(), rules));
        BOOST_REQUIRE(store);
        BOOST_TEST(!(*store)->recovery_report().distrustful);
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
