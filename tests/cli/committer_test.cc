// The queue of writers, when something goes wrong around it.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(committer)

// Out of memory between the begin of a transaction and its commit, as far as a test can have it:
// the clock is asked there.
BOOST_AUTO_TEST_CASE(an_exception_fails_the_write_and_holds_up_nobody) {
  ScratchStore store(Rules::kClosed);
  Must(store->PutIntent("registry.example/before"));
  OpenOptions options = store.Options({});
  store.Stop();
  const auto throws = std::make_shared<bool>(false);
  options.clock = [throws, clock = std::move(options.clock)] {
    if (*throws) throw std::bad_alloc();
    return clock();
  };
  const auto opened = Must(NodeStore::Open(options));
  *throws = true;
  const auto failed = opened->PutIntent("registry.example/during");
  BOOST_REQUIRE(!failed);
  BOOST_TEST((failed.error().code == ErrorCode::kOutcomeUnknown));
  *throws = false;
  // Nobody knows how far it came: as after a commit that failed half way.
  BOOST_TEST(
      (opened->PutIntent("registry.example/after").error().code == ErrorCode::kOutcomeUnknown));
  Pod pod;
  BOOST_TEST(opened->MustAttemptPull("registry.example/preloaded", "sha256:ref", pod).pull);
  Must(opened->Close());
  store.Start();
  BOOST_TEST(Must(store->HasIntent("registry.example/before")));
  Must(store->PutIntent("registry.example/after"));
}

// owner.lock was removed under a live owner: a second one is not let in, and the first writes no
// more.
BOOST_AUTO_TEST_CASE(a_second_writer_is_refused_where_owner_lock_was_removed) {
  ScratchStore store(Rules::kClosed);
  std::filesystem::remove(store.directory() / "owner.lock");
  const std::string command = std::string(WAYBILL_CLI) + " intent --store '" +
                              store.directory().string() +
                              "' --image registry.example/other:1 > /dev/null 2>&1";
  BOOST_TEST(std::system(command.c_str()) != 0);
  const auto first = store->PutIntent("registry.example/mine:1");
  BOOST_REQUIRE(!first);
  BOOST_TEST((first.error().code == ErrorCode::kOwned));
  store.Stop();
  BOOST_TEST(std::system(command.c_str()) == 0);
  store.Start();
  BOOST_TEST(!store->recovery_report().distrustful);
  BOOST_TEST(Must(store->HasIntent("registry.example/other:1")));
  BOOST_TEST(!Must(store->HasIntent("registry.example/mine:1")));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
