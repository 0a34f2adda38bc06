// The owner is killed while several threads write, open or close: what it acknowledged is there,
// and the next owner finds nothing wrong. WAYBILL_KILLS: how often. WAYBILL_SEED: one run again.

#include <sched.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/crash/work_judge.h"
#include "tests/crash/workload.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

constexpr Timestamp kNow{kFakeEpoch, 0};
constexpr std::uint64_t kMaxCalls = 400;
constexpr std::uint64_t kSessions = 100;
constexpr std::size_t kMaxOperations = 20;

struct Acknowledged {
  std::array<std::atomic<std::uint64_t>, kWorkers> started{};
  std::array<std::atomic<std::uint64_t>, kWorkers> done{};
  // By operation.
  std::array<std::array<std::atomic<std::uint32_t>, kSessions * kMaxOperations>, kWorkers>
      host_ids{};
};

OpenOptions OptionsIn(const MemoryDir& scratch, Rules rules) {
  OpenOptions options{.directory = scratch / "store", .witness = Witness::At(scratch / "witness")};
  options.rules = rules;
  options.clock = [] { return kNow; };
  options.map_bytes = std::uint64_t{64} << 20U;
  MakeRoomForWorkers(options);
  return options;
}

// An observer that lives in a process of its own until it is destroyed. It keeps lock.mdb alive
// across the owner's death.
class LiveObserver {
 public:
  explicit LiveObserver(const OpenOptions& options)
      : child_([&] {
          auto store = NodeStore::Observe({.directory = options.directory, .rules = options.rules});
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
void RequireSound(const NodeStore& store, bool just_made, const std::string& context) {
  const RecoveryReport& report = store.recovery_report();
  BOOST_TEST_CONTEXT(context) {
    BOOST_TEST(!report.set_aside);
    BOOST_TEST(!report.distrustful, report.distrust_reason);
    BOOST_TEST((just_made || !report.witness_made));
    BOOST_TEST(report.findings.empty());
    BOOST_TEST(report.user_namespaces.repaired_blocks == 0U);
    BOOST_TEST(report.user_namespaces.held_pods == 0U);
    const VerifyReport verified = Must(store.Verify());
    BOOST_REQUIRE(verified.sound);
  }
}

void KillOften(Rules rules, std::uint64_t kills) {
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST_MESSAGE("seed " << seed);
  Draw draw(seed);
  const MemoryDir scratch;
  WorkJudge judge(rules, kNow);
  std::uint64_t acknowledged = 0;
  std::uint64_t in_flight = 0;
  for (std::uint64_t life = 0; life < kills; ++life) {
    Shared<Acknowledged> told;
    WorkPlan plan{.options = OptionsIn(scratch, rules)};
    plan.seed = seed + life;
    plan.sessions = kSessions;
    plan.operations = 1 + draw.Below(kMaxOperations);
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
    const std::string context = "WAYBILL_SEED=" + std::to_string(seed) + ", life " +
                                std::to_string(life) + ", killed before call " +
                                std::to_string(calls);
    auto store = NodeStore::Open(plan.options);
    if (!store) BOOST_FAIL(context << ": " << store.error().ToString());
    RequireSound(**store, life == 0, context);
    const std::string difference = judge.Judge(plan, progress, **store);
    if (!difference.empty()) BOOST_FAIL(context << ": " << difference);
    Must((*store)->Close());
  }
  BOOST_TEST_MESSAGE(kills << " kills, " << acknowledged << " operations acknowledged, "
                           << in_flight << " in flight");
  BOOST_TEST(acknowledged > 0U);
}

std::uint64_t Kills() { return NumberFromEnv("WAYBILL_KILLS", 240); }

}  // namespace

BOOST_AUTO_TEST_SUITE(kill)

BOOST_AUTO_TEST_CASE(of_an_owner_under_closed_rules) { KillOften(Rules::kClosed, Kills() / 2); }

BOOST_AUTO_TEST_CASE(of_an_owner_under_kubelet_rules) { KillOften(Rules::kKubelet, Kills() / 2); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
