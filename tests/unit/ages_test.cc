// How long a proof counts.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(ages)

namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::int64_t kHour = 3600;

// Opens the store with these limits; nullopt: as it remembers them.
void StartWith(ScratchStore& scratch, const std::optional<AgeLimits>& ages) {
  OpenOptions options = scratch.Options({});
  options.ages = ages;
  Must(Must(NodeStore::Open(options))->Close());
  scratch.Start();
}

struct AgedStore : ScratchStore {
  AgedStore(Rules rules, const AgeLimits& ages) : ScratchStore(rules) {
    Stop();
    StartWith(*this, ages);
  }
  Decision Of(const ImagePullSecret& secret) { return Check(kImage, kRef, Pod(secret)); }
};

ImagePullCredentials ForAll() {
  ImagePullCredentials all;
  all.node_pods_accessible = true;
  return all;
}

void ExpectTooOld(const Decision& decision) {
  BOOST_TEST(decision.pull);
  BOOST_TEST(decision.result == CheckResult::kMustAuthenticate);
  BOOST_TEST(decision.reason == Reason::kProofTooOld);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_proof_counts_to_its_age_and_a_pull_makes_it_young) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(10 * kHour);
    BOOST_TEST(!store.Of(kSecretA).pull);
    store.clock().AdvanceSeconds(1);
    ExpectTooOld(store.Of(kSecretA));
    BOOST_TEST(store.Of(kSecretB).reason == Reason::kNoCredentialMatches);
    // The very same credentials, proven again.
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!store.Of(kSecretA).pull);
    store.clock().AdvanceSeconds(9 * kHour);
    store.Restart();
    BOOST_TEST(!store.Of(kSecretA).pull);
  });
}

BOOST_AUTO_TEST_CASE(a_match_proves_nothing) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(8 * kHour);
    const ImagePullSecret rotated = MakeSecret("team-a", "pull", "uid-a", "hash-a-2");
    const ImagePullSecret copy = MakeSecret("team-c", "pull", "uid-c", "hash-a-2");
    BOOST_TEST(!store.Of(rotated).pull);
    Must(store->Flush());
    BOOST_TEST(!store.Of(copy).pull);
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 2U);
    store.clock().AdvanceSeconds(3 * kHour);
    ExpectTooOld(store.Of(rotated));
    ExpectTooOld(store.Of(copy));
    // A pull by one of them proves that one.
    store.Pull(kImage, kRef, WithSecret(copy));
    BOOST_TEST(!store.Of(copy).pull);
    BOOST_TEST(!store.Of(rotated).pull);  // by the hash that was proven now
    ExpectTooOld(store.Of(MakeSecret("team-a", "pull", "uid-a", "hash-a-3")));
  });
}

// It matches one by its hash, which is too old, and one by its coordinates, which counts.
BOOST_AUTO_TEST_CASE(what_is_written_back_has_the_proof_of_what_counts) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(9 * kHour);
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    store.clock().AdvanceSeconds(2 * kHour);
    ExpectTooOld(store.Of(kSecretA));
    const ImagePullSecret rotated = MakeSecret("team-b", "pull", "uid-b", "hash-a");
    BOOST_TEST(!store.Of(rotated).pull);
    Must(store->Flush());
    BOOST_TEST(!store.Of(rotated).pull);
    ExpectTooOld(store.Of(MakeSecret("team-a", "pull", "uid-a", "hash-a-2")));
    store.clock().AdvanceSeconds(9 * kHour);
    ExpectTooOld(store.Of(rotated));
  });
}

BOOST_AUTO_TEST_CASE(service_accounts_and_images_for_all_have_ages_of_their_own) {
  UnderBothRules([](Rules rules) {
    AgedStore store(
        rules, {.credentials = hours(10), .service_accounts = hours(1), .node_pods = hours(5)});
    ImagePullCredentials account;
    account.kubernetes_service_accounts = {kBuilder};
    store.Pull(kImage, kRef, account);
    store.Pull(kImage, kRef2, ForAll());
    store.clock().AdvanceSeconds(kHour + 1);
    ExpectTooOld(store.Check(kImage, kRef, Pod(kBuilder)));
    BOOST_TEST(!store.Check(kImage, kRef2).pull);
    store.clock().AdvanceSeconds(4 * kHour);
    ExpectTooOld(store.Check(kImage, kRef2));
    // What was open to all gives way to what a pull proves.
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    BOOST_TEST(!store.Check(kImage, kRef2, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(kImage, kRef2).pull);
    store.Pull(kImage, kRef2, ForAll());
    BOOST_TEST(!store.Check(kImage, kRef2).pull);
  });
}

BOOST_AUTO_TEST_CASE(the_store_remembers_its_limits) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(11 * kHour);
    store.Restart();  // says nothing of ages
    ExpectTooOld(store.Of(kSecretA));
    // What does not count is not in the record that callers get.
    BOOST_TEST(Must(store->GetRecord({.image_ref = kRef})).credential_mapping.empty());
    store.Stop();
    auto observer = Must(NodeStore::Observe(
        {.directory = store.directory(), .rules = rules, .clock = store.clock().AsClock()}));
    ExpectTooOld(DecisionOf(*observer, {.image = kImage, .image_ref = kRef}, Pod(kSecretA)));
    observer.reset();
    auto generous = Must(NodeStore::Observe({.directory = store.directory(),
                                             .rules = rules,
                                             .ages = AgeLimits{},
                                             .clock = store.clock().AsClock()}));
    BOOST_TEST(!DecisionOf(*generous, {.image = kImage, .image_ref = kRef}, Pod(kSecretA)).pull);
    generous.reset();
    StartWith(store, AgeLimits{});
    BOOST_TEST(!store.Of(kSecretA).pull);
  });
}

// A limit: "Credentials expire if an age is set"
BOOST_AUTO_TEST_CASE(what_was_never_proven_here_is_past_every_age) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    ImagePulledRecord record = {.image_ref = std::string(kRef)};
    record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
    Must(store->PutRecord(record));
    ExpectTooOld(store.Of(kSecretA));
  });
}

BOOST_AUTO_TEST_CASE(a_clock_that_went_back_makes_nothing_younger) {
  AgedStore store(Rules::kClosed, {.credentials = hours(10)});
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.clock().JumpSeconds(11 * kHour);
  store.Pull("registry.example.com/other:v1", "other", WithSecret(kSecretB));  // a commit then
  store.clock().JumpSeconds(-10 * kHour);
  ExpectTooOld(store.Of(kSecretA));
  store.Restart();
  ExpectTooOld(store.Of(kSecretA));
}

// A limit: "After a clock that jumped ahead"
BOOST_AUTO_TEST_CASE(a_jump_forward_ages_what_was_proven_before_and_nothing_else) {
  AgedStore store(Rules::kClosed, {.credentials = hours(10)});
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.clock().JumpSeconds(400 * 24 * kHour);
  store.Pull(kImage, kRef, WithSecret(kSecretB));
  ExpectTooOld(store.Of(kSecretA));
  store.clock().JumpSeconds(-400 * 24 * kHour);
  // Whether the machine was off for that long nobody knows.
  ExpectTooOld(store.Of(kSecretA));
  BOOST_TEST(!store.Of(kSecretB).pull);
  store.Restart();
  ExpectTooOld(store.Of(kSecretA));
  BOOST_TEST(!store.Of(kSecretB).pull);
  store.clock().AdvanceSeconds(10 * kHour + 1);
  ExpectTooOld(store.Of(kSecretB));
  // Nor is it young once the clock comes to that time.
  store.clock().AdvanceSeconds(400 * 24 * kHour - 20 * kHour);
  for (int hour = 0; hour < 24; ++hour) {
    ExpectTooOld(store.Of(kSecretB));
    store.clock().AdvanceSeconds(kHour);
  }
  store.Pull(kImage, kRef, WithSecret(kSecretB));
  BOOST_TEST(!store.Of(kSecretB).pull);
}

// The owner lives on: what it wrote while the clock was ahead does not make a later pull old.
BOOST_AUTO_TEST_CASE(after_a_jump_that_is_taken_back_a_pull_makes_young_at_once) {
  UnderBothRules([](Rules rules) {
    for (const std::int64_t jump : {11 * kHour, 400 * 24 * kHour}) {
      BOOST_TEST_CONTEXT("by " << jump << " seconds") {
        AgedStore store(rules, {.credentials = hours(10), .node_pods = hours(5)});
        store.clock().JumpSeconds(jump);
        store.Pull("registry.example.com/other:v1", "other", WithSecret(kSecretB));
        store.clock().JumpSeconds(-jump);
        store.Pull(kImage, kRef, WithSecret(kSecretA));
        store.Pull(kImage, kRef2, ForAll());
        BOOST_TEST(!store.Of(kSecretA).pull);
        BOOST_TEST(!store.Check(kImage, kRef2).pull);
        store.Restart();
        BOOST_TEST(!store.Of(kSecretA).pull);
        BOOST_TEST(!store.Check(kImage, kRef2).pull);
        store.clock().AdvanceSeconds(jump + 10 * kHour + 1);
        ExpectTooOld(store.Of(kSecretA));
        ExpectTooOld(store.Check(kImage, kRef2));
      }
    }
  });
}

// A limit: "The end of a token"
BOOST_FIXTURE_TEST_CASE(an_end_that_somebody_set_goes_by_the_wall_clock, ClosedStore) {
  const PullId pull = Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePulled(
      {.image = kImage, .image_ref = kRef}, WithSecret(kSecretA),
      {.pull = pull, .terms = {.good_until = Timestamp{store.clock().Now().seconds + kHour, 0}}}));
  const auto opens = [&] { return !store.Check(kImage, kRef, Pod(kSecretA)).pull; };
  BOOST_TEST(opens());
  // By less than a day the clock is not believed.
  store.clock().JumpSeconds(-20 * kHour);
  store.clock().AdvanceSeconds(kHour - 1);
  BOOST_TEST(opens());
  store.clock().AdvanceSeconds(1);
  BOOST_TEST(!opens());
  store.clock().JumpSeconds(-30 * 24 * kHour);
  store.Restart();
  BOOST_TEST(opens());
}

BOOST_AUTO_TEST_CASE(the_ledger_and_other_policies_are_not_touched) {
  AgedStore store(Rules::kClosed, {.credentials = hours(10), .node_pods = hours(1)});
  Must(store->AddToLedger({.id = std::string(kRef)}, "test", "preloaded"));
  store.Pull(kImage, kRef, ForAll());
  store.clock().AdvanceSeconds(2 * kHour);
  BOOST_TEST(store.Check(kImage, kRef).reason == Reason::kPolicyKnownPreloaded);
}

// The store that is replaced is asked what counts, and so how old it is: a pull since the backup
// made it young, and where nobody knows its age a backup makes it no younger.
BOOST_AUTO_TEST_CASE(what_a_backup_brings_back_is_as_old_as_the_store_had_it) {
  UnderBothRules([](Rules rules) {
    for (const bool pulled_again : {true, false}) {
      const AgeLimits ages{.credentials = hours(10)};
      AgedStore store(rules, pulled_again ? ages : AgeLimits());
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      const auto backup = Must(store->MakeBackup());
      if (pulled_again) {
        store.clock().AdvanceSeconds(11 * kHour);
        store.Pull(kImage, kRef, WithSecret(kSecretA));
      }
      store.Stop();
      const Clock clock = store.clock().AsClock();
      const BootClock boot = store.clock().AsBootClock();
      if (!pulled_again) {
        // An older version keeps no proofs.
        Must(Migrate({.directory = store.directory(),
                      .to = 5,
                      .accept_loss = true,
                      .clock = clock,
                      .boot_clock = boot}));
        Must(Migrate({.directory = store.directory(), .clock = clock, .boot_clock = boot}));
      }
      Must(Restore({.directory = store.directory(),
                    .backup = backup.path,
                    .clock = clock,
                    .boot_clock = boot}));
      StartWith(store, ages);
      BOOST_TEST(store.Of(kSecretA).pull == !pulled_again, "pulled again: " << pulled_again);
    }
  });
}

BOOST_FIXTURE_TEST_CASE(absurd_ages_are_refused, ClosedStore) {
  store.Stop();
  for (const AgeLimits& ages :
       {AgeLimits{.credentials = seconds(-1)}, AgeLimits{.credentials = seconds(59)},
        AgeLimits{.credentials = kMaxAge + seconds(1)}, AgeLimits{.service_accounts = seconds(-5)},
        AgeLimits{.node_pods = seconds::min()}, AgeLimits{.revocations = hours(23)},
        AgeLimits{.credentials = hours(1), .service_accounts = hours(2)},
        AgeLimits{.credentials = seconds::max()}}) {
    OpenOptions options = store.Options({});
    options.ages = ages;
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
    ExpectError(NodeStore::Observe({.directory = store.directory(), .ages = ages}),
                ErrorCode::kInvalidArgument);
  }
}

BOOST_AUTO_TEST_CASE(going_down_a_version_ends_closed) {
  UnderBothRules([](Rules rules) {
    AgedStore store(rules, {.credentials = hours(10)});
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef2, ForAll());
    store.Stop();
    Must(Migrate({.directory = store.directory(), .to = 5, .accept_loss = true}));
    store.Start();
    BOOST_TEST(store.Of(kSecretA).pull);
    BOOST_TEST(!store.Check(kImage, kRef2).pull);  // its age was not limited
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
