// An owner and two observers, each of several threads, on one store: made for ThreadSanitizer, and
// true without it. WAYBILL_HAMMER_SECONDS: how long. WAYBILL_SEED: the same draws again.

#include <sched.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/in_threads.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(userns_hammer)

namespace {

constexpr std::size_t kLasting = 12;  // pods that are never released
constexpr std::size_t kPods = 64;     // the others come and go
constexpr std::size_t kBlocks = 48;   // fewer than pods: the pool fills up
constexpr std::size_t kHeldBlock = 20;
constexpr std::size_t kImages = 4;
constexpr std::size_t kOwnerThreads = 5;
constexpr std::size_t kObserverThreads = 3;
constexpr std::size_t kLeastSteps = 300;
// So many that even what is drawn once in 240 steps happens.
constexpr std::size_t kLeastOwnerSteps = 1500;

// By pod and block.
using Pairs = std::array<std::array<std::atomic<bool>, kBlocks + 1>, kPods>;

// Shared by the processes.
struct Board {
  std::atomic<bool> open{false};
  std::atomic<bool> over{false};
  Pairs given{};  // by the owner
  Pairs seen{};   // by anybody
  std::array<std::atomic<bool>, kLasting> acknowledged{};
  std::atomic<std::uint64_t> answers{0};   // to observers, about mappings
  std::atomic<std::uint64_t> refusals{0};  // of a full pool
  std::atomic<std::uint64_t> released{0};
  std::atomic<std::uint64_t> cleaned_up{0};
};

void Require(bool holds, const std::string& otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}

std::string Uid(std::size_t pod) { return "pod-" + std::to_string(pod); }
std::string Image(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }
std::string Ref(std::size_t i) { return "ref-" + std::to_string(i); }

bool MustBeThere(const Board& board, std::size_t pod) {
  return pod < kLasting && board.acknowledged[pod];
}

void Note(Pairs& pairs, std::size_t pod, std::uint64_t host_id, std::uint64_t length) {
  const std::uint64_t block = host_id / kIdsPerBlock;
  Require(length == kIdsPerBlock && host_id % kIdsPerBlock == 0 && block >= 1 && block <= kBlocks &&
              block != kHeldBlock,
          Uid(pod) + " has " + std::to_string(host_id) + "+" + std::to_string(length));
  pairs[pod][static_cast<std::size_t>(block)] = true;
}

void Note(Pairs& pairs, std::size_t pod, const UserNamespace& mapping) {
  Require(mapping.mode == NamespaceMode::kPod && mapping.uids.size() == 1 &&
              mapping.uids == mapping.gids && mapping.uids.front().container_id == 0,
          "not a mapping of a pod");
  Note(pairs, pod, mapping.uids.front().host_id, mapping.uids.front().length);
}

// --- Whoever has the store open

void LookUp(const NodeStore& store, Board& board, std::size_t pod) {
  const bool must_be_there = MustBeThere(board, pod);
  const auto found = store.GetUserNamespace(Uid(pod));
  if (!found) {
    Require(found.error().code == ErrorCode::kNotFound && !must_be_there, found.error().ToString());
    return;
  }
  Require(found->pod_uid == Uid(pod), "asked for " + Uid(pod) + ", told of " + found->pod_uid);
  Note(board.seen, pod, found->host_id, found->length);
  ++board.answers;
}

void List(const NodeStore& store, Board& board) {
  std::vector<std::size_t> missing;
  for (std::size_t pod = 0; pod < kLasting; ++pod) {
    if (MustBeThere(board, pod)) missing.push_back(pod);
  }
  std::uint64_t end = 0;
  for (const PodMapping& allocation : Must(store.ListUserNamespaces())) {
    Require(allocation.host_id >= end, "overlaps the one before: " + allocation.pod_uid);
    end = std::uint64_t{allocation.host_id} + allocation.length;
    Require(allocation.pod_uid.starts_with("pod-"), "a pod of nobody: " + allocation.pod_uid);
    const std::size_t pod = std::stoul(allocation.pod_uid.substr(4));
    Require(pod < kPods, "a pod of nobody: " + allocation.pod_uid);
    Note(board.seen, pod, allocation.host_id, allocation.length);
    std::erase(missing, pod);
    ++board.answers;
  }
  if (!missing.empty()) throw std::runtime_error("not in the list: " + Uid(missing.front()));
}

void ListHeld(const NodeStore& store) {
  const std::vector<QuarantinedPod> held = Must(store.ListHeldPods());
  Require(held.size() == 2, std::to_string(held.size()) + " pods are held");
  for (const QuarantinedPod& pod : held) {
    Require(pod.pod_uid.starts_with("held-") && pod.ranges.size() == 1 &&
                pod.ranges.front().first == kHeldBlock * kIdsPerBlock,
            "held: " + pod.pod_uid);
  }
}

void Count(const NodeStore& store) {
  const PoolUse counted = Must(store.GetUserNamespaceStatistics());
  Require(counted.ranges == kBlocks && counted.used + counted.free == counted.ranges &&
              counted.used == counted.allocations + 1 && counted.held_pods == 2 &&
              counted.largest_free_run <= counted.free && counted.refused_because.empty(),
          "statistics: " + std::to_string(counted.used) + " used, " + std::to_string(counted.free) +
              " free, " + std::to_string(counted.allocations) + " ID mappings, " +
              counted.refused_because);
}

void Decide(NodeStore& store, std::size_t image) {
  Pod owner(MakeSecret("ns", "pull", "uid", "hash"));
  Pod stranger(MakeSecret("evil", "pull", "uid-2", "guess"));
  Require(!store.MustAttemptPull({.image = Image(image), .image_ref = Ref(image)}, owner).pull,
          "closed to its owner");
  Require(store.MustAttemptPull({.image = Image(image), .image_ref = Ref(image)}, stranger).pull,
          "open to a stranger");
  Require(
      store.EnsureImage({.image = Image(image), .image_ref = Ref(image)}, PullPolicy::kNever, owner)
              .action == EnsureAction::kUsePresent,
      "not used where it is present");
}

// --- The owner

void GetOrCreate(NodeStore& store, Board& board, std::size_t pod) {
  const bool must_be_there = MustBeThere(board, pod);
  const auto got = store.GetOrCreateUserNamespace({.pod_uid = Uid(pod), .host_users = false});
  if (got) {
    Note(board.given, pod, *got);
    if (pod < kLasting) board.acknowledged[pod] = true;
    return;
  }
  Require(got.error().code == ErrorCode::kLimitExceeded && !must_be_there, got.error().ToString());
  ++board.refusals;
}

void Adopt(NodeStore& store, Board& board, std::size_t pod, std::size_t block) {
  const auto adopted = store.AdoptUserNamespace(Uid(pod), block * kIdsPerBlock, kIdsPerBlock);
  if (adopted) {
    Note(board.given, pod, block * kIdsPerBlock, kIdsPerBlock);
  } else {
    Require(adopted.error().code == ErrorCode::kConflict, adopted.error().ToString());
  }
}

// Half of the pods that come and go are not listed.
void CleanUp(NodeStore& store, Board& board, Draw& draw) {
  const ListToken token = Must(store.BeginList());
  std::vector<std::string> existing = {"held-0", "held-1"};
  std::vector<std::string> running;
  for (std::size_t pod = 0; pod < kPods; ++pod) {
    if (pod < kLasting || draw.OneIn(4)) existing.push_back(Uid(pod));
    if (pod >= kLasting && draw.OneIn(3)) running.push_back(Uid(pod));
  }
  const CleanUpReport report = Must(store.CleanUpUserNamespaces(existing, running, token));
  Require(report.examined == report.released + report.kept_in_lists + report.kept_newer,
          "a cleanup does not add up");
  board.cleaned_up += report.released;
}

void Pull(NodeStore& store, std::size_t image, std::size_t i) {
  Must(store.RecordPullIntent({.image = Image(image)}));
  if (i % 3 == 0) {
    Must(store.RecordImagePullFailed({.image = Image(image)}));
    return;
  }
  const std::string number = std::to_string(i % 40);
  Must(store.RecordImagePulled({.image = Image(image), .image_ref = Ref(image)},
                               WithSecret(MakeSecret("ns", "s" + number, "uid", "h" + number))));
}

// The last thread pulls; the others give and take.
void OwnerStep(NodeStore& store, Board& board, Draw& draw, std::size_t which, std::size_t i) {
  if (which == kOwnerThreads - 1) {
    Pull(store, draw.Below(kImages), i);
    return;
  }
  const std::size_t pod = draw.Below(kPods);
  const std::size_t passing = kLasting + draw.Below(kPods - kLasting);
  switch (draw.Below(24)) {
    case 0:  // seldom, or the pool would never fill up
      if (draw.OneIn(10)) CleanUp(store, board, draw);
      return;
    case 1:
      return Count(store);
    case 2:
      return List(store, board);
    case 3:
      return ListHeld(store);
    case 4:
      return Decide(store, draw.Below(kImages));
    case 5:
      return Adopt(store, board, passing, 1 + draw.Below(kBlocks));
    case 6:
    case 7:
      return LookUp(store, board, pod);
    case 8:
    case 9:
    case 10:
    case 11:
      if (Must(store.ReleaseUserNamespace(Uid(passing)))) ++board.released;
      return;
    default:
      return GetOrCreate(store, board, pod);
  }
}

std::size_t Own(NodeStore& store, Board& board, std::uint64_t seed) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(NumberFromEnv("WAYBILL_HAMMER_SECONDS", 8));
  return InThreads(kOwnerThreads, [&](std::size_t which) {
    Draw draw(seed * 100 + which);
    for (std::size_t i = 0; i < kLeastOwnerSteps || std::chrono::steady_clock::now() < end; ++i) {
      OwnerStep(store, board, draw, which, i);
    }
  });
}

// --- An observer

void ObserverStep(NodeStore& store, Board& board, Draw& draw) {
  const std::size_t pod = draw.Below(kPods);
  switch (draw.Below(12)) {
    case 0:
      return Count(store);
    case 1:
      return ListHeld(store);
    case 2:
    case 3:
      return List(store, board);
    case 4:
    case 5:
    case 6:
      return Decide(store, draw.Below(kImages));
    case 7:
    case 8: {
      const bool must_be_there = MustBeThere(board, pod);
      const auto got = store.GetOrCreateUserNamespace({.pod_uid = Uid(pod), .host_users = false});
      if (got) {
        Note(board.seen, pod, *got);
        ++board.answers;
      } else {
        Require(got.error().code == ErrorCode::kNotOwner && !must_be_there, got.error().ToString());
      }
      return;
    }
    case 9: {
      if (!draw.OneIn(20)) return;
      const auto verified = store.Verify();
      // Beside a busy owner it may give up.
      if (!verified) return Require(verified.error().code == ErrorCode::kIo, "not verified");
      Require(verified->sound, verified->findings.empty() ? "not sound" : verified->findings[0]);
      return;
    }
    default:
      return LookUp(store, board, pod);
  }
}

// Comes and goes beside the owner, at least once.
int Observe(const ObserveOptions& options, Board& board, std::uint64_t seed) {
  while (!board.open) sched_yield();
  std::uint64_t round = 0;
  do {
    auto store = NodeStore::Observe(options);
    if (!store) {
      std::fprintf(stderr, "observing: %s\n", store.error().ToString().c_str());
      return 1;
    }
    const std::size_t failed = InThreads(kObserverThreads, [&](std::size_t which) {
      Draw draw(seed * 100 + round * kObserverThreads + which);
      for (std::size_t i = 0; i < kLeastSteps; ++i) ObserverStep(**store, board, draw);
    });
    if (failed > 0) return 1;
    if (auto closed = (*store)->Close(); !closed) {
      std::fprintf(stderr, "closing: %s\n", closed.error().ToString().c_str());
      return 1;
    }
    ++round;
  } while (!board.over);
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(by_an_owner_and_two_observers) {
  const std::uint64_t seed = SeedOfThisRun();
  Shared<Board> shared;
  Board& board = *shared;
  UsernsStore store(SmallPool(1, kBlocks));
  store.WriteMapping("held-0", kHeldBlock);
  store.WriteMapping("held-1", kHeldBlock);
  ObserveOptions options{.directory = store.directory()};
  // Before there are threads.
  Child first([&] { return Observe(options, board, seed + 1); });
  Child second([&] { return Observe(options, board, seed + 2); });

  store.Open();
  for (std::size_t i = 0; i < kImages; ++i) {
    Must(store->RecordPullIntent({.image = Image(i)}));
    Must(store->RecordImagePulled({.image = Image(i), .image_ref = Ref(i)},
                                  WithSecret(MakeSecret("ns", "pull", "uid", "hash"))));
  }
  board.open = true;
  const std::size_t failed = Own(*store.operator->(), board, seed);
  board.over = true;
  BOOST_TEST(failed == 0U);
  // After a report, TSan ends the process with 66.
  BOOST_TEST(first.Wait() == 0);
  BOOST_TEST(second.Wait() == 0);

  BOOST_TEST(Must(store->Verify()).sound);
  const auto before = Must(store->ListUserNamespaces());
  BOOST_TEST(store.Reopen().held == 2U);
  BOOST_TEST((Must(store->ListUserNamespaces()) == before));
  List(*store.operator->(), board);
  BOOST_TEST(Must(store->Verify()).sound);

  std::size_t pairs = 0;
  for (std::size_t pod = 0; pod < kPods; ++pod) {
    std::size_t blocks = 0;
    for (std::size_t block = 0; block <= kBlocks; ++block) {
      blocks += board.given[pod][block] ? 1U : 0U;
      if (board.seen[pod][block] && !board.given[pod][block]) {
        BOOST_ERROR(Uid(pod) << " was seen with block " << block << ", which it never had");
      }
    }
    if (pod < kLasting) BOOST_TEST(blocks <= 1U);
    pairs += blocks;
  }
  BOOST_TEST_MESSAGE(board.answers << " answers about ID mappings to observers and owner, " << pairs
                                   << " pairs of pod and block, " << board.released << " released, "
                                   << board.cleaned_up << " cleaned up, " << board.refusals
                                   << " refused by a full pool");
  BOOST_TEST(board.answers > 0U);
  BOOST_TEST(board.released > 0U);
  BOOST_TEST(board.cleaned_up > 0U);
  BOOST_TEST(board.refusals > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
