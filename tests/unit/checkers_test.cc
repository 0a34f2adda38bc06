// Who checked a credential, and which of that the policy counts (waybill/policy.h), where
// histories/checkers.jsonl does not reach: rules and terms that are refused, what an explanation
// says. Random histories: tests/model.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(checkers)

namespace {

constexpr auto kOthers = {ProofChecker::kUnknown, ProofChecker::kMirror, ProofChecker::kGuest};

Result<void> Pull(ScratchStore& store, const ProofTerms& terms) {
  return store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA),
                                  {.terms = terms});
}

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

BOOST_AUTO_TEST_CASE(an_explanation_says_who_checked) {
  UnderBothRules([](Rules rules) {
    for (const auto checker : kOthers) {
      ScratchStore store(rules, Must(VerificationPolicy().WithProofs({{"", Proofs::kRegistry}})));
      Must(Pull(store, {.checker = checker}));
      const Explanation why = Must(store->Explain({.image = kImage, .image_ref = kRef}));
      BOOST_TEST_REQUIRE(why.credentials.size() == 1U);
      BOOST_TEST((why.credentials[0].standing == CredentialStanding::kNotByRegistry));
      BOOST_TEST((why.credentials[0].proof.checker == checker));
    }
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

BOOST_AUTO_TEST_CASE(terms_that_are_refused) {
  ScratchStore store(Rules::kClosed);
  ExpectError(Pull(store, {.checker = static_cast<ProofChecker>(4)}), ErrorCode::kInvalidArgument,
              "checker");
  for (const std::int64_t second :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{253'402'300'800}}) {
    ExpectError(Pull(store, {.good_until = Timestamp{second, 0}}), ErrorCode::kInvalidArgument,
                "is good");
  }
  BOOST_TEST(Must(store->ListRecords()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
