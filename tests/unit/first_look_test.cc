// The store changes while a pod's credentials are fetched: the answer may become stricter, never
// looser.

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <utility>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(first_look)

namespace {

// Runs something while the credentials are fetched.
class Fetched final : public CredentialSource {
 public:
  Fetched(Pod pod, std::function<void()> meanwhile)
      : pod_(std::move(pod)), meanwhile_(std::move(meanwhile)) {}
  Result<PodCredentials> Fetch() override {
    meanwhile_();
    return pod_.Fetch();
  }

 private:
  Pod pod_;
  std::function<void()> meanwhile_;
};

// Both ways of fetching late: inside the decision, and between two calls.
Decision DecideWhile(ScratchStore& store, bool deferred, Pod pod,
                     const std::function<void()>& meanwhile) {
  if (!deferred) {
    Fetched source(std::move(pod), meanwhile);
    return store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source);
  }
#ifndef WAYBILL_TEST_OF_ONE_CALL
  DeferredCredentials source;
  Expect(store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source), true,
         CheckResult::kNotCounted, Reason::kCredentialsNeeded);
  meanwhile();
  source.Provide(pod.Fetch());
  return store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source);
#else
  return {};
#endif
}

// An image of one tenant, whose record is not remembered once it is gone.
struct RecordOfA : ScratchStore {
  explicit RecordOfA(Rules rules) : ScratchStore(rules) {
    RememberNothing();
    Pull(kImage, kRef, WithSecret(kSecretA));
  }
};

using Case = std::function<void(Rules, RecordOfA& store, bool deferred)>;
void InBothWays(const Case& run) {
  for (const Rules rules : kBothRules) {
#ifdef WAYBILL_TEST_OF_ONE_CALL
    RecordOfA store(rules);
    run(rules, store, false);
#else
    for (const bool deferred : {false, true}) {
      BOOST_TEST_CONTEXT("rules: " << RulesName(rules) << ", deferred: " << deferred) {
        RecordOfA store(rules);
        run(rules, store, deferred);
      }
    }
#endif
  }
}

// Only another image is left on the node.
void PruneTheRecord(ScratchStore& store) {
  store.clock().AdvanceSeconds(60);
  const auto pruned = Must(store->PruneBefore({{.id = std::string(kRef2)}}, store.clock().Now()));
  BOOST_TEST(pruned.removed == 1U);
}

std::uint64_t Checks(ScratchStore& store, CheckResult result) {
  return store->GetMetrics().mustpull_checks[static_cast<std::size_t>(result)];
}

void ExpectCounted(ScratchStore& store, CheckResult result) {
  for (const CheckResult each :
       {CheckResult::kCredentialPolicyAllowed, CheckResult::kCredentialRecordFound,
        CheckResult::kMustAuthenticate, CheckResult::kError}) {
    BOOST_TEST(Checks(store, each) == (each == result ? 1U : 0U), CheckResultName(each));
  }
}

const ImagePullSecret kStranger = MakeSecret("team-b", "pull", "uid-b", "hash-b");

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_that_goes_while_credentials_are_fetched_does_not_open) {
  InBothWays([](Rules, RecordOfA& store, bool deferred) {
    Expect(DecideWhile(store, deferred, Pod(kStranger), [&] { PruneTheRecord(store); }), true,
           CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches);
    ExpectCounted(store, CheckResult::kMustAuthenticate);
  });
}

// The closed rules know nothing of the image any more.
BOOST_AUTO_TEST_CASE(credentials_that_match_a_record_that_goes_meanwhile_open_as_in_the_kubelet) {
  InBothWays([](Rules rules, RecordOfA& store, bool deferred) {
    const Decision decision =
        DecideWhile(store, deferred, Pod(kSecretA), [&] { PruneTheRecord(store); });
    if (rules == Rules::kKubelet) {
      Expect(decision, false, CheckResult::kCredentialRecordFound, Reason::kSecretHashMatches);
      ExpectCounted(store, CheckResult::kCredentialRecordFound);
    } else {
      Expect(decision, true, CheckResult::kMustAuthenticate, Reason::kNoEvidence);
      BOOST_TEST(decision.credentials_read);
      ExpectCounted(store, CheckResult::kMustAuthenticate);
    }
  });
}

// A second look may only confirm or tighten the first.
BOOST_AUTO_TEST_CASE(a_ledger_entry_that_comes_meanwhile_does_not_open_what_was_closed) {
  for (const bool deferred : {false, true}) {
    ScratchStore store(Rules::kClosed);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Expect(
        DecideWhile(store, deferred, Pod(kStranger),
                    [&] { Must(store->AddToLedger({.id = std::string(kRef)}, "test", "test")); }),
        true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kStranger)).pull);
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_goes_while_fetching_fails_is_an_error_and_counted_as_one) {
  InBothWays([](Rules, RecordOfA& store, bool deferred) {
    const Decision decision =
        DecideWhile(store, deferred, Pod::Unavailable(), [&] { PruneTheRecord(store); });
    Expect(decision, true, CheckResult::kError, Reason::kCredentialsUnavailable);
    BOOST_TEST(decision.credentials_read);
    ExpectCounted(store, CheckResult::kError);
  });
}

BOOST_AUTO_TEST_CASE(a_record_that_opens_to_all_meanwhile_does_not_open_what_was_closed) {
  InBothWays([](Rules, RecordOfA& store, bool deferred) {
    BOOST_TEST(DecideWhile(store, deferred, Pod(kStranger), [&] {
                 store.Pull(kImage, kRef, NodeWide());
               }).pull);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kStranger)).pull);
  });
}

// The kubelet compares with what it read; the closed rules also compare with what is there now.
BOOST_AUTO_TEST_CASE(credentials_that_a_record_loses_meanwhile_open_under_kubelet_rules_only) {
  InBothWays([](Rules rules, RecordOfA& store, bool deferred) {
    const Decision decision = DecideWhile(store, deferred, Pod(kSecretA), [&] {
      ImagePulledRecord record = Must(store->GetRecord({.image_ref = kRef}));
      record.credential_mapping.at(std::string(kName)) = WithSecret(kStranger);
      Must(store->PutRecord(record));
    });
    BOOST_TEST(decision.pull == (rules == Rules::kClosed));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kStranger)).pull);
  });
}

BOOST_AUTO_TEST_CASE(the_outer_question_counts_what_it_answered) {
  for (const Rules rules : kBothRules) {
    RecordOfA store(rules);
    Fetched source(Pod(kStranger), [&] { PruneTheRecord(store); });
    const EnsureOutcome outcome =
        store->EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kIfNotPresent, source);
    BOOST_TEST(outcome.action == EnsureAction::kPull);
    BOOST_TEST(store->GetMetrics().ensure_image_requests[1][1][1] == 1U);
  }
}

BOOST_AUTO_TEST_CASE(fetching_that_throws_is_counted_as_an_error) {
  for (const Rules rules : kBothRules) {
    RecordOfA store(rules);
    Fetched source(Pod(kSecretA), [] { throw 1; });
    const EnsureOutcome outcome =
        store->EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kIfNotPresent, source);
    BOOST_TEST(outcome.action != EnsureAction::kUsePresent);
    ExpectCounted(store, CheckResult::kError);
  }
}

#ifndef WAYBILL_TEST_OF_ONE_CALL
// A FirstLook is for one question: what it saw of one image does not apply to another.
BOOST_AUTO_TEST_CASE(a_first_look_is_of_no_use_for_another_image) {
  UnderBothRules([](ScratchStore& store) {
    store.RememberNothing();
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef2, WithSecret(kStranger));
    DeferredCredentials source;
    BOOST_TEST(store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source).pull);
    Pod pod(kSecretA);
    source.Provide(pod.Fetch());
    BOOST_TEST(store->MustAttemptPull({.image = kImage, .image_ref = kRef2}, source).pull);
    BOOST_TEST(store
                   ->MustAttemptPull(
                       {.image = "registry.example.com/team/other:v1", .image_ref = kRef}, source)
                   .pull);
    BOOST_TEST(!store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source).pull);
  });
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
