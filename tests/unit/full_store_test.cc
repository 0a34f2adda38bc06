// A store whose map is full: what it refuses, and what makes room again.

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/fake_clock.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

namespace {

constexpr std::uint64_t kSmallMap = std::uint64_t{1} << 20U;

// Adds records until one is refused; how many there was room for.
std::size_t Fill(NodeStore& store, char tag) {
  for (std::size_t i = 0;; ++i) {
    const std::string image_ref = std::string(kMaxImageRefBytes - 10, tag) + std::to_string(i);
    const auto added = store.PutRecord({image_ref, {}, {}});
    if (added) continue;
    BOOST_TEST((added.error().code == ErrorCode::kStoreFull));
    return i;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(full_store)

BOOST_AUTO_TEST_CASE(pruning_makes_room_again) {
  const TempDir scratch;
  FakeClock clock;
  OpenOptions options{.directory = scratch / "store", .witness = Witness::None()};
  options.clock = clock.AsClock();
  options.map_bytes = kSmallMap;
  const auto store = Must(NodeStore::Open(options));
  const std::size_t room = Fill(*store, 'a');
  BOOST_TEST(room > 20U);

  const PruneReport pruned =
      Must(store->Prune({}, Must(store->BeginPrune()), {.allow_empty = true}));
  BOOST_TEST(pruned.removed == room);
  BOOST_TEST(Fill(*store, 'b') > room / 2);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
