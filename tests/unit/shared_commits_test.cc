// Changes that share a commit: a refused one fails alone, whether or not it had written.

#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "store/engine/database/committer.h"
#include "store/engine/recovery/open_store.h"
#include "store/node/pulls/in_flight.h"
#include "store/node/pulls/recording.h"
#include "store/node/records/typed_tables.h"
#include "store/node/upkeep/node_product.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(shared_commits)

namespace {

// A committer alone on a store's files.
struct Alone {
  explicit Alone(const OpenOptions& options,
                 std::function<Result<void>(internal::StoreTxn&)> before_commit = {})
      : owned(Must(internal::OpenAsOwner(options, internal::OnDamage::kRefuse,
                                         {&internal::NodeProduct()}, report))),
        committer(*owned.database.env, owned.database.handles, owned.database.identity, owned.state,
                  {.clock = options.clock,
                   .undo = &in_flight,
                   .before_commit = std::move(before_commit)}) {}
  void Settle() {
    owned.witness->Advance(committer.state().commit_sequence);
    Must(owned.witness->Sync());
  }

  Result<void> StoreIntent(internal::StoreTxn& txn, const std::string& image) {
    auto stored = internal::StoreIntent(txn, image, "", Rules::kClosed, BootTime());
    return stored ? Result<void>() : stored.error();
  }

  RecoveryReport report;
  internal::OwnedStore owned;
  internal::InFlight in_flight;
  internal::Committer committer;
};

bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(") ");
  return name_ends != std::string::npos && text[name_ends + 2] == 'S';
}

}  // namespace

// Also if that commit fails: then each is committed alone.
BOOST_AUTO_TEST_CASE(who_comes_while_a_change_runs_joins_its_commit) {
  for (const bool fails : {false, true}) {
    ScratchStore store(Rules::kClosed);
    const OpenOptions options = store.Options({});
    store.Stop();
    {
      bool failed = !fails;
      Alone alone(options, [&](internal::StoreTxn&) -> Result<void> {
        if (std::exchange(failed, true)) return {};
        return Error{ErrorCode::kIo, "a test", ""};
      });
      const std::uint64_t before = alone.committer.state().commit_sequence;
      std::atomic<pid_t> late{0};
      std::thread other;
      Must(alone.committer.Run([&](internal::StoreTxn& txn) {
        if (!other.joinable()) {
          other = std::thread([&] {
            late = gettid();
            Must(alone.committer.Run(
                [&](internal::StoreTxn& its) { return alone.StoreIntent(its, "late"); }));
          });
          while (late == 0 || !Sleeps(late)) std::this_thread::yield();
        }
        return alone.StoreIntent(txn, "early");
      }));
      other.join();
      BOOST_TEST(alone.committer.state().commit_sequence == before + (fails ? 2 : 1));
      alone.Settle();
    }
    store.Start();
    BOOST_TEST(Must(store->ListIntents()).size() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_change_that_is_refused_fails_alone) {
  constexpr int kCallers = 24;
  constexpr int kRounds = 20;
  enum : int { kBeforeWriting, kAfterWriting, kSucceeds, kKinds };
  ScratchStore store(Rules::kClosed);
  const OpenOptions options = store.Options({});
  store.Stop();
  {
    Alone alone(options);
    internal::Committer& committer = alone.committer;
    internal::InFlight& in_flight = alone.in_flight;
    std::atomic<int> wrong{0};
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<int> here{0};
      const auto caller = [&](int number) {
        const int kind = number % kKinds;
        const std::string image = std::to_string(round) + "-" + std::to_string(number);
        ++here;
        const auto written = committer.Run([&](internal::StoreTxn& txn) -> Result<void> {
          // The others arrive meanwhile, and share the next batch.
          while (here < kCallers) std::this_thread::yield();
          in_flight.Set(image, "", {1});
          if (kind == kBeforeWriting) return Error{ErrorCode::kConflict, image, ""};
          if (auto stored = alone.StoreIntent(txn, image); !stored) return stored;
          if (kind == kAfterWriting) return Error{ErrorCode::kNotFound, image, ""};
          return {};
        });
        if (kind == kSucceeds) {
          if (!written) ++wrong;
        } else if (written || written.error().message != image) {
          ++wrong;
        }
      };
      std::vector<std::thread> callers;
      for (int number = 0; number < kCallers; ++number) callers.emplace_back(caller, number);
      for (std::thread& thread : callers) thread.join();
    }
    BOOST_TEST(wrong == 0);
    BOOST_TEST(in_flight.size() == std::size_t{kCallers / kKinds * kRounds});
    alone.Settle();
  }
  store.Start();
  BOOST_TEST(!store->recovery_report().set_aside);
  BOOST_TEST(Must(store->ListIntents()).size() == std::size_t{kCallers / kKinds * kRounds});
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
