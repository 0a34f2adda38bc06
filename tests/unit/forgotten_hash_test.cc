// A hash that was forgotten opens nothing where a Secret is rotated to it, and takes the place of
// nothing that was proven.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(forgotten_hash)

namespace {

constexpr std::string_view kOther = "registry.example.com/other:v1";
// Another Secret held it.
constexpr const char* kForgotten = "hash-x";
const ImagePullSecret kElsewhere = MakeSecret("team-x", "pull", "uid-x", kForgotten);
// The Secret A, rotated to it.
const ImagePullSecret kRotated = MakeSecret("team-a", "pull", "uid-a", kForgotten);

enum class Way : std::uint8_t { kFetched, kAtHand, kDeferred };
constexpr Way kWays[] = {Way::kFetched, Way::kAtHand, Way::kDeferred};

bool MustPull(NodeStore& store, const ImagePullSecret& secret, Way way = Way::kFetched,
              std::string_view ref = kRef) {
  const ImageCopy copy = {.image = kImage, .image_ref = ref};
  Pod pod(secret);
  if (way == Way::kFetched) return store.MustAttemptPull(copy, pod).pull;
  const PodCredentials credentials = Must(pod.Fetch());
  if (way == Way::kAtHand) {
    FixedCredentials fixed(credentials);
    return store.MustAttemptPull(copy, fixed).pull;
  }
  DeferredCredentials late;
  const Decision first = store.MustAttemptPull(copy, late);
  if (first.reason != Reason::kCredentialsNeeded) return first.pull;
  late.Provide(credentials);
  return store.MustAttemptPull(copy, late).pull;
}

using Secrets = std::vector<ImagePullSecret>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_rotated_secret_that_shows_it_opens_nothing_and_what_was_proven_stays) {
  for (const Way way : kWays) {
    UnderBothRules([&](Rules rules) {
      ScratchStore store(rules);
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      store.Pull(kOther, kRef2, WithSecret(kElsewhere));
      BOOST_TEST(Must(store->ForgetCredential(kForgotten)).secrets == 1U);
      for (int again = 0; again < 2; ++again) {
        BOOST_TEST(MustPull(*store, kRotated, way));
        Must(store->Flush());
        BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA}));
      }
      store.Stop();
      {
        const auto observer =
            Must(NodeStore::Observe({.directory = store.directory(), .rules = rules}));
        BOOST_TEST(MustPull(*observer, kRotated, way));
        BOOST_TEST(!MustPull(*observer, kSecretA, way));
      }
      store.Start();
      BOOST_TEST(MustPull(*store, kRotated, way));
      BOOST_TEST(!MustPull(*store, kSecretA, way));
      // Another hash that it is rotated to goes on.
      BOOST_TEST(!MustPull(*store, MakeSecret("team-a", "pull", "uid-a", "hash-new"), way));
    });
  }
}

// A pull that began since the hash was forgotten proved another one.
BOOST_AUTO_TEST_CASE(coordinates_that_were_proven_later_do_not_open_it) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kOther, kRef2, WithSecret(kElsewhere));
    Must(store->ForgetCredential(kForgotten));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(MustPull(*store, kRotated));
    Must(store->Flush());
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA}));
    // A pull that proves it opens.
    store.Pull(kImage, kRef, WithSecret(kRotated));
    BOOST_TEST(!MustPull(*store, kRotated));
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kRotated}));
  });
}

// Nothing in the store has it, and no pull is open: a Secret may be rotated to it all the same.
BOOST_AUTO_TEST_CASE(a_hash_that_nothing_has_yet_is_kept_from_coming) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const ForgetReport report = Must(store->ForgetCredential(kForgotten));
    BOOST_TEST(report.records == 0U);
    BOOST_TEST(report.stored);
    BOOST_TEST(MustPull(*store, kRotated));
    BOOST_TEST(!MustPull(*store, kSecretA));
  });
}

BOOST_AUTO_TEST_CASE(it_is_kept_as_long_as_a_secret_could_be_rotated_to_it) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->ForgetCredential(kForgotten));
    store.clock().AdvanceSeconds(std::int64_t{31} * 86400);
    store.Restart();
    BOOST_TEST(MustPull(*store, kRotated));
    // Also one that was proven later: with another hash.
    Must(store->ForgetImage({.image_ref = kRef}));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().Reboot();
    store.clock().AdvanceSeconds(std::int64_t{31} * 86400);
    store.Restart();
    BOOST_TEST(!MustPull(*store, kSecretA));
    BOOST_TEST(MustPull(*store, kRotated));
    Must(store->ForgetImage({.image_ref = kRef}));
    store.Restart();
    for (const Revocation& one : Must(store->ListRevocations())) {
      BOOST_TEST((one.kind == RevocationKind::kImage));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_pull_that_began_before_replaces_nothing) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const PullId before = Must(store->RecordPullIntent(copy));
    Must(store->ForgetCredential(kForgotten));
    Must(store->RecordImagePulled(copy, WithSecret(kRotated), {.pull = before}));
    BOOST_TEST(MustPull(*store, kRotated));
    BOOST_TEST(!MustPull(*store, kSecretA));
    // Nor does one that proves several.
    const PullId second = Must(store->RecordPullIntent(copy));
    Must(store->ForgetCredential(kForgotten));
    ImagePullCredentials both = WithSecret(kRotated);
    both.kubernetes_secrets.push_back(kSecretB);
    Must(store->RecordImagePulled(copy, both, {.pull = second}));
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA, kSecretB}));
    // One that begins now does.
    store.Pull(kImage, kRef, WithSecret(kRotated));
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kRotated, kSecretB}));
    BOOST_TEST(!MustPull(*store, kRotated));
  });
}

BOOST_AUTO_TEST_CASE(an_image_that_was_open_to_all_for_a_late_pull_replaces_nothing) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const PullId before = Must(store->RecordPullIntent(copy));
    Must(store->ForgetImage(copy));
    const PullId after = Must(store->RecordPullIntent(copy));
    if (rules == Rules::kClosed) {
      Must(store->RecordImagePulled(copy, WithSecret(kSecretA), {.pull = after}));
      Must(store->RecordImagePulled(copy, NodeWide(), {.pull = before}));
      BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA}));
    }
    BOOST_TEST(MustPull(*store, kSecretB));
  });
}

// As the kubelet's own manager does, which compares by itself.
BOOST_AUTO_TEST_CASE(a_whole_record_with_it_keeps_what_it_would_replace) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    Must(store->ForgetCredential(kForgotten));
    ImagePulledRecord record = Must(store->GetRecord({.image_ref = kRef}));
    Secrets& secrets = record.credential_mapping.at(std::string(kName)).kubernetes_secrets;
    secrets = {kRotated, kSecretB};
    Must(store->PutRecord(record));
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA, kSecretB}));
    BOOST_TEST(MustPull(*store, kRotated));
    // A pull of the image name that runs may have proven it.
    Must(store->PutIntent({.image = kImage}));
    Must(store->PutRecord(record));
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kRotated, kSecretB}));
    BOOST_TEST(!MustPull(*store, kRotated));
  });
}

// The Secret was forgotten by its name, and proven anew. A pod shows it with a hash that another
// Secret proved before that.
BOOST_AUTO_TEST_CASE(a_copied_secret_does_not_take_the_place_of_what_was_proven_anew) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->ForgetSecret({"team-a", "pull", {}}));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!MustPull(*store, MakeSecret("team-a", "pull", "uid-a", "hash-b")));
    Must(store->Flush());
    BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA, kSecretB}));
  });
}

BOOST_FIXTURE_TEST_CASE(a_kubelets_file_under_another_spelling_replaces_nothing, ClosedStore) {
  Must(store->ForgetCredential(kForgotten));
  const auto write = [&](std::string_view ref, std::int64_t seconds, Secrets secrets) {
    ImagePulledRecord record = {.image_ref = std::string(ref),
                                .last_updated = Timestamp{seconds, 0}};
    record.credential_mapping[std::string(kName)].kubernetes_secrets = std::move(secrets);
    WriteRecordFile(store.kubelet_directory(), "pulled", ref, EncodePulledRecord(record));
  };
  write(kRef, 1000, {kSecretA});
  write(kRef.substr(kRef.find(':') + 1), 2000, {kRotated, kSecretB});
  store.Restart();
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  BOOST_TEST((EntryOf(store).kubernetes_secrets == Secrets{kSecretA, kSecretB}));
  BOOST_TEST(MustPull(*store, kRotated));
}

BOOST_AUTO_TEST_CASE(a_restored_store_keeps_it_forgotten) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const std::string backup = Must(store->MakeBackup()).path;
    Must(store->ForgetCredential(kForgotten));
    store.Stop();
    Must(Restore({.directory = store.directory(), .backup = backup}));
    store.Start();
    BOOST_TEST(MustPull(*store, kRotated));
    BOOST_TEST(!MustPull(*store, kSecretA));
  });
}

// A limit: "A credential that is forgotten by its hash still opens, by the coordinates"
BOOST_FIXTURE_TEST_CASE(a_kubelet_that_compares_by_itself_does_not_know_of_it, KubeletStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Must(store->ForgetCredential(kForgotten));
  BOOST_TEST(MustPull(*store, kRotated));
  // A store without the revocation, under the kubelet's rules, is the kubelet after an export.
  ScratchStore kubelet(Rules::kKubelet);
  Must(store->Export({.kubelet_directory = kubelet.kubelet_directory()}));
  kubelet.Restart();
  BOOST_TEST(!MustPull(*kubelet, kRotated));
}

// Version 5 has no place for the hash: a Secret that is rotated to it would open by its
// coordinates.
BOOST_AUTO_TEST_CASE(going_down_a_version_ends_closed) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef2, WithServiceAccount(kBuilder));
    Must(store->ForgetCredential(kForgotten));
    store.Stop();
    const MigrationReport down =
        Must(Migrate({.directory = store.directory(), .to = 5, .accept_loss = true}));
    BOOST_TEST(down.losses.size() == 2U);
    store.Start();
    BOOST_TEST(MustPull(*store, kRotated));
    Pod builder(kBuilder);
    BOOST_TEST(!store.Check(kImage, kRef2, builder).pull);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
