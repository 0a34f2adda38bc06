// Credentials fetched only after a decision turned out to depend on them: the second call answers
// and counts as if the store had fetched them itself.

#include <boost/test/unit_test.hpp>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(deferred_credentials)

BOOST_AUTO_TEST_CASE(an_answer_that_needs_none_is_the_answer) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const bool closed = rules == Rules::kClosed;
    DeferredCredentials deferred;
    const auto decide = [&](std::string_view ref) {
      return store->MustAttemptPull({.image = kImage, .image_ref = ref}, deferred);
    };
    if (closed) Must(store->AddToLedger({.id = std::string(kRef2)}, "test", "preloaded"));
    Expect(decide(kRef2), false, CheckResult::kCredentialPolicyAllowed,
           closed ? Reason::kPolicyKnownPreloaded : Reason::kPolicyPresumedPreloaded);
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    Expect(decide(kRef), true, CheckResult::kMustAuthenticate,
           closed ? Reason::kNoEvidence : Reason::kPullInFlight);
    BOOST_REQUIRE(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, NodeWide()));
    Expect(decide(kRef), false, CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible);
    const Metrics metrics = store->GetMetrics();
    BOOST_TEST(metrics.mustpull_checks[1] == 1U);
    BOOST_TEST(metrics.mustpull_checks[2] == 1U);
    BOOST_TEST(metrics.mustpull_checks[3] == 1U);
  });
}

BOOST_AUTO_TEST_CASE(an_answer_that_needs_them_is_pull_and_not_counted) {
  UnderBothRules([](ScratchStore& store) {
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    BOOST_REQUIRE(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    DeferredCredentials deferred;
    const Decision first = store->MustAttemptPull({.image = kImage, .image_ref = kRef}, deferred);
    Expect(first, true, CheckResult::kNotCounted, Reason::kCredentialsNeeded);
    BOOST_TEST(!first.credentials_read);
    const Metrics uncounted = store->GetMetrics();
    for (const std::uint64_t count : uncounted.mustpull_checks) BOOST_TEST(count == 0U);

    Expect(DecisionOf(*store, {.image = kImage, .image_ref = kRef}, Pod(kSecretA)), false,
           CheckResult::kCredentialRecordFound, Reason::kSecretHashMatches);
    BOOST_TEST(store->GetMetrics().mustpull_checks[2] == 1U);
  });
}

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
