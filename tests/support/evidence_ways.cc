#include "tests/support/evidence_ways.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

namespace {

using std::chrono::hours;

// A digest of one hexadecimal digit.
std::string Sha(char digit) { return "sha256:" + std::string(64, digit); }

const std::string kApp = "registry.example.com/x/app:v1";
const std::string kAppByDigest = "registry.example.com/x/app@" + Sha('d');
const std::string kAppId = Sha('a');
const std::string kPause = "registry.k8s.io/pause:3.10";
const std::string kPauseId = Sha('0');

ListedImage App() { return {.id = kAppId, .repo_tags = {kApp}, .repo_digests = {kAppByDigest}}; }
ListedImage Pause() {
  return {
      .id = kPauseId, .repo_tags = {kPause}, .repo_digests = {"registry.k8s.io/pause@" + Sha('e')}};
}
ImagePullCredentials ProofsOfX() { return WithSecret(MakeSecret("x", "pull", "uid-x", "hash-x")); }
ImagePullCredentials TenantY() { return WithSecret(MakeSecret("y", "pull", "uid-y", "hash-y")); }

// A node that came up with the image `pause`, and lists its images whenever it looks.
class Node {
 public:
  explicit Node(Mode rules) : rules_(rules) { Boot(); }

  NodeStore* operator->() { return store_.get(); }

  void Arrives(ListedImage image) { images_.push_back(std::move(image)); }
  void Passes(std::chrono::seconds time) { clock_.AdvanceSeconds(time.count()); }

  // The process that pulls dies, and a new one comes up.
  void Dies() {
    Stop();
    Boot();
  }
  void LosesItsStore() {
    Stop();
    std::filesystem::remove_all(scratch_ / "store");
    Boot();
  }
  void Stop() {
    if (store_) Must(store_->Close());
    store_.reset();
  }
  void Boot(Gap gap = Gap::kNo) {
    NodeStoreOptions options = OptionsIn(scratch_.path(), rules_);
    options.images_on_node = images_;
    options.gap = gap;
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    store_ = Must(NodeStore::Open(std::move(options)));
  }

  // What a node does every few minutes.
  void Looks() {
    const ListToken token = Must(store_->BeginList());
    Must(store_->ObserveImages({.images = images_, .token = token, .complete = true}));
  }

  PullId Begins(std::string_view image, std::string_view handler = {}) {
    return Must(store_->RecordPullIntent({.image = image, .runtime_handler = handler}));
  }
  void Fails(std::string_view image, PullId pull, PullOutcome how) {
    Must(store_->RecordImagePullFailed({.image = image}, how, pull));
  }
  void Succeeds(std::string_view image, std::string_view ref, PullId pull,
                const ImagePullCredentials& credentials) {
    Must(
        store_->RecordImagePulled({.image = image, .image_ref = ref}, credentials, {.pull = pull}));
  }

  // As the kubelet's adapter does: on a miss it lists, and asks again.
  Decision Asks(std::string_view image, std::string_view ref) {
    FixedCredentials none({});
    const ImageCopy copy = {.image = image, .image_ref = ref};
    const Decision first = store_->MustAttemptPull(copy, none);
    if (!first.pull) return first;
    Looks();
    return store_->MustAttemptPull(copy, none);
  }

 private:
  TempDir scratch_;
  Mode rules_;
  FakeClock clock_;
  std::vector<ListedImage> images_ = {Pause()};
  std::unique_ptr<NodeStore> store_;
};

// --- What the runtime calls an image

Decision RecordUnderId(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kApp);
  node.Arrives(App());
  node.Succeeds(kApp, kAppId, pull, ProofsOfX());
  node.Looks();
  return node.Asks(kApp, kAppByDigest);
}

Decision RuntimeUpgradeChangesRefs(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kApp);
  node.Arrives(App());
  node.Succeeds(kApp, kAppByDigest, pull, ProofsOfX());
  node.Dies();
  node.Looks();
  return node.Asks(kAppByDigest, kAppId.substr(7));
}

// --- Late arrivals

Decision AskedByShortName(Mode rules) {
  Node node(rules);
  node.Begins("quay.example/org/app:1");
  node.Dies();
  node.Arrives({.id = kAppId, .repo_tags = {"quay.example/org/app:1"}});
  return node.Asks("org/app:1", kAppId);
}

Decision LongPullFails(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kApp);
  for (int i = 0; i < 25; ++i) {
    node.Passes(hours(1));
    node.Looks();
  }
  node.Fails(kApp, pull, PullOutcome::kFailed);
  const ListToken token = Must(node->BeginList());
  Must(node->Prune({Pause()}, token));
  node.Arrives(App());
  return node.Asks(kApp, kAppId);
}

Decision AppliedListIsOld(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kApp);
  node.Fails(kApp, pull, PullOutcome::kUnknown);
  const ListToken token = Must(node->BeginList());
  const ImageList drawn{.images = {Pause(), App()}, .token = token, .complete = true};
  node.Passes(hours(25));
  node.Arrives(App());
  Must(node->ObserveImages(drawn));
  return node.Asks(kApp, kAppId);
}

// --- Losses and gaps

Decision StoreLostAndTrusted(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kApp);
  node.Arrives(App());
  node.Succeeds(kApp, kAppId, pull, ProofsOfX());
  node.LosesItsStore();
  Must(node->ClearDistrust("the disk was replaced",
                           {.images = std::vector<ListedImage>{Pause(), App()}}));
  return node.Asks(kApp, kAppId);
}

// The pull began before the loss, and nobody knows of it any more.
Decision ArrivesAfterTrust(Mode rules) {
  Node node(rules);
  node.Begins(kApp);
  node.LosesItsStore();
  Must(node->ClearDistrust("the disk was replaced", {.images = std::vector<ListedImage>{Pause()}}));
  node.Arrives(App());
  return node.Asks(kApp, kAppId);
}

// A kubelet without waybill pulled; its pull ends after the list that closed the gap.
Decision ArrivesAfterGap(Mode rules) {
  Node node(rules);
  node.Stop();
  node.Boot(Gap::kYes);
  node.Arrives(App());
  return node.Asks(kApp, kAppId);
}

// --- Preloaded images

Decision TenantMistypesTag(Mode rules) {
  Node node(rules);
  node.Looks();
  const PullId pull = node.Begins("registry.k8s.io/pause:typo");
  node.Fails("registry.k8s.io/pause:typo", pull, PullOutcome::kUnknown);
  node.Looks();
  return node.Asks(kPause, kPauseId);
}

Decision TenantCopiesPreloadedImage(Mode rules) {
  Node node(rules);
  node.Looks();
  const std::string copy = "registry.example.com/y/pause:mine";
  const PullId pull = node.Begins(copy);
  node.Succeeds(copy, kPauseId, pull, TenantY());
  return node.Asks(kPauseId, kPauseId);
}

Decision TenantPullsById(Mode rules) {
  Node node(rules);
  node.Looks();
  const PullId pull = node.Begins(kPauseId);
  node.Fails(kPauseId, pull, PullOutcome::kUnknown);
  return node.Asks(kPause, kPauseId);
}

constexpr std::array kPrivate = {
    EvidenceWay{"record_under_id_asked_by_digest",
                "the record has its ID, a pod asks by its digest", true, true, false,
                RecordUnderId},
    EvidenceWay{"runtime_upgrade_changes_refs", "an upgrade of the runtime changes every image ref",
                true, true, false, RuntimeUpgradeChangesRefs},
    EvidenceWay{"asked_by_short_name", "pulled by its full name, asked for by a short one", true,
                true, false, AskedByShortName},
    EvidenceWay{"long_pull_fails", "a pull fails after 25 hours, and brought its image", true, true,
                false, LongPullFails},
    EvidenceWay{"applied_list_is_old", "a list of the day before is applied", true, true, false,
                AppliedListIsOld},
    EvidenceWay{"store_lost_and_trusted", "the records were lost, and an operator said: all right",
                true, true, false, StoreLostAndTrusted},
    EvidenceWay{"arrives_after_trust", "the same, and it arrives after the operator's word", true,
                true, false, ArrivesAfterTrust},
    EvidenceWay{"arrives_after_a_gap", "a kubelet without waybill pulled it, and it arrives late",
                true, true, false, ArrivesAfterGap},
};

constexpr std::array kPreloaded = {
    EvidenceWay{"tenant_mistypes_the_tag", "a tenant asks for pause:typo, and is deleted", true,
                true, true, TenantMistypesTag},
    EvidenceWay{"tenant_copies_a_preloaded_image",
                "a tenant pulls a copy out of his own repository", false, false, true,
                TenantCopiesPreloadedImage},
    EvidenceWay{"tenant_pulls_by_id", "a tenant asks for its ID, and is deleted", true, true, true,
                TenantPullsById},
};

}  // namespace

std::span<const EvidenceWay> WaysToAPrivateImage() { return kPrivate; }
std::span<const EvidenceWay> WaysToAPreloadedImage() { return kPreloaded; }

}  // namespace waybill::testing
