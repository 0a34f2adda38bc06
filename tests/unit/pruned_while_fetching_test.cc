// Rules::kKubelet: a record that is pruned while a decision fetches the pod's credentials. What the
// decision writes back stores it again, as in the kubelet: otherwise the image, which is in use,
// would pass for preloaded. The closed rules answer "pull".

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(pruned_while_fetching)

namespace {

const ImagePullSecret kRotated = MakeSecret("team-a", "pull", "uid-a", "hash-a-2");
const ImagePullSecret kCopied = MakeSecret("team-c", "copy", "uid-c", "hash-a");

// What the pod's decision says that begins before `meanwhile` and ends after it.
Decision DecideAround(ScratchStore& store, const ImagePullSecret& secret,
                      const std::function<void()>& meanwhile) {
  DeferredCredentials late;
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  BOOST_TEST(store->MustAttemptPull(copy, late).reason == Reason::kCredentialsNeeded);
  meanwhile();
  const ImagePullSecretView view(secret);
  late.Provide(PodCredentials{.secrets = {&view, 1}});
  const Decision decision = store->MustAttemptPull(copy, late);
  Must(store->Flush());
  return decision;
}

void PruneAll(ScratchStore& store) {
  const PruneReport pruned =
      Must(store->PruneBefore({}, Timestamp{4'000'000'000, 0}, {.allow_empty = true}));
  BOOST_TEST(pruned.removed == 1U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_back_stores_the_record_again) {
  for (const ImagePullSecret& shown : {kRotated, kCopied}) {
    ScratchStore store(Rules::kKubelet);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const Proof proof = EntryOf(store).kubernetes_secrets.at(0).proof;
    BOOST_TEST(!DecideAround(store, shown, [&] { PruneAll(store); }).pull);
    // A stranger.
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    BOOST_TEST(store.Check("registry.example.com/team/other:v1", kRef, Pod(kSecretB)).pull);
    // As a first entry of the kubelet: the pod's own secret, and no others.
    BOOST_TEST((EntryOf(store).kubernetes_secrets == std::vector<ImagePullSecret>{shown}));
    BOOST_TEST(EntryOf(store).kubernetes_secrets.at(0).proof.pull_began == proof.pull_began);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(shown)).pull);
    store.Restart();
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(shown)).pull);
  }
}

BOOST_FIXTURE_TEST_CASE(a_deleted_record_comes_back_likewise, KubeletStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(
      !DecideAround(store, kRotated, [&] { Must(store->DeleteRecord({.image_ref = kRef})); }).pull);
  BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
}

// The kubelet writes nothing then.
BOOST_FIXTURE_TEST_CASE(the_very_secret_writes_nothing_back, KubeletStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(!DecideAround(store, kSecretA, [&] { PruneAll(store); }).pull);
  BOOST_TEST(Must(store->ListRecords()).empty());
}

// The record says that the image was pulled, and nothing of what was forgotten.
BOOST_FIXTURE_TEST_CASE(what_was_forgotten_meanwhile_does_not_come_back_with_it, KubeletStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(!DecideAround(store, kCopied, [&] {
                Must(store->ForgetNamespace("team-c"));
                PruneAll(store);
              }).pull);
  for (const ImagePullSecret& secret : {kCopied, kSecretA, kSecretB}) {
    BOOST_TEST(store.Check(kImage, kRef, Pod(secret)).pull);
  }
}

// Of which guest's copy it was is not known any more.
BOOST_FIXTURE_TEST_CASE(another_guest_platform_meanwhile_takes_the_credentials, KubeletStore) {
  const auto handlers = [](std::optional<Platform> guest) {
    return std::vector<RuntimeHandler>{
        {.name = "runc", .is_default = true, .guest_platform = std::move(guest)}};
  };
  Must(store->ReplaceRuntimeHandlers(handlers(std::nullopt)));
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  static_cast<void>(DecideAround(store, kRotated, [&] {
    PruneAll(store);
    Must(store->ReplaceRuntimeHandlers(handlers(Platform{.architecture = "arm64", .os = "linux"})));
  }));
  BOOST_TEST(store.Check(kImage, kRef, Pod(kRotated)).pull);
  BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
}

BOOST_FIXTURE_TEST_CASE(the_closed_rules_answer_pull_and_write_nothing, ClosedStore) {
  store.RememberNothing();
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(DecideAround(store, kRotated, [&] { PruneAll(store); }).pull);
  BOOST_TEST(Must(store->ListRecords()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
