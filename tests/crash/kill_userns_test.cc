// The owner is killed while several threads take, release and clean up ID mappings, open, take over
// files or close: what it acknowledged is there, the same, and no two pods share host IDs.
// WAYBILL_KILLS: how often. WAYBILL_SEED: one run again.

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kWorkers = 3;
constexpr std::size_t kPods = 6;  // of each worker
constexpr std::size_t kFiles = 4;
constexpr std::uint64_t kMaxCalls = 300;
constexpr int kSessions = 100;

std::string PodUid(std::size_t worker, std::size_t pod) {
  return "w" + std::to_string(worker) + "-" + std::to_string(pod);
}

struct PodState {
  std::atomic<std::uint64_t> host_id{0};  // as acknowledged; 0: none
  std::atomic<bool> may_come{false};      // a call was under way
  std::atomic<bool> may_go{false};
};
struct Told {
  std::array<std::array<PodState, kPods>, kWorkers> pods;
};

class Worker {
 public:
  Worker(std::size_t which, std::uint64_t seed, Told& told)
      : which_(which), draw_(seed), pods_(told.pods[which]) {}

  // False where a call failed that must not.
  bool Work(NodeStore& store, std::size_t calls) {
    const auto token = store.BeginPrune();
    if (!token) return false;
    for (std::size_t i = 0; i < calls; ++i) {
      const std::size_t pod = draw_.Below(kPods);
      const bool well = draw_.OneIn(12)  ? CleanUp(store, *token)
                        : draw_.OneIn(3) ? Release(store, pod)
                                         : Get(store, pod);
      if (!well) return false;
    }
    return true;
  }

 private:
  bool Get(NodeStore& store, std::size_t which) {
    PodState& pod = pods_[which];
    pod.may_come = true;
    const auto got =
        store.GetOrCreateUserNamespace({.pod_uid = PodUid(which_, which), .host_users = false});
    if (got) {
      const std::uint64_t host_id = got->uids.front().host_id;
      if (pod.host_id != 0 && pod.host_id != host_id) return false;
      pod.host_id = host_id;
    } else if (got.error().code != ErrorCode::kLimitExceeded || pod.host_id != 0) {
      return false;
    }
    pod.may_come = false;
    return true;
  }

  bool Release(NodeStore& store, std::size_t which) {
    PodState& pod = pods_[which];
    pod.may_go = true;
    const auto released = store.ReleaseUserNamespace(PodUid(which_, which));
    if (!released || *released != (pod.host_id != 0)) return false;
    pod.host_id = 0;
    pod.may_go = false;
    return true;
  }

  // Of its own pods alone.
  bool CleanUp(NodeStore& store, PruneToken token) {
    std::vector<std::string> existing;
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      for (std::size_t pod = 0; pod < kPods; ++pod) {
        if (worker != which_ || draw_.OneIn(2)) {
          existing.push_back(PodUid(worker, pod));
        } else {
          pods_[pod].may_go = true;
        }
      }
    }
    const auto report = store.CleanUpUserNamespaces(existing, {}, token, {.allow_empty = true});
    if (!report) return false;
    for (std::size_t pod = 0; pod < kPods; ++pod) {
      const auto& gone = report->released_pods;
      if (std::find(gone.begin(), gone.end(), PodUid(which_, pod)) != gone.end()) {
        pods_[pod].host_id = 0;
      }
      pods_[pod].may_go = false;
    }
    return true;
  }

  std::size_t which_;
  Draw draw_;
  std::array<PodState, kPods>& pods_;
};

int WorkUntilKilled(const OpenOptions& options, std::uint64_t seed, std::size_t calls, Told& told) {
  std::vector<Worker> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) workers.emplace_back(i, seed * kWorkers + i, told);
  for (int session = 0; session < kSessions; ++session) {
    auto store = NodeStore::Open(options);
    if (!store) return 3;
    std::atomic<bool> well{true};
    std::vector<std::thread> threads;
    for (Worker& worker : workers) {
      threads.emplace_back([&] {
        if (!worker.Work(**store, calls)) well = false;
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (!well || !(*store)->Close()) return 4;
  }
  return 0;
}

// Compares, and takes over what became of the calls that were under way.
void Judge(NodeStore& store, Told& told) {
  std::map<std::string, std::uint64_t> found;
  std::uint64_t end = kIdsPerBlock;
  for (const UserNamespaceAllocation& one : Must(store.ListUserNamespaces())) {
    BOOST_REQUIRE_MESSAGE(one.host_id >= end, one.pod_uid << " shares host IDs");
    end = std::uint64_t{one.host_id} + one.length;
    BOOST_REQUIRE(end < kHostIds);
    found[one.pod_uid] = one.host_id;
  }
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    for (std::size_t which = 0; which < kPods; ++which) {
      PodState& pod = told.pods[worker][which];
      const std::string uid = PodUid(worker, which);
      const std::uint64_t has = found.contains(uid) ? found[uid] : 0;
      const bool came = pod.may_come && pod.host_id == 0;
      const bool went = pod.may_go && has == 0;
      BOOST_REQUIRE_MESSAGE(has == pod.host_id || came || went,
                            uid << " has " << has << " instead of " << pod.host_id);
      pod.host_id = has;
      pod.may_come = false;
      pod.may_go = false;
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kill_userns)

BOOST_AUTO_TEST_CASE(of_an_owner_that_hands_out_ranges) {
  const std::uint64_t seed = SeedOfThisRun();
  const std::uint64_t kills = NumberFromEnv("WAYBILL_KILLS", 240) / 2;
  BOOST_TEST_MESSAGE("seed " << seed);
  Draw draw(seed);
  UsernsStore store(SmallPool(1, 12));
  Shared<Told> told;
  std::uint64_t mappings = 0;
  for (std::uint64_t life = 0; life < kills; ++life) {
    BOOST_TEST_CONTEXT("WAYBILL_SEED=" << seed << ", life " << life) {
      // Too small for all pods; the files lie behind it.
      if (draw.OneIn(2)) store.SetPool(SmallPool(2 + 2 * draw.Below(8), 12, 1 + draw.Below(2)));
      for (std::size_t i = 0; i < kFiles; ++i) {
        store.WriteMapping("f" + std::to_string(life) + "-" + std::to_string(i), 100 + i);
      }
      const OpenOptions options = store.Options();
      const std::size_t calls = 1 + draw.Below(30);
      const std::uint64_t last_call = 1 + draw.Below(kMaxCalls);
      Child child([&] {
        KillBeforeCall(last_call);
        return WorkUntilKilled(options, seed + life, calls, *told);
      });
      BOOST_REQUIRE(child.Wait() == -SIGKILL);

      store.Open();
      BOOST_TEST(!store->recovery_report().set_aside);
      BOOST_TEST(!store->recovery_report().distrustful);
      BOOST_TEST(store.report().repaired_blocks == 0U);
      BOOST_TEST(store.report().held_pods == 0U);
      Judge(*store.operator->(), *told);
      mappings += Must(store->ListUserNamespaces()).size();
      for (std::size_t i = 0; i < kFiles; ++i) {
        const std::string uid = "f" + std::to_string(life) + "-" + std::to_string(i);
        BOOST_TEST(Must(store->GetUserNamespace(uid)).host_id == (100 + i) * kIdsPerBlock);
        Must(store->ReleaseUserNamespace(uid));
      }
      BOOST_TEST(Must(store->Verify()).sound);
      store.Close();
      std::filesystem::remove_all(store.pods());
    }
  }
  BOOST_TEST_MESSAGE(kills << " kills, " << mappings << " mappings after them");
  BOOST_TEST(mappings > kFiles * kills);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
