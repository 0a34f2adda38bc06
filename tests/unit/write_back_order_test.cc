// Rotated credentials on their way to the disk, while others ask or write.

#include <boost/test/unit_test.hpp>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

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
  explicit GatedStore(Rules rules) : scratch(rules) {
    scratch.Pull(kImage, kRef, WithSecret(kSecretA));
    if (rules == Rules::kClosed) {
      Must(scratch->AddToLedger({.id = std::string(kRef2)}, "test", "preloaded"));
    }
    scratch.Stop();
    OpenOptions options = scratch.Options({});
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
    ScratchStore store(Rules::kKubelet);
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
  UnderBothRules([](Rules rules) {
    GatedStore gated(rules);
    const std::lock_guard held(gated.gate);  // nothing is written meanwhile
    BOOST_TEST(!MustPull(*gated.store, kRef, kRotated, Way::kAtHand));
    BOOST_TEST(!MustPull(*gated.store, kRef, kRotated, Way::kAtHand));
    BOOST_TEST(!MustPull(*gated.store, kRef, kSecretA, Way::kAtHand));
    // Another image's: it is preloaded.
    BOOST_TEST(!MustPull(*gated.store, kRef2, kSecretB, Way::kAtHand));
    if (rules == Rules::kClosed) {
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
    GatedStore gated(Rules::kKubelet);
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
      store.clock().AdvanceSeconds(30);
      BOOST_REQUIRE(!MustPull(*store, kRef, kRotated, Way::kAtHand));
      const auto report = Must(store->PruneBefore({{.id = std::string(kRef2)}}, until));
      BOOST_TEST(report.removed == 0U);
      BOOST_TEST(report.kept_newer == 1U);
      Must(store->DeleteRecord({.image_ref = kRef}));
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
