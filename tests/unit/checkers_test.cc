// Who checked a credential, which of that the policy counts, and credentials that end by themselves
// (waybill/policy.h, waybill/types.h). Random histories of both: tests/model.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(checkers)

namespace {

constexpr auto kOthers = {ProofChecker::kUnknown, ProofChecker::kMirror, ProofChecker::kGuest};

VerificationPolicy OnlyRegistry(const std::string& pattern = "") {
  return Must(VerificationPolicy().WithProofs({{pattern, Proofs::kRegistry}}));
}

Result<void> Pull(ScratchStore& store, const ImagePullCredentials& credentials,
                  const ProofTerms& terms) {
  return store->RecordImagePulled({.image = kImage, .image_ref = kRef}, credentials,
                                  {.terms = terms});
}
Reason ReasonFor(ScratchStore& store, const ImagePullSecret& secret) {
  return store.Check(kImage, kRef, Pod(secret)).reason;
}
// Of kSecretA's credentials, under another name.
const ImagePullSecret kCopy = MakeSecret("team-c", "pull", "uid-c", "hash-a");

}  // namespace

BOOST_AUTO_TEST_CASE(the_most_telling_rule_counts) {
  const auto policy =
      Must(VerificationPolicy().WithProofs({{"", Proofs::kRegistry},
                                            {"registry.example/*", Proofs::kAny},
                                            {"registry.example/a/*", Proofs::kRegistry},
                                            {"registry.example/a/b", Proofs::kAny}}));
  const auto counts = [&](std::string_view name) {
    return policy.ProofCounts(name, ProofChecker::kMirror);
  };
  BOOST_TEST(!counts("nginx"));
  BOOST_TEST(!counts("registry.example"));
  BOOST_TEST(counts("registry.example/x"));
  BOOST_TEST(!counts("registry.example/a/x"));
  BOOST_TEST(counts("registry.example/a/b"));
  BOOST_TEST(!counts("registry.example/a/b/c"));
  for (const auto checker : kOthers) {
    BOOST_TEST(!policy.ProofCounts("nginx", checker));
    BOOST_TEST(VerificationPolicy().ProofCounts("nginx", checker));
  }
  BOOST_TEST(policy.ProofCounts("nginx", ProofChecker::kRegistry));
  BOOST_TEST(!Must(policy.WithProofs({})).chooses_proofs());
}

BOOST_AUTO_TEST_CASE(rules_that_are_refused) {
  const auto with = [](const std::vector<ProofRule>& rules) {
    return VerificationPolicy().WithProofs(rules);
  };
  ExpectError(with({{"a:v1", Proofs::kAny}}), ErrorCode::kInvalidArgument, "a:v1");
  ExpectError(with({{"a/*", Proofs::kAny}, {"a/*", Proofs::kAny}}), ErrorCode::kInvalidArgument,
              "two rules");
  ExpectError(with({{"", Proofs::kAny}, {"", Proofs::kRegistry}}), ErrorCode::kInvalidArgument,
              "two rules");
  ExpectError(with(std::vector<ProofRule>(kMaxAllowlistPatterns + 1)), ErrorCode::kLimitExceeded,
              "above");
}

// A limit: "A proof says that a pull with that credential succeeded, and no more"
BOOST_AUTO_TEST_CASE(a_mirrors_proof_opens_nothing_where_the_registry_must_check) {
  UnderBothRules([](Rules rules) {
    for (const auto checker : kOthers) {
      ScratchStore store(rules);
      Must(Pull(store, WithSecret(kSecretA), {.checker = checker}));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      store.set_policy(OnlyRegistry());
      store.Restart();
      Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kMustAuthenticate,
             Reason::kProofNotByRegistry);
      BOOST_TEST(Must(store->GetRecord({.image_ref = kRef})).credential_mapping.empty());
      const Explanation why = Must(store->Explain({.image = kImage, .image_ref = kRef}));
      BOOST_TEST_REQUIRE(why.credentials.size() == 1U);
      BOOST_TEST((why.credentials[0].standing == CredentialStanding::kNotByRegistry));
      BOOST_TEST((why.credentials[0].proof.checker == checker));
      // What the registry answers opens it.
      Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kRegistry}));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_written_back_was_checked_as_what_it_matched) {
  UnderBothRules([](Rules rules) {
    for (const auto checker : {ProofChecker::kMirror, ProofChecker::kRegistry}) {
      ScratchStore store(rules);
      Must(Pull(store, WithSecret(kSecretA), {.checker = checker}));
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kCopy)).pull);
      Must(store->Flush());
      BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 2U);
      store.set_policy(OnlyRegistry());
      store.Restart();
      BOOST_TEST(store.Check(kImage, kRef, Pod(kCopy)).pull == (checker == ProofChecker::kMirror));
    }
  });
}

BOOST_AUTO_TEST_CASE(open_to_all_by_a_mirror_gives_way_to_what_the_registry_answers) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, OnlyRegistry("registry.example.com/*"));
    Must(Pull(store, NodeWide(), {.checker = ProofChecker::kMirror}));
    Expect(store.Check(kImage, kRef), true, CheckResult::kMustAuthenticate,
           Reason::kProofNotByRegistry);
    Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kRegistry}));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    BOOST_TEST(store.Check(kImage, kRef).pull);
  });
}

BOOST_AUTO_TEST_CASE(a_registrys_proof_outlives_a_mirrors_while_it_counts) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, OnlyRegistry());
    OpenOptions options = store.Options({});
    options.ages = AgeLimits{.credentials = std::chrono::seconds(600)};
    store.Stop();
    Must(Must(NodeStore::Open(options))->Close());
    store.Start();
    const auto pull = [&](ProofChecker checker) {
      Must(Pull(store, WithSecret(kSecretA), {.checker = checker}));
    };
    pull(ProofChecker::kRegistry);
    store.clock().AdvanceSeconds(300);
    pull(ProofChecker::kMirror);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kSecretHashMatches);
    store.clock().AdvanceSeconds(301);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kProofTooOld);
    pull(ProofChecker::kMirror);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kProofNotByRegistry);
  });
}

BOOST_AUTO_TEST_CASE(nothing_opens_from_the_end_of_a_credential_on) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const Timestamp end{store.clock().Now().seconds + 60, 0};
    Must(Pull(store, WithSecret(kSecretA), {.good_until = end}));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kCopy)).pull);  // written back, and ends with it
    Must(store->Flush());
    store.clock().AdvanceSeconds(59);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kSecretHashMatches);
    BOOST_TEST(ReasonFor(store, kCopy) == Reason::kSecretHashMatches);
    store.clock().AdvanceSeconds(1);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kProofTooOld);
    BOOST_TEST(ReasonFor(store, kCopy) == Reason::kProofTooOld);
    BOOST_TEST(Must(store->ListRecords())[0].credential_mapping.empty());
    // A clock that goes back brings nothing back: a commit knows the later time.
    static_cast<void>(Must(store->RecordPullIntent({.image = kImage})));
    store.clock().AdvanceSeconds(-30);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kProofTooOld);
    Must(Pull(store, WithSecret(kSecretA), {}));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

// A limit: "A pull without credentials that a mirror served"
BOOST_AUTO_TEST_CASE(a_mirrors_pull_without_credentials_takes_the_place_of_secrets) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, OnlyRegistry());
    Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kRegistry}));
    Must(Pull(store, NodeWide(), {.checker = ProofChecker::kMirror}));
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kProofNotByRegistry);
  });
}

// What a mirror answered afterwards opens it, though the registry's proof is still in the record.
BOOST_AUTO_TEST_CASE(a_registrys_proof_that_was_forgotten_stands_in_no_ones_way) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.TidyAtOnce(1);
    const auto pull = [&](std::string_view ref, ProofChecker checker) {
      const PullId id = Must(store->RecordPullIntent({.image = kImage}));
      Must(store->RecordImagePulled({.image = kImage, .image_ref = ref}, WithSecret(kSecretA),
                                    {.pull = id, .terms = {.checker = checker}}));
    };
    for (const char digit : std::string_view("345678")) {
      pull(Digest(digit), ProofChecker::kRegistry);
    }
    static_cast<void>(Must(store->Forget(
        {.kind = RevocationKind::kSecret, .who = {.namespace_name = "team-a", .name = "pull"}})));
    for (const char digit : std::string_view("345678")) pull(Digest(digit), ProofChecker::kMirror);
    Must(store->TidyUp());
    for (const char digit : std::string_view("345678")) {
      BOOST_TEST(!store.Check(kImage, Digest(digit), Pod(kSecretA)).pull);
    }
  });
}

// A guard puts whole records, as the kubelet's files have them.
BOOST_AUTO_TEST_CASE(a_record_that_is_put_inherits_only_what_counts) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, OnlyRegistry());
    Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kMirror}));
    ImagePulledRecord put{.image_ref = std::string(kRef)};
    put.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
    static_cast<void>(Must(store->RecordPullIntent({.image = kImage})));
    Must(store->PutRecord(put, {.checker = ProofChecker::kRegistry}));
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kSecretHashMatches);
    // One that counts keeps its proof.
    Must(store->PutRecord(put, {.checker = ProofChecker::kMirror}));
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kSecretHashMatches);
  });
}

// It matches one by its hash, which a mirror answered, and one by its coordinates, which counts.
BOOST_AUTO_TEST_CASE(what_is_written_back_has_the_proof_of_what_the_registry_checked) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules, OnlyRegistry());
    Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kMirror}));
    Must(Pull(store, WithSecret(kSecretB), {.checker = ProofChecker::kRegistry}));
    const ImagePullSecret rotated = MakeSecret("team-b", "pull", "uid-b", "hash-a");
    BOOST_TEST(!store.Check(kImage, kRef, Pod(rotated)).pull);
    Must(store->Flush());
    BOOST_TEST(ReasonFor(store, rotated) == Reason::kSecretHashMatches);
    BOOST_TEST(ReasonFor(store, kSecretA) == Reason::kSecretHashMatches);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kCopy)).pull == false);
  });
}

BOOST_AUTO_TEST_CASE(terms_that_are_refused) {
  ScratchStore store(Rules::kClosed);
  const auto pull = [&](const ProofTerms& terms) {
    return Pull(store, WithSecret(kSecretA), terms);
  };
  ExpectError(pull({.checker = static_cast<ProofChecker>(4)}), ErrorCode::kInvalidArgument,
              "checker");
  for (const std::int64_t second :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{253'402'300'800}}) {
    ExpectError(pull({.good_until = Timestamp{second, 0}}), ErrorCode::kInvalidArgument, "is good");
  }
  BOOST_TEST(Must(store->ListRecords()).empty());
}

BOOST_AUTO_TEST_CASE(going_down_leaves_out_what_ends_by_itself) {
  ScratchStore store(Rules::kClosed);
  Must(Pull(store, WithSecret(kSecretA), {.checker = ProofChecker::kMirror}));
  Must(Pull(store, WithSecret(kSecretB), {.good_until = Timestamp{4'000'000'000, 0}}));
  store.Stop();
  const auto migrate = [&](std::uint32_t to, bool accept) {
    return Migrate({.directory = store.directory(), .to = to, .accept_loss = accept});
  };
  ExpectError(migrate(7, false), ErrorCode::kConflict, "1 credential that end");
  const MigrationReport down = Must(migrate(7, true));
  BOOST_TEST(down.steps.back().name == "checkers");
  BOOST_TEST(down.losses.size() == 2U);
  store.Start();
  BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
  const auto secrets = EntryOf(store).kubernetes_secrets;
  BOOST_TEST_REQUIRE(secrets.size() == 1U);
  BOOST_TEST((secrets[0].proof.checker == ProofChecker::kUnknown));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
