// KEP-4216, what histories/handlers.jsonl can't say: a damaged copy, an observer, many keys, lists
// that are too long.

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(handler_changes)

namespace {

const std::vector<RuntimeHandler> kRuncAndKata = {{"runc", true, true}, {"kata", false, true}};

RuntimeHandler Handler(const std::string& name) { return {name, name == "runc", true}; }

// Every place of the file that holds `text`, also in pages that are no longer in use.
void DamageEach(const std::filesystem::path& path, const std::string& text) {
  const std::string content = ReadFile(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::size_t found = 0;
  for (auto at = content.find(text); at != std::string::npos; at = content.find(text, at + 1)) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put('!');
    ++found;
  }
  BOOST_TEST_REQUIRE(found > 0U);
}

}  // namespace

// Replacing one damaged record recounts the table. Another unreadable value may be another
// handler's copy.
BOOST_AUTO_TEST_CASE(a_damaged_copy_still_closes_its_ref_after_a_recount) {
  UnderBothRules([](ScratchStore& store) {
    Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
    Must(store->RecordImagePulled(
        {.image = kImage, .image_ref = "ref-of-kata", .runtime_handler = "kata"},
        WithSecret(kSecretA)));
    Must(store->RecordImagePulled({.image = kImage, .image_ref = "ref-of-runc"},
                                  WithSecret(kSecretA)));
    for (const char* ref : {"ref-of-kata", "ref-of-runc"}) {
      DamageEach(store.directory() / "data.mdb", ref);
      BOOST_TEST((store.Check(kImage, ref).reason == Reason::kRecordDamaged));
    }
    Must(store->RecordImagePulled({.image = kImage, .image_ref = "ref-of-runc"},
                                  WithSecret(kSecretA)));
    BOOST_TEST(!store.Check(kImage, "ref-of-runc", Pod(kSecretA)).pull);
    BOOST_TEST((store.Check(kImage, "ref-of-kata").reason == Reason::kRecordDamaged));
  });
}

BOOST_FIXTURE_TEST_CASE(an_observer_asks_by_handler_too, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef, .runtime_handler = "kata"},
                                WithSecret(kSecretA)));
  store.Stop();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  BOOST_TEST(!DecisionOf(*observer, {.image = kImage, .image_ref = kRef, .runtime_handler = "kata"},
                         Pod(kSecretA))
                  .pull);
  BOOST_TEST(DecisionOf(*observer, {.image = kImage, .image_ref = kRef}, Pod(kSecretA)).pull);
  BOOST_TEST(DecisionOf(*observer, {.image = kImage, .image_ref = kRef, .runtime_handler = "runsc"},
                        Pod(kSecretA))
                 .pull);
  BOOST_TEST(Must(observer->ListRuntimeHandlers()).size() == 2U);
}

BOOST_FIXTURE_TEST_CASE(lists_above_a_limit_change_nothing, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
  ExpectError(store->ReplaceRuntimeHandlers(
                  std::vector<RuntimeHandler>(kMaxRuntimeHandlers + 1, Handler("a"))),
              ErrorCode::kLimitExceeded);
  BOOST_TEST(Must(store->ListRuntimeHandlers()).size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
