// The owner is killed while several threads write, open or close: what it acknowledged is there,
// and the next owner finds nothing wrong. WAYBILL_KILLS: how often.

#include <sched.h>
#include <unistd.h>

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
#include "tests/support/userns_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kill)

namespace {

constexpr Timestamp kNow{kFakeEpoch, 0};
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

// A store that was just made may not have its witness yet.
void RequireSound(NodeStore& store, bool just_made, const std::string& context) {
  const OpeningReport& report = store.recovery_report();
  BOOST_TEST_CONTEXT(context) {
    BOOST_TEST(!report.set_aside);
    BOOST_TEST(!report.distrustful, report.distrust_reason);
    BOOST_TEST((just_made || !report.witness_made));
    BOOST_TEST(report.findings.empty());
    BOOST_TEST(report.user_namespaces.held_pods == 0U);
    const VerifyReport verified = Must(store.Verify());
    BOOST_REQUIRE(verified.sound);
  }
}

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
    RequireSound(**store, life == 0, context);
    const std::string difference = judge.Judge(plan, progress, **store);
    if (!difference.empty()) BOOST_FAIL(context << ": " << difference);
    for (std::size_t i = 0; i < (doing == Doing::kMappings ? kFiles : 0); ++i) {
      const std::string uid = PodOfFile(life, i);
      BOOST_TEST(Must((*store)->GetUserNamespace(uid)).host_id == (100 + i) * kIdsPerBlock,
                 context);
      Must((*store)->ReleaseUserNamespace(uid));
    }
    Must((*store)->Close());
    std::filesystem::remove_all(scratch.pods());
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

}  // namespace waybill::testing
