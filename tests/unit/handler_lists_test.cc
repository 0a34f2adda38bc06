// Images that a runtime lists for a handler, where one ref has copies for several (KEP-4216):
// replay and garbage collection.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(handler_lists)

namespace {

const RuntimeHandler kRunc{"runc", true, true};
const RuntimeHandler kKata{"kata", false, true};
const RuntimeHandler kOther{"other", false, true};

}  // namespace

// The default handler's own name is a name: an image that is listed under it is not what a pull for
// another handler brings.
BOOST_AUTO_TEST_CASE(an_image_listed_for_the_default_handler_ends_no_other_one_s_pull) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers({kRunc, kKata}));
    Must(store->RecordPullIntent({.image = kImage, .runtime_handler = "kata"}));
    const ImageOnNode image{std::string(kRef), {std::string(kImage)}, {}, "runc"};
    store.Restart({image});
    BOOST_TEST(store->recovery_report().intents_replayed == 0U);
    BOOST_TEST(Must(store->HasIntent({.image = kImage, .runtime_handler = "kata"})));
    BOOST_TEST(Must(store->ListRecords()).empty());
  });
}

// Which one stays must not depend on the keys of this store.
BOOST_AUTO_TEST_CASE(of_copies_that_are_gone_the_record_written_last_speaks_for_the_ref) {
  for (int i = 0; i < 8; ++i) {
    for (const std::string_view last : {"", "kata"}) {
      ScratchStore store(Rules::kClosed);
      Must(store->ReplaceRuntimeHandlers({kRunc, kKata, kOther}));
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef, .runtime_handler = "kata"},
                                    WithSecret(kSecretA)));
      Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef, .runtime_handler = last},
                                    WithSecret(kSecretB)));
      const PruneToken token = Must(store->BeginPrune());
      Must(store->Prune({{std::string(kRef), "other"}}, token));
      const auto records = Must(store->ListRecords());
      BOOST_TEST_REQUIRE(records.size() == 1U);
      BOOST_TEST(records[0].runtime_handler == last);
      BOOST_TEST(records[0].credential_mapping.empty());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
