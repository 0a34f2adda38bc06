// What histories/remembered.jsonl does not reach: how much is remembered of images that are gone
// and of an operator's closings, and made-up times until which no pull ran.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(remembered)

namespace {

const std::string kTool = "r.example/tool:1";

ImageOnNode Named(std::string_view id, const std::string& tag) {
  return {.id = std::string(id), .repo_tags = {tag}};
}
std::string RefOf(std::size_t i) {
  const std::string number = std::to_string(100'000 + i);
  return "sha256:" + std::string(64 - number.size(), 'a') + number;
}
// On the node throughout.
const ImageOnNode kOther = Named(Digest('f'), "r.example/other:1");

}  // namespace

// A limit: "What is remembered of images that are gone"
BOOST_AUTO_TEST_CASE(the_oldest_go_first) {
  constexpr std::size_t kMore = 50;
  const TempDir scratch;
  FakeClock clock;
  OpenOptions options = OptionsIn(scratch.path());
  options.clock = clock.AsClock();
  options.boot_clock = clock.AsBootClock();
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  std::vector<ImageOnNode> images{kOther};
  for (std::size_t i = 0; i < kMaxRemembered + kMore; ++i) {
    images.push_back({.id = RefOf(i)});
  }
  const auto observe = [&](std::vector<ImageOnNode> list) {
    const ListToken token = Must(store->BeginList());
    Must(store->ObserveImages({.images = std::move(list), .token = token, .complete = true}));
  };
  observe(images);  // without a name: closed
  observe({images.begin(), images.end() - kMore});
  clock.AdvanceSeconds(60);
  observe({kOther});
  const auto records = Must(store->ListRecords());
  BOOST_TEST(records.size() == kMaxRemembered);
  for (const ImagePulledRecord& record : records) {
    BOOST_TEST_REQUIRE((record.absent_since == Timestamp{clock.Now().seconds, 0}));
  }
}

// A limit: "Operators can close 10,000 copies of images"
BOOST_AUTO_TEST_CASE(one_closing_too_many_is_refused) {
  const MemoryDir scratch;
  OpenOptions options = OptionsIn(scratch.path());
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  ImageList list{.token = Must(store->BeginList()), .complete = true};
  for (std::size_t i = 0; i <= kMaxClosings; ++i) {
    list.images.push_back(Named(RefOf(i), "r.example/" + std::to_string(i) + ":1"));
  }
  Must(store->ObserveImages(list));
  for (std::size_t i = 0; i < kMaxClosings; ++i) {
    BOOST_TEST_REQUIRE(Must(store->RemoveFromLedger({.image_ref = RefOf(i)}, "a tenant's")));
  }
  const std::string ref = RefOf(kMaxClosings);
  const ImageCopy last{.image_ref = ref};
  ExpectError(store->RemoveFromLedger(last, "a tenant's"), ErrorCode::kLimitExceeded);
  // An image that has a record needs no other row.
  Must(store->RecordImagePulled({.image = kTool, .image_ref = kRef}, NodeWide()));
  Must(store->AddToLedger({.id = std::string(kRef)}, "an operator", "once more"));
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a tenant's")));
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 1U);
  for (const std::string& back : {std::string(kRef), RefOf(0)}) {
    Must(store->AddToLedger({.id = back}, "an operator", "it comes no more"));
  }
  BOOST_TEST(Must(store->RemoveFromLedger(last, "a tenant's")));
}

// --- The runtime shows that pulls are over

BOOST_FIXTURE_TEST_CASE(quiet_of_another_boot_tells_nothing, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  BootTime quiet = store.clock().Boot();
  quiet.boot_id[0] = static_cast<std::uint8_t>(quiet.boot_id[0] + 1);
  ImageList list{.images = {kOther}, .token = Must(store->BeginList()), .complete = true};
  list.quiet_until = quiet;
  BOOST_TEST(Must(store->ObserveImages(list)).pulls_settled == 0U);
  // Nor one that is newer than the list.
  list.token = Must(store->BeginList());
  list.quiet_until = store.clock().Boot();
  list.quiet_until->nanoseconds += 1;
  BOOST_TEST(Must(store->ObserveImages(list)).pulls_settled == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
