// Histories in which one pod's pull meets another's: what KEP-2535 names as integration and
// end-to-end tests, and their neighbours. Each is played under both sets of rules.

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

constexpr std::string_view kImage = "registry.example.com/team/app:v1";
constexpr std::string_view kByDigest =
    "registry.example.com/team/app@sha256:"
    "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
constexpr std::string_view kRef =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111";
constexpr std::string_view kOldRef =
    "sha256:2222222222222222222222222222222222222222222222222222222222222222";

const ImagePullSecret kSecretA = MakeSecret("team-a", "pull", "uid-a", "hash-a");
const ImagePullSecret kSecretB = MakeSecret("team-b", "pull", "uid-b", "hash-b");

}  // namespace

BOOST_AUTO_TEST_SUITE(histories)

// KEP-2535, "kubelet parallel pulling": only the pull that succeeded lets its pod start.
BOOST_AUTO_TEST_CASE(parallel_pulls_of_which_the_first_fails) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordImagePullFailed(kImage));
      BOOST_TEST(Must(store->HasIntent(kImage)));
      BOOST_TEST(store.Check(kImage, kRef).pull);

      Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretB)));
      BOOST_TEST(!Must(store->HasIntent(kImage)));
      BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretB)).pull);
      BOOST_TEST(store.Check(kImage, kRef).pull);
    }
  }
}

BOOST_AUTO_TEST_CASE(parallel_pulls_of_which_the_last_fails) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
      BOOST_TEST(Must(store->HasIntent(kImage)));
      Must(store->RecordImagePullFailed(kImage));

      BOOST_TEST(!Must(store->HasIntent(kImage)));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    }
  }
}

BOOST_AUTO_TEST_CASE(parallel_pulls_that_both_fail) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordImagePullFailed(kImage));
      Must(store->RecordImagePullFailed(kImage));
      BOOST_TEST(!Must(store->HasIntent(kImage)));
      BOOST_TEST(Must(store->ListRecords()).empty());
    }
  }
}

// KEP-2535, "image that can be pulled anonymously is pulled with credentials".
BOOST_AUTO_TEST_CASE(pulled_with_a_secret_then_without) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules);
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      const Decision before = store.Check(kImage, kRef);
      BOOST_TEST(before.pull);
      BOOST_TEST((before.result == CheckResult::kMustAuthenticate));

      store.Pull(kImage, kRef, NodeWide());
      const Decision after = store.Check(kImage, kRef);
      BOOST_TEST(!after.pull);
      BOOST_TEST((after.reason == Reason::kNodePodsAccessible));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretB)).pull);

      // And never back again.
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_TEST(!store.Check(kImage, kRef).pull);
    }
  }
}

// KEP-2535: records are made even where nothing is verified, so that the policy can change later.
BOOST_AUTO_TEST_CASE(pulled_under_never_verify_then_the_policy_changes) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerify));
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_TEST(!store.Check(kImage, kRef).pull);
      BOOST_TEST(!store.Check("preloaded:v1", kOldRef).pull);

      store.set_policy(MakePolicy(VerificationMode::kNeverVerifyPreloadedImages));
      store.Restart();
      BOOST_TEST(store.Check(kImage, kRef).pull);
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(!store.Check("preloaded:v1", kOldRef).pull);

      store.set_policy(MakePolicy(VerificationMode::kAlwaysVerify));
      store.Restart();
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check("preloaded:v1", kOldRef).pull);

      store.set_policy(MakePolicy(VerificationMode::kNeverVerify));
      store.Restart();
      BOOST_TEST(!store.Check(kImage, kRef).pull);
    }
  }
}

// The two names are one repository: the closed rules see that, the kubelet compares strings.
BOOST_AUTO_TEST_CASE(decision_in_the_middle_of_a_pull_by_another_name) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      const bool closed = rules == Rules::kClosed;
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      BOOST_TEST(store.Check(kImage, kRef).pull);
      BOOST_TEST(store.Check(kByDigest, kRef).pull == closed);
      BOOST_TEST(store.Check("registry.example.com/team/app", kRef).pull == closed);
      BOOST_TEST(!store.Check("registry.example.com/team/other:v1", kOldRef).pull);
      if (closed) {
        BOOST_TEST((store.Check(kByDigest, kRef).reason == Reason::kPullInFlight));
      }

      // Once it ends, the name as written decides under both: nothing is known for another name,
      // and both of these cut to the same one.
      Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
      BOOST_TEST(!store.Check(kByDigest, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kByDigest, kRef, Pod(kSecretB)).pull);
      BOOST_TEST(!store.Check("registry.example.com/team/other:v1", kOldRef).pull);
    }
  }
}

BOOST_AUTO_TEST_CASE(decision_in_the_middle_of_a_pull_by_a_short_name) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      const bool closed = rules == Rules::kClosed;
      ScratchStore store(rules);
      Must(store->RecordPullIntent("nginx"));
      BOOST_TEST(store.Check("docker.io/library/nginx:1.27", kRef).pull == closed);

      Must(store->RecordImagePulled("nginx", kRef, WithSecret(kSecretA)));
      // What was proven for the short name opens only the short name.
      BOOST_TEST(!store.Check("nginx:1.27", kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check("docker.io/library/nginx", kRef, Pod(kSecretA)).pull);
    }
  }
}

// Time-outs and cancellations: the image may still arrive.
BOOST_AUTO_TEST_CASE(pull_whose_outcome_nobody_knows) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      const bool closed = rules == Rules::kClosed;
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      Must(store->RecordImagePullFailed(kImage, PullFailure::kUnknown));
      BOOST_TEST(Must(store->HasIntent(kImage)) == closed);
      BOOST_TEST(store.Check(kImage, kRef).pull == closed);

      // It is settled by the next pull that succeeds.
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_TEST(!Must(store->HasIntent(kImage)));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
    }
  }
}

// kubernetes#138175 keeps its answer: what is known of the image under one name closes the other.
BOOST_AUTO_TEST_CASE(preloaded_under_one_name_then_pulled_under_another) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      ScratchStore store(rules);
      BOOST_TEST(!store.Check("preloaded.example.com/app:v1", kRef).pull);
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      const Decision decision = store.Check("preloaded.example.com/app:v1", kRef);
      BOOST_TEST(decision.pull);
      BOOST_TEST((decision.reason == Reason::kNoEntryForImageName));
    }
  }
}

BOOST_AUTO_TEST_CASE(died_in_mid_pull_then_pulled_again) {
  for (const Rules rules : kBothRules) {
    BOOST_TEST_CONTEXT(RulesName(rules)) {
      const bool closed = rules == Rules::kClosed;
      ScratchStore store(rules);
      Must(store->RecordPullIntent(kImage));
      store.Restart({{std::string(kRef), {std::string(kImage)}, {}}});
      BOOST_TEST(store->recovery_report().intents_replayed == 1U);
      BOOST_TEST(Must(store->HasIntent(kImage)) == closed);
      BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretA)).pull);

      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_TEST(!Must(store->HasIntent(kImage)));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
