// Decisions, while something else happens.

#include <boost/test/unit_test.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "store/base/words.h"
#include "tests/support/metrics.h"
#include "tests/support/rows.h"

namespace waybill::testing {

// The store changes while a pod's credentials are fetched.
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
  DeferredCredentials source;
  Expect(store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source), true,
         CheckResult::kNotCounted, Reason::kCredentialsNeeded);
  meanwhile();
  source.Provide(pod.Fetch());
  return store->MustAttemptPull({.image = kImage, .image_ref = kRef}, source);
}

// An image of one tenant, whose record is not remembered once it is gone.
struct RecordOfA : ScratchStore {
  explicit RecordOfA(Mode rules) : ScratchStore(rules) {
    RememberNothing();
    Pull(kImage, kRef, WithSecret(kSecretA));
  }
};

// Only another image is left on the node.
void PruneTheRecord(ScratchStore& store) {
  store.clock().AdvanceSeconds(60);
  const ListToken token = Must(store->BeginList());
  BOOST_TEST(Must(store->Prune({{.id = std::string(kRef2)}}, token)).removed == 1U);
}

std::uint64_t Checks(ScratchStore& store, CheckResult result) {
  return CountedIn(store->GetMetrics()).mustpull_checks[static_cast<std::size_t>(result)];
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

// A second look may only confirm or tighten the first.
BOOST_AUTO_TEST_CASE(what_happens_while_credentials_are_fetched_opens_nothing) {
  using enum CheckResult;
  using enum Reason;
  struct Answer {
    bool pull;
    CheckResult result;
    Reason reason;
  };
  const Answer authenticate = {true, kMustAuthenticate, kNoCredentialMatches};
  const Answer found = {false, kCredentialRecordFound, kSecretHashMatches};
  const Answer unavailable = {true, kError, kCredentialsUnavailable};
  const auto nobody = Pod::Unavailable();
  const auto goes = PruneTheRecord;
  const struct {
    const char* what;
    Pod pod;
    std::function<void(ScratchStore&)> meanwhile;
    Answer closed;
    std::optional<Answer> kubelet;
    bool opens_to_strangers_then;
  } rows[] = {
      {"the record goes", Pod(kStranger), goes, authenticate, authenticate, false},
      // The closed rules know nothing of the image any more.
      {"one that matches goes",
       Pod(kSecretA),
       goes,
       {true, kMustAuthenticate, kNoEvidence},
       found,
       false},
      {"the record goes, fetching fails", nobody, goes, unavailable, unavailable, false},
      {"a ledger entry comes", Pod(kStranger),
       [](ScratchStore& store) {
         Must(store->AddToLedger({.id = std::string(kRef)}, "test", "test"));
       },
       authenticate, std::nullopt, true},
      {"the record opens to all", Pod(kStranger),
       [](ScratchStore& store) {
         Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, NodeWide(),
                                       {.terms = {.node_had_no_credentials = true}}));
       },
       authenticate, authenticate, true},
      // The kubelet compares with what it read; the closed rules also with what is there now.
      {"the record loses them", Pod(kSecretA),
       [](ScratchStore& store) {
         ImagePulledRecord record = Must(store->GetRecord({.image_ref = kRef}));
         record.credential_mapping.at(std::string(kName)) = WithSecret(kStranger);
         Must(store->PutRecord(record));
       },
       authenticate, found, true},
  };
  for (const auto& row : rows) {
    for (const Mode rules : kBothRules) {
      if (rules == Mode::kKubelet && !row.kubelet) continue;
      for (const bool deferred : {false, true}) {
        BOOST_TEST_CONTEXT(row.what << ", rules: " << WordOf(rules) << ", deferred: " << deferred) {
          RecordOfA store(rules);
          const Decision decision =
              DecideWhile(store, deferred, row.pod, [&] { row.meanwhile(store); });
          const Answer& answer = rules == Mode::kStrict ? row.closed : *row.kubelet;
          Expect(decision, answer.pull, answer.result, answer.reason);
          BOOST_TEST(decision.credentials_read);
          ExpectCounted(store, answer.result);
          if (row.opens_to_strangers_then) {
            BOOST_TEST(!store.Check(kImage, kRef, Pod(kStranger)).pull);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_outer_question_counts_what_it_answered) {
  for (const Mode rules : kBothRules) {
    RecordOfA store(rules);
    Fetched source(Pod(kStranger), [&] { PruneTheRecord(store); });
    const EnsureOutcome outcome =
        store->EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kIfNotPresent, source);
    BOOST_TEST(outcome.action == EnsureAction::kPull);
    BOOST_TEST(CountedIn(store->GetMetrics()).ensure_image_requests[1][1][1] == 1U);
  }
}

BOOST_AUTO_TEST_CASE(fetching_that_throws_is_counted_as_an_error) {
  for (const Mode rules : kBothRules) {
    RecordOfA store(rules);
    Fetched source(Pod(kSecretA), [] { throw 1; });
    const EnsureOutcome outcome =
        store->EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kIfNotPresent, source);
    BOOST_TEST(outcome.action != EnsureAction::kUsePresent);
    ExpectCounted(store, CheckResult::kError);
  }
}

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

BOOST_AUTO_TEST_SUITE_END()

// Rotated credentials on their way to the disk, while others ask or write.
BOOST_AUTO_TEST_SUITE(write_back_order)

namespace {

enum class Way { kAtHand, kFetched, kDeferred };

bool MustPull(NodeStore& store, std::string_view ref, const ImagePullSecret& secret, Way way) {
  Pod pod(secret);
  if (way == Way::kFetched) {
    return store.MustAttemptPull({.image = kImage, .image_ref = ref}, pod).pull;
  }
  const PodCredentials credentials = Must(pod.Fetch());
  if (way == Way::kAtHand) {
    FixedCredentials fixed(credentials);
    return store.MustAttemptPull({.image = kImage, .image_ref = ref}, fixed).pull;
  }
  DeferredCredentials deferred;
  const Decision first = store.MustAttemptPull({.image = kImage, .image_ref = ref}, deferred);
  if (first.reason != Reason::kCredentialsNeeded) return first.pull;
  deferred.Provide(credentials);
  return store.MustAttemptPull({.image = kImage, .image_ref = ref}, deferred).pull;
}

const ImagePullSecret kRotated = MakeSecret("team-a", "pull", "uid-a", "hash-a-2");
const ImagePullSecret kCopy = MakeSecret("team-b", "copy", "uid-b", "hash-a-2");

// A store whose writers wait for as long as the gate is held.
struct GatedStore {
  explicit GatedStore(Mode rules) : scratch(rules) {
    scratch.Pull(kImage, kRef, WithSecret(kSecretA));
    if (rules == Mode::kStrict) {
      Must(scratch->AddToLedger({.id = std::string(kRef2)}, "test", "preloaded"));
    }
    scratch.Stop();
    NodeStoreOptions options = scratch.Options({});
    options.clock = [this, clock = options.clock] {
      const std::lock_guard lock(gate);
      return clock();
    };
    store = Must(NodeStore::Open(options));
  }

  ScratchStore scratch;
  std::mutex gate;
  std::unique_ptr<NodeStore> store;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_in_another_namespace_that_asks_at_once_need_not_pull) {
  for (const Way way : {Way::kAtHand, Way::kFetched, Way::kDeferred}) {
    ScratchStore store(Mode::kKubelet);
    int pulls = 0;
    for (int i = 0; i < 100; ++i) {
      const std::string ref = std::string(kRef) + std::to_string(i);
      store.Pull(kImage, ref, WithSecret(kSecretA));
      BOOST_REQUIRE(!MustPull(*store, ref, kRotated, way));
      pulls += MustPull(*store, ref, kCopy, way) ? 1 : 0;
    }
    BOOST_TEST(pulls == 0);
  }
}

BOOST_AUTO_TEST_CASE(only_who_would_have_to_pull_waits_and_under_kubelet_rules_only) {
  UnderBothRules([](Mode rules) {
    GatedStore gated(rules);
    const std::lock_guard held(gated.gate);  // nothing is written meanwhile
    BOOST_TEST(!MustPull(*gated.store, kRef, kRotated, Way::kAtHand));
    BOOST_TEST(!MustPull(*gated.store, kRef, kRotated, Way::kAtHand));
    BOOST_TEST(!MustPull(*gated.store, kRef, kSecretA, Way::kAtHand));
    // Another image's: it is preloaded.
    BOOST_TEST(!MustPull(*gated.store, kRef2, kSecretB, Way::kAtHand));
    if (rules == Mode::kStrict) {
      for (const Way way : {Way::kAtHand, Way::kFetched, Way::kDeferred}) {
        BOOST_TEST(MustPull(*gated.store, kRef, kCopy, way));
      }
    }
  });
}

// A stranger's credentials. `between` runs once, between the decision's first look at the store and
// its second: when it asks whether fetching may block, or when it fetches.
class Stranger final : public CredentialSource {
 public:
  Stranger(bool may_block, std::function<void()> between)
      : may_block_(may_block), between_(std::move(between)) {}
  Result<PodCredentials> Fetch() override {
    if (!may_block_) between_();
    return pod_.Fetch();
  }
  bool may_block() const override {
    if (may_block_) between_();
    return may_block_;
  }

 private:
  Pod pod_{kSecretB};
  bool may_block_;
  std::function<void()> between_;
};

BOOST_AUTO_TEST_CASE(a_record_that_goes_between_the_looks_leaves_nothing_preloaded) {
  for (const bool may_block : {false, true}) {
    GatedStore gated(Mode::kKubelet);
    NodeStore& store = *gated.store;
    std::unique_lock held(gated.gate);
    BOOST_REQUIRE(!MustPull(store, kRef, kRotated, Way::kAtHand));  // is queued
    Stranger stranger(may_block, [&] {
      if (!held.owns_lock()) return;
      held.unlock();
      std::thread([&] { Must(store.DeleteRecord({.image_ref = kRef})); }).join();
    });
    const Decision decision = store.MustAttemptPull({.image = kImage, .image_ref = kRef}, stranger);
    BOOST_TEST(decision.pull, ReasonName(decision.reason));
    BOOST_TEST(decision.credentials_read);
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_is_put_afterwards_keeps_what_it_says) {
  UnderBothRules([](ScratchStore& store) {
    for (int i = 0; i < 50; ++i) {
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_REQUIRE(!MustPull(*store, kRef, kRotated, Way::kAtHand));
      ImagePulledRecord record;
      record.image_ref = std::string(kRef);
      const ImagePullSecret newest = MakeSecret("team-a", "pull", "uid-a", "hash-a-3");
      record.credential_mapping[std::string(kName)] = WithSecret(newest);
      Must(store->PutRecord(record));
      Must(store->Flush());
      BOOST_TEST(EntryOf(store).kubernetes_secrets.at(0).credential_hash == "hash-a-3");
      Must(store->DeleteRecord({.image_ref = kRef}));
    }
  });
}

BOOST_AUTO_TEST_CASE(garbage_collection_sees_the_record_as_it_was_met) {
  UnderBothRules([](ScratchStore& store) {
    for (int i = 0; i < 50; ++i) {
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      store.clock().AdvanceSeconds(30);
      const Timestamp until = store.clock().Now();
      const ListToken token = Must(store->BeginList());
      store.clock().AdvanceSeconds(30);
      BOOST_REQUIRE(!MustPull(*store, kRef, kRotated, Way::kAtHand));
      const std::vector<ListedImage> listed = {{.id = std::string(kRef2)}};
      const auto report = Must(store.rules() == Mode::kKubelet ? store->PruneBefore(listed, until)
                                                               : store->Prune(listed, token));
      BOOST_TEST(report.removed == 0U);
      BOOST_TEST(report.kept_newer == 1U);
      Must(store->DeleteRecord({.image_ref = kRef}));
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
