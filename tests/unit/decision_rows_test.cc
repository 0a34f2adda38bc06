// "Must this pull be attempted?": the kubelet's decision, one test a row, each under both sets of
// rules.

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

namespace {

std::uint64_t Checks(ScratchStore& store, CheckResult result) {
  return store->GetMetrics().mustpull_checks.at(static_cast<std::size_t>(result));
}

std::uint64_t AllChecks(ScratchStore& store) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : store->GetMetrics().mustpull_checks) sum += count;
  return sum;
}

// An entry that holds `count` secrets; number 0 is kSecretA.
void PullWithSecrets(ScratchStore& store, int count) {
  ImagePullCredentials credentials = WithSecret(kSecretA);
  for (int i = 1; i < count; ++i) {
    const std::string n = std::to_string(i);
    credentials.kubernetes_secrets.push_back(MakeSecret("ns-" + n, "pull", "uid-" + n, "h-" + n));
  }
  store.Pull(kImage, kRef, credentials);
}

const ImagePullSecret kRotatedA = MakeSecret("team-a", "pull", "uid-a", "hash-rotated");
const ImagePullSecret kCopyOfA = MakeSecret("team-c", "copy", "uid-c", "hash-a");

}  // namespace

BOOST_AUTO_TEST_SUITE(decision_rows)

BOOST_AUTO_TEST_CASE(step_1_empty_image_ref_is_pull_and_not_counted) {
  UnderBothRules([](Rules rules) {
    for (const VerificationMode mode :
         {VerificationMode::kNeverVerify, VerificationMode::kNeverVerifyPreloadedImages,
          VerificationMode::kAlwaysVerify}) {
      ScratchStore store(rules, MakePolicy(mode));
      Pod pod(kSecretA);
      Expect(store.Check(kImage, "", pod), true, CheckResult::kNotCounted, Reason::kImageAbsent);
      BOOST_TEST(pod.asked() == 0);
      BOOST_TEST(AllChecks(store) == 0U);
    }
  });
}

BOOST_AUTO_TEST_CASE(step_2_unreadable_record_is_pull_before_the_policy_is_asked) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerify));
    store.Stop();
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "{\"kind\":");
    store.Start();
    Pod pod(kSecretA);
    Expect(store.Check(kImage, kRef, pod), true, CheckResult::kError, Reason::kQuarantined);
    BOOST_TEST(pod.asked() == 0);
    BOOST_TEST(Checks(store, CheckResult::kError) == 1U);
    // Its neighbours are as they were.
    BOOST_TEST(!store.Check(kImage, kRef2).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_3_kubelet_pulled_by_a_record) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    BOOST_TEST(!store.Check(kImage, kRef).pull);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(store.Check(kImage, kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_3_kubelet_pulled_by_an_intent_in_flight) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    Expect(store.Check(kImage, kRef), true, CheckResult::kMustAuthenticate, Reason::kPullInFlight);
    Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST(!store.Check(kImage, kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_3_kubelet_pulled_by_a_stored_intent) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    store.Restart();
    Expect(store.Check(kImage, kRef), true, CheckResult::kMustAuthenticate, Reason::kPullInFlight);
  });
}

BOOST_AUTO_TEST_CASE(step_4_never_verify_never_requires_verification) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerify));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Pod pod;
    Expect(store.Check(kImage, kRef, pod), false, CheckResult::kCredentialPolicyAllowed,
           Reason::kPolicyNeverVerifies);
    BOOST_TEST(pod.asked() == 0);
    BOOST_TEST(Checks(store, CheckResult::kCredentialPolicyAllowed) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(step_4_preloaded_images_are_open_by_default) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Pod pod;
    Expect(store.Check(kImage, kRef, pod), false, CheckResult::kCredentialPolicyAllowed,
           Reason::kPolicyPresumedPreloaded);
    BOOST_TEST(pod.asked() == 0);
  });
}

BOOST_AUTO_TEST_CASE(step_4_always_verify_requires_it_of_preloaded_images) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kAlwaysVerify));
    Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kMustAuthenticate,
           Reason::kNoRecord);
  });
}

BOOST_AUTO_TEST_CASE(step_4_allowlisted_images_are_open_whoever_pulled_them) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerifyAllowlistedImages,
                                         {"registry.example.com/team/app", "public.example.com/*",
                                          "Not A Name/*"}));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Expect(store.Check(kImage, kRef), false, CheckResult::kCredentialPolicyAllowed,
           Reason::kPolicyAllowlisted);
    BOOST_TEST(!store.Check("public.example.com/a/b@sha256:" + std::string(64, 'a'), kRef2).pull);
    BOOST_TEST(store.Check("registry.example.com/team/app2:v1", kRef2).pull);
    BOOST_TEST(store.Check("registry.example.com/team/app/sub:v1", kRef2).pull);
    BOOST_TEST(store.Check("public.example.community/a:v1", kRef2).pull);
    // An image that does not parse is compared as it stands.
    BOOST_TEST(!store.Check("Not A Name/x y", kRef2).pull);
    BOOST_TEST(store.Check("Not A Name", kRef2).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_4_allowlist_as_the_kep_meant_it_spares_preloaded_images_only) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, MakePolicy(VerificationMode::kNeverVerifyAllowlistedImages,
                                         {std::string(kName)}, AllowlistScope::kPreloadedOnly));
    BOOST_TEST(!store.Check(kImage, kRef).pull);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(store.Check(kImage, kRef).pull);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_4_allowlist_patterns_that_are_refused) {
  constexpr VerificationMode kMode = VerificationMode::kNeverVerifyAllowlistedImages;
  for (const char* pattern :
       {"", " a", "a ", "\ta", "*", "/*", "a*", "a/*/b", "a/b*", "a/**", "a:v1",
        "a@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "registry.example.com/Upper"}) {
    BOOST_TEST_CONTEXT("pattern: '" << pattern << "'") {
      const auto policy = VerificationPolicy::Make(kMode, {"good.example.com/name", pattern});
      BOOST_REQUIRE(!policy);
      BOOST_TEST((policy.error().code == ErrorCode::kInvalidArgument));
      BOOST_TEST(policy.error().message.find("pattern") != std::string::npos);
    }
  }
  // What stands before the final "/*" is not parsed.
  BOOST_TEST(VerificationPolicy::Make(kMode, {"Upper/*"}).has_value());
  for (const VerificationMode mode :
       {VerificationMode::kNeverVerify, VerificationMode::kNeverVerifyPreloadedImages,
        VerificationMode::kAlwaysVerify}) {
    const auto policy = VerificationPolicy::Make(mode, {"good.example.com/name"});
    BOOST_REQUIRE(!policy);
    BOOST_TEST((policy.error().code == ErrorCode::kInvalidArgument));
  }
}

BOOST_AUTO_TEST_CASE(step_5_image_that_does_not_parse_is_an_error) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, NodeWide());
    Pod pod(kSecretA);
    Expect(store.Check("Not A Name", kRef, pod), true, CheckResult::kError,
           Reason::kImageDoesNotParse);
    BOOST_TEST(pod.asked() == 0);
  });
}

BOOST_AUTO_TEST_CASE(step_5_no_entry_for_this_image_name) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, NodeWide());
    Pod pod(kSecretA);
    Expect(store.Check("registry.example.com/team/other:v1", kRef, pod), true,
           CheckResult::kMustAuthenticate, Reason::kNoEntryForImageName);
    BOOST_TEST(pod.asked() == 0);
    // Another tag or a digest of the same name is the same entry.
    BOOST_TEST(!store.Check(std::string(kName) + ":v2", kRef).pull);
    BOOST_TEST(!store.Check(kName, kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_5_names_are_compared_as_written) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull("docker.io/library/nginx:1.27", kRef, NodeWide());
    BOOST_TEST(store.Check("nginx:1.27", kRef).pull);
    BOOST_TEST(store.Check("library/nginx:1.27", kRef).pull);
    BOOST_TEST(!store.Check("docker.io/library/nginx", kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_5_entry_without_credentials) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, ImagePullCredentials{});
    Pod pod(kSecretA);
    Expect(store.Check(kImage, kRef, pod), true, CheckResult::kMustAuthenticate,
           Reason::kEntryWithoutCredentials);
    BOOST_TEST(pod.asked() == 0);
  });
}

BOOST_AUTO_TEST_CASE(step_6_node_pods_accessible_asks_for_no_credentials) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, NodeWide());
    Pod pod = Pod::Unavailable();
    Expect(store.Check(kImage, kRef, pod), false, CheckResult::kCredentialRecordFound,
           Reason::kNodePodsAccessible);
    BOOST_TEST(pod.asked() == 0);
    BOOST_TEST(Checks(store, CheckResult::kCredentialRecordFound) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(step_7_equal_hash_and_coordinates_write_nothing) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const ImagePulledRecord before = Must(store->GetRecord(kRef));
    store.clock().AdvanceSeconds(60);
    Pod pod(kSecretA);
    Expect(store.Check(kImage, kRef, pod), false, CheckResult::kCredentialRecordFound,
           Reason::kSecretHashMatches);
    BOOST_TEST(pod.asked() == 1);
    Must(store->Flush());
    BOOST_TEST((Must(store->GetRecord(kRef)) == before));
  });
}

BOOST_AUTO_TEST_CASE(step_7_equal_hash_adds_the_pods_secret) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    PullWithSecrets(store, 99);
    Expect(store.Check(kImage, kRef, Pod(kCopyOfA)), false, CheckResult::kCredentialRecordFound,
           Reason::kSecretHashMatches);
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 100U);
    // The copy's coordinates now count by themselves.
    store.Restart();
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kCopyOfA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_7_equal_hash_at_100_secrets_matches_but_adds_nothing) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    PullWithSecrets(store, 100);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kCopyOfA)).pull);
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 100U);
  });
}

BOOST_AUTO_TEST_CASE(step_7_equal_coordinates_replace_the_stored_hash) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    PullWithSecrets(store, 99);
    Expect(store.Check(kImage, kRef, Pod(kRotatedA)), false, CheckResult::kCredentialRecordFound,
           Reason::kSecretCoordinatesMatch);
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 99U);
    const ImagePullSecret copy = MakeSecret("team-c", "copy", "uid-c", "hash-rotated");
    BOOST_TEST(!store.Check(kImage, kRef, Pod(copy)).pull);
    BOOST_TEST(store.Check(kImage, kRef, Pod(MakeSecret("team-d", "d", "d", "hash-a"))).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_7_equal_coordinates_at_100_secrets_do_not_match) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    PullWithSecrets(store, 100);
    Expect(store.Check(kImage, kRef, Pod(kRotatedA)), true, CheckResult::kMustAuthenticate,
           Reason::kNoCredentialMatches);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_7_coordinates_match_only_as_a_whole) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    for (const ImagePullSecret& secret :
         {MakeSecret("team-a", "pull", "other", "h"), MakeSecret("team-a", "other", "uid-a", "h"),
          MakeSecret("other", "pull", "uid-a", "h")}) {
      BOOST_TEST(store.Check(kImage, kRef, Pod(secret)).pull);
    }
  });
}

BOOST_AUTO_TEST_CASE(step_7_an_empty_hash_matches_nothing_but_its_coordinates_do) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const ImagePullSecret hashless = MakeSecret("team-a", "pull", "uid-a", "");
    store.Pull(kImage, kRef, WithSecret(hashless));
    BOOST_TEST(store.Check(kImage, kRef, Pod(MakeSecret("team-b", "pull", "uid-b", ""))).pull);
    Expect(store.Check(kImage, kRef, Pod(kSecretA)), false, CheckResult::kCredentialRecordFound,
           Reason::kSecretCoordinatesMatch);
    Must(store->Flush());
    BOOST_TEST((EntryOf(store).kubernetes_secrets.at(0) == kSecretA));
  });
}

BOOST_AUTO_TEST_CASE(step_7_any_of_the_pods_secrets_will_do) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(std::vector{kSecretB, kSecretA})).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_8_service_account_matches_as_a_whole) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithServiceAccount(kBuilder));
    Expect(store.Check(kImage, kRef, Pod(kBuilder)), false, CheckResult::kCredentialRecordFound,
           Reason::kServiceAccountMatches);
    for (const ImagePullServiceAccount& account :
         {ImagePullServiceAccount{"other", "team-a", "builder"},
          ImagePullServiceAccount{"uid-sa", "other", "builder"},
          ImagePullServiceAccount{"uid-sa", "team-a", "other"}}) {
      BOOST_TEST(store.Check(kImage, kRef, Pod(account)).pull);
    }
    BOOST_TEST(store.Check(kImage, kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(step_9_otherwise_pull) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Pod pod(kSecretB);
    const Decision decision = store.Check(kImage, kRef, pod);
    Expect(decision, true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches);
    BOOST_TEST(decision.credentials_read);
    BOOST_TEST(pod.asked() == 1);
    BOOST_TEST(Checks(store, CheckResult::kMustAuthenticate) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(credentials_that_cannot_be_had_are_pull_with_an_error) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Pod pod = Pod::Unavailable();
    const Decision decision = store.Check(kImage, kRef, pod);
    Expect(decision, true, CheckResult::kError, Reason::kCredentialsUnavailable);
    BOOST_TEST(decision.credentials_read);
    BOOST_TEST(pod.asked() == 1);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
