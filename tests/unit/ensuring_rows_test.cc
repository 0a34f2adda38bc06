// The kubelet's outer question, one test a row: pull, use what is there, or refuse.

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

#include "tests/support/rows.h"

namespace waybill::testing {

namespace {

constexpr std::string_view kNotPresent =
    "Container image \"registry.example.com/team/app:v1\" is not present with pull policy of Never";
constexpr std::string_view kPresent =
    "Container image \"registry.example.com/team/app:v1\" already present on machine and can be "
    "accessed by the pod";

EnsureOutcome Ensure(ScratchStore& store, std::string_view ref, PullPolicy policy, Pod pod = Pod(),
                     std::string_view image = kImage) {
  return store->EnsureImage(image, ref, policy, pod);
}

// present and required: 0 false, 1 true, 2 unknown.
std::uint64_t Requests(ScratchStore& store, PullPolicy policy, std::size_t present,
                       std::size_t required) {
  return store->GetMetrics()
      .ensure_image_requests.at(static_cast<std::size_t>(policy))
      .at(present)
      .at(required);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ensuring_rows)

BOOST_AUTO_TEST_CASE(image_that_cannot_be_normalised_is_an_invalid_name) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    for (const std::string& image : {std::string("Not A Name"), std::string(), std::string(64, 'a'),
                                     std::string("registry.example.com/App")}) {
      for (const PullPolicy policy :
           {PullPolicy::kAlways, PullPolicy::kIfNotPresent, PullPolicy::kNever}) {
        BOOST_TEST_CONTEXT("image '" << image << "', " << PullPolicyName(policy)) {
          const std::uint64_t before = Requests(store, policy, 2, 2);
          Pod pod(kSecretA);
          const EnsureOutcome outcome = store->EnsureImage(image, kRef, policy, pod);
          BOOST_TEST(outcome.action == EnsureAction::kInvalidImageName);
          BOOST_TEST(!outcome.decision.has_value());
          BOOST_TEST(pod.asked() == 0);
          BOOST_TEST(Requests(store, policy, 2, 2) == before + 1);
        }
      }
    }
    BOOST_TEST(EnsureActionName(EnsureAction::kInvalidImageName) == "InvalidImageName");
  });
}

BOOST_AUTO_TEST_CASE(always_pulls_whatever_is_there) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerify));
    store.Pull(kImage, kRef, NodeWide());
    BOOST_TEST(Ensure(store, kRef, PullPolicy::kAlways).action == EnsureAction::kPull);
    BOOST_TEST(Ensure(store, "", PullPolicy::kAlways).action == EnsureAction::kPull);
  });
}

BOOST_AUTO_TEST_CASE(if_not_present_pulls_what_is_absent) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    BOOST_TEST(Ensure(store, "", PullPolicy::kIfNotPresent).action == EnsureAction::kPull);
    BOOST_TEST(Requests(store, PullPolicy::kIfNotPresent, 0, 1) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(if_not_present_pulls_where_the_decision_says_so) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const EnsureOutcome outcome = Ensure(store, kRef, PullPolicy::kIfNotPresent, Pod(kSecretB));
    BOOST_TEST(outcome.action == EnsureAction::kPull);
    BOOST_REQUIRE(outcome.decision.has_value());
    BOOST_TEST(outcome.decision->reason == Reason::kNoCredentialMatches);
    BOOST_TEST(Requests(store, PullPolicy::kIfNotPresent, 1, 1) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(if_not_present_uses_what_the_pod_may_use) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const EnsureOutcome outcome = Ensure(store, kRef, PullPolicy::kIfNotPresent, Pod(kSecretA));
    BOOST_TEST(outcome.action == EnsureAction::kUsePresent);
    BOOST_TEST(outcome.message == kPresent);
    BOOST_TEST(Requests(store, PullPolicy::kIfNotPresent, 1, 0) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(never_uses_what_the_pod_may_use) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const EnsureOutcome outcome = Ensure(store, kRef, PullPolicy::kNever, Pod(kSecretA));
    BOOST_TEST(outcome.action == EnsureAction::kUsePresent);
    BOOST_TEST(outcome.message == kPresent);
  });
}

BOOST_AUTO_TEST_CASE(never_has_the_same_words_for_absent_and_refused) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const EnsureOutcome absent = Ensure(store, "", PullPolicy::kNever);
    const EnsureOutcome refused = Ensure(store, kRef, PullPolicy::kNever);
    for (const EnsureOutcome& outcome : {absent, refused}) {
      BOOST_TEST(outcome.action == EnsureAction::kNeverPull);
      BOOST_TEST(outcome.message == kNotPresent);
    }
    BOOST_TEST(EnsureActionName(EnsureAction::kNeverPull) == "ErrImageNeverPull");
  });
}

// The kubelet tells such a pod that its credentials could not be had, and so that the image is
// there.
BOOST_AUTO_TEST_CASE(never_with_credentials_that_cannot_be_had) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const EnsureOutcome outcome = Ensure(store, kRef, PullPolicy::kNever, Pod::Unavailable());
    if (rules == Rules::kKubelet) {
      BOOST_TEST(outcome.action == EnsureAction::kCredentialsError);
    } else {
      const EnsureOutcome absent = Ensure(store, "", PullPolicy::kNever, Pod::Unavailable());
      BOOST_TEST(outcome.action == absent.action);
      BOOST_TEST(outcome.message == absent.message);
      BOOST_TEST(outcome.message == kNotPresent);
    }
    BOOST_REQUIRE(outcome.decision.has_value());
    BOOST_TEST(outcome.decision->reason == Reason::kCredentialsUnavailable);
  });
}

BOOST_AUTO_TEST_CASE(closed_rules_say_the_same_of_an_absent_and_a_refused_image) {
  ScratchStore store(Rules::kClosed);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  for (const PullPolicy policy :
       {PullPolicy::kAlways, PullPolicy::kIfNotPresent, PullPolicy::kNever}) {
    for (const bool available : {true, false}) {
      BOOST_TEST_CONTEXT(PullPolicyName(policy) << (available ? "" : ", without the API server")) {
        Pod pod(kSecretB);
        if (!available) pod.MakeUnavailable();
        const EnsureOutcome absent = Ensure(store, "", policy, pod);
        const EnsureOutcome refused = Ensure(store, kRef, policy, pod);
        BOOST_TEST(absent.action == refused.action);
        BOOST_TEST(absent.message == refused.message);
      }
    }
  }
}

// No Secret and no service account took part: every pod of the node may use the image.
BOOST_AUTO_TEST_CASE(pulled_without_credentials_is_open_to_the_node) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, NodeWide());
    BOOST_TEST(Ensure(store, kRef, PullPolicy::kNever).action == EnsureAction::kUsePresent);
    BOOST_TEST(Ensure(store, kRef, PullPolicy::kIfNotPresent, Pod(kSecretB)).action ==
               EnsureAction::kUsePresent);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
