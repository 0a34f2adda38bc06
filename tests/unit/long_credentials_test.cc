// A pod may bring longer credentials than the store keeps. They are compared like any others; what
// can't be kept is not written back, and is nobody's error.

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/rows.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(long_credentials)

BOOST_AUTO_TEST_CASE(what_cannot_be_kept_is_no_error_of_a_flush) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    BOOST_REQUIRE(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    ImagePullSecret renamed = kSecretA;
    renamed.name = std::string(kMaxCoordinateBytes + 1, 'n');
    Pod pod(renamed);
    BOOST_TEST(!store->MustAttemptPull({.image = kImage, .image_ref = kRef}, pod).pull);
    const auto flushed = store->Flush();
    BOOST_TEST(flushed.has_value());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 1U);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
