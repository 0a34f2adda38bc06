// Credentials fetched only after a decision turned out to depend on them: the second call answers
// and counts as if the store had fetched them itself.

#include <boost/test/unit_test.hpp>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(deferred_credentials)

BOOST_AUTO_TEST_CASE(an_outcome_that_needs_them_starts_nothing_and_is_not_counted) {
  UnderBothRules([](ScratchStore& store) {
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    BOOST_REQUIRE(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    DeferredCredentials deferred;
    for (const auto& [policy, action] : {std::pair{PullPolicy::kIfNotPresent, EnsureAction::kPull},
                                         std::pair{PullPolicy::kNever, EnsureAction::kNeverPull}}) {
      const EnsureOutcome outcome =
          store->EnsureImage({.image = kImage, .image_ref = kRef}, policy, deferred);
      BOOST_TEST(outcome.action == action);
      BOOST_REQUIRE(outcome.decision.has_value());
      BOOST_TEST(outcome.decision->reason == Reason::kCredentialsNeeded);
    }
    for (const auto& by_present : store->GetMetrics().ensure_image_requests) {
      for (const auto& by_required : by_present) {
        for (const std::uint64_t count : by_required) BOOST_TEST(count == 0U);
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
