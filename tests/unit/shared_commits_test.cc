// Changes that share a commit: a refused one fails alone, whether or not it had written.

#include <atomic>
#include <boost/test/unit_test.hpp>
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

BOOST_AUTO_TEST_CASE(a_change_that_is_refused_fails_alone) {
  constexpr int kCallers = 24;
  constexpr int kRounds = 20;
  enum : int { kBeforeWriting, kAfterWriting, kSucceeds, kKinds };
  ScratchStore store(Rules::kClosed);
  const OpenOptions options = store.Options({});
  store.Stop();
  {
    RecoveryReport report;
    auto owned = Must(internal::OpenAsOwner(options, internal::OnDamage::kRefuse,
                                            {&internal::NodeProduct()}, report));
    internal::InFlight in_flight;
    internal::Committer::Hooks hooks;
    hooks.clock = options.clock;
    hooks.undo = &in_flight;
    internal::Committer committer(*owned.database.env, owned.database.handles,
                                  owned.database.identity, owned.state, hooks);
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
          auto stored = internal::StoreIntent(txn, image, "", Rules::kClosed, BootTime());
          if (!stored) return stored.error();
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
    owned.witness->Advance(committer.state().commit_sequence);
    Must(owned.witness->Sync());
  }
  store.Start();
  BOOST_TEST(!store->recovery_report().set_aside);
  BOOST_TEST(Must(store->ListIntents()).size() == std::size_t{kCallers / kKinds * kRounds});
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
