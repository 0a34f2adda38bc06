#include "tests/support/ways.h"

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

// A digest of one hexadecimal digit.
std::string Sha(char digit) { return "sha256:" + std::string(64, digit); }

const std::string kImage = "registry.example.com/x/app:v1";
const std::string kImageRef = Sha('a');
const std::string kOtherRef = Sha('b');
const std::string kDigest = Sha('d');
const std::string kByDigest = "registry.example.com/x/app@" + kDigest;
const std::string kPause = "registry.k8s.io/pause:3.10";
const std::string kPauseId = Sha('0');

ImagePullCredentials TenantX() { return WithSecret(MakeSecret("x", "pull", "uid-x", "hash-x")); }

ListedImage Listed(std::string ref, std::string tag) {
  return {.id = std::move(ref), .repo_tags = {std::move(tag)}};
}
ListedImage App() { return {.id = kImageRef, .repo_tags = {kImage}, .repo_digests = {kByDigest}}; }
ListedImage Pause() { return Listed(kPauseId, kPause); }

// The image has arrived: the runtime lists it, beside others. The kubelet makes nothing of that.
Decision AskedOnArrival(ScratchStore& store, std::string_view image, const ListedImage& arrived,
                        std::vector<ListedImage> others = {}) {
  ImageList list{.images = std::move(others), .complete = true};
  list.images.push_back(arrived);
  list.token = Must(store->BeginList());
  Must(store->ObserveImages(list));
  return store.Check(image, arrived.id);
}

// A node that came up with the image `pause`, and lists its images whenever it looks.
class Node : public ScratchStore {
 public:
  explicit Node(Mode rules) : ScratchStore(rules, {}, {Pause()}) {}

  void Arrives(ListedImage image) { images_.push_back(std::move(image)); }
  void PassHours(std::int64_t hours) { clock().AdvanceSeconds(hours * 3600); }

  // The process that pulls dies, and a new one comes up.
  void Dies() { Restart(images_); }
  void LosesItsStore() {
    Stop();
    std::filesystem::remove_all(directory());
    Start(images_);
  }

  // What a node does every few minutes.
  void Looks() {
    ImageList list{.images = images_, .complete = true};
    list.token = Must((*this)->BeginList());
    Must((*this)->ObserveImages(list));
  }

  PullId Begins(std::string_view image) {
    return Must((*this)->RecordPullIntent({.image = image}));
  }
  void Fails(std::string_view image, PullId pull, PullOutcome how) {
    Must((*this)->RecordImagePullFailed({.image = image}, how, pull));
  }

  // As the kubelet's adapter does: on a miss it lists, and asks again.
  Decision Asks(std::string_view image, std::string_view ref) {
    const Decision first = Check(image, ref);
    if (!first.pull) return first;
    Looks();
    return Check(image, ref);
  }

 private:
  std::vector<ListedImage> images_ = {Pause()};
};

// --- Garbage collection

// Both images are on the node. The kubelet hands over those that it looked at and kept; the closed
// rules ask for the complete list.
Decision CollectorForgets(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, kImageRef, TenantX());
  store.clock().AdvanceSeconds(3600);
  if (rules == Mode::kKubelet) {
    Must(store->PruneBefore({{.id = kOtherRef}}, store.clock().Now()));
  } else {
    const ListToken token = Must(store->BeginList());
    Must(store->Prune({{.id = kImageRef}, {.id = kOtherRef}}, token));
  }
  return store.Check(kImage, kImageRef);
}

// The collector begins at half past, lists the images, and the pull ends a moment later.
Decision CollectorCutsToSeconds(Mode rules) {
  ScratchStore store(rules);
  const Timestamp began{kFakeEpoch + 60, 500'000'000};
  const ListToken token = Must(store->BeginList());
  store.clock().Set({kFakeEpoch + 60, 700'000'000});
  store.Pull(kImage, kImageRef, TenantX());
  Must(rules == Mode::kKubelet ? store->PruneBefore({}, began, {.allow_empty = true})
                               : store->Prune({}, token, {.allow_empty = true}));
  return store.Check(kImage, kImageRef);
}

// The image was gone when the collector made its list, and is pulled again, with the secret that is
// known already, before the collector gets to prune.
Decision CollectorMissesConfirmation(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, kImageRef, TenantX());
  store.clock().AdvanceSeconds(3600);
  const Timestamp began = store.clock().Now();
  const ListToken token = Must(store->BeginList());
  store.clock().AdvanceSeconds(60);
  store.Pull(kImage, kImageRef, TenantX());
  if (rules == Mode::kKubelet) {
    Must(store->PruneBefore({}, began, {.allow_empty = true}));
  } else {
    Must(store->Prune({}, token, {.allow_empty = true}));
  }
  return store.Check(kImage, kImageRef);
}

// --- Lost and damaged files

// A process that dies as soon as the pull is acknowledged: nothing is closed, nothing flushed.
Decision PowerCutAfterPull(Mode rules) {
  ScratchStore store(rules);
  store.Stop();
  Child child([&] {
    auto opened = NodeStore::Open(store.Options({}));
    const bool recorded =
        opened && (*opened)->RecordPullIntent({.image = kImage}) &&
        (*opened)->RecordImagePulled({.image = kImage, .image_ref = kImageRef}, TenantX());
    return recorded ? 0 : 1;
  });
  if (child.Wait() != 0) throw std::runtime_error("the process that pulls failed");
  store.Start();
  return store.Check(kImage, kImageRef);
}

// What such a cut left of a kubelet's own record, taken over.
Decision EmptyRecordFile(Mode rules) {
  ScratchStore store(rules);
  store.Stop();
  WriteRecordFile(store.kubelet_directory(), "pulled", kImageRef, "");
  store.Start();
  return store.Check(kImage, kImageRef);
}

// The store's directory is gone; the witness beside it is not.
Decision WipedDirectory(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, kImageRef, TenantX());
  store.Stop();
  std::filesystem::remove_all(store.directory());
  store.Start();
  return store.Check(kImage, kImageRef);
}

// A backup from before the pull is put back.
Decision HalfRestoredDirectory(Mode rules) {
  ScratchStore store(rules);
  store.Pull("registry.example.com/x/older:v1", kOtherRef, TenantX());
  store.Stop();
  const std::filesystem::path backup = store.scratch() / "backup";
  std::filesystem::copy(store.directory(), backup, std::filesystem::copy_options::recursive);
  store.Start();
  store.Pull(kImage, kImageRef, TenantX());
  store.Stop();
  std::filesystem::remove_all(store.directory());
  std::filesystem::rename(backup, store.directory());
  store.Start();
  return store.Check(kImage, kImageRef);
}

Decision AnotherRefInside(Mode rules) {
  ScratchStore store(rules);
  store.Stop();
  ImagePulledRecord record;
  record.image_ref = kOtherRef;
  record.last_updated = store.clock().Now();
  record.credential_mapping["registry.example.com/x/app"] = TenantX();
  WriteRecordFile(store.kubelet_directory(), "pulled", kImageRef, EncodePulledRecord(record));
  store.Start();
  return store.Check(kImage, kImageRef);
}

// --- Intents

// The kubelet died while it pulled a newer image of a tag. What the runtime lists under that tag is
// the older one; the newer arrives after the start.
Decision ReplayMatchesOlderImage(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  store.Restart({Listed(kOtherRef, kImage)});
  return AskedOnArrival(store, kImage, Listed(kImageRef, kImage), {{.id = kOtherRef}});
}

// The kubelet died in mid-pull; after the start another pod's pull of the same image fails, and
// then the runtime finishes what it began.
Decision FailedPullDropsIntent(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  store.Restart();
  Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePullFailed({.image = kImage}));
  return AskedOnArrival(store, kImage, Listed(kImageRef, kImage));
}

// While it is being pulled by tag, a pod asks for the same image by digest.
Decision AskedByDigest(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  return AskedOnArrival(store, kByDigest, {.id = kImageRef, .repo_digests = {kByDigest}});
}

// The pod wrote a short name; the runtime lists the full one, and so does the next pod.
Decision ShortNameNeverMatches(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = "tenant-x/app"}));
  store.Restart({Listed(kImageRef, "docker.io/tenant-x/app:latest")});
  return store.Check("docker.io/tenant-x/app:latest", kImageRef);
}

// CRI-O has an alias for a short name: the image arrives under another path.
Decision ShortNameHasAlias(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = "app:v1"}));
  store.Restart();
  return AskedOnArrival(store, kImage, Listed(kImageRef, kImage));
}

// The kubelet died in mid-pull, and the image arrives after the start. A pod names it by its ID.
Decision AskedById(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  store.Restart();
  return AskedOnArrival(store, kImageRef, Listed(kImageRef, kImage));
}

// A pull by tag and digest is cut short. The runtime lists what it brought by digest only.
Decision TagAndDigestCutShort(Mode rules) {
  ScratchStore store(rules);
  const std::string image = kImage + "@" + kDigest;
  Must(store->RecordPullIntent({.image = image}));
  store.Restart({{.id = kImageRef, .repo_digests = {kByDigest}}});
  return store.Check(kImageRef, kImageRef);
}

// A first pull is cancelled, the tag moves, a second pull succeeds. Then the first one's image
// arrives.
Decision SuccessForgetsOthers(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePullFailed({.image = kImage}, PullOutcome::kUnknown));
  store.Pull(kImage, kOtherRef, TenantX());
  return AskedOnArrival(store, kByDigest, {.id = kImageRef, .repo_digests = {kByDigest}},
                        {Listed(kOtherRef, kImage)});
}

// --- Image refs

// The runtime returned a repo digest when it pulled; after an upgrade it names the image by its ID.
Decision RuntimeChangesRefs(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, kByDigest, TenantX());
  ListedImage listed = Listed(kImageRef, kImage);
  listed.repo_digests = {kByDigest};
  return AskedOnArrival(store, kImage, listed);
}

// --- What the runtime calls an image

Decision RecordUnderId(Mode rules) {
  Node node(rules);
  node.Arrives(App());
  node.Pull(kImage, kImageRef, TenantX());
  node.Looks();
  return node.Asks(kImage, kByDigest);
}

Decision RuntimeUpgradeChangesRefs(Mode rules) {
  Node node(rules);
  node.Arrives(App());
  node.Pull(kImage, kByDigest, TenantX());
  node.Dies();
  node.Looks();
  return node.Asks(kByDigest, kImageRef.substr(7));
}

// --- Late arrivals

Decision AskedByShortName(Mode rules) {
  Node node(rules);
  node.Begins("quay.example/org/app:1");
  node.Dies();
  node.Arrives({.id = kImageRef, .repo_tags = {"quay.example/org/app:1"}});
  return node.Asks("org/app:1", kImageRef);
}

Decision LongPullFails(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kImage);
  for (int i = 0; i < 25; ++i) {
    node.PassHours(1);
    node.Looks();
  }
  node.Fails(kImage, pull, PullOutcome::kFailed);
  const ListToken token = Must(node->BeginList());
  Must(node->Prune({Pause()}, token));
  node.Arrives(App());
  return node.Asks(kImage, kImageRef);
}

Decision AppliedListIsOld(Mode rules) {
  Node node(rules);
  const PullId pull = node.Begins(kImage);
  node.Fails(kImage, pull, PullOutcome::kUnknown);
  const ListToken token = Must(node->BeginList());
  const ImageList drawn{.images = {Pause(), App()}, .token = token, .complete = true};
  node.PassHours(25);
  node.Arrives(App());
  Must(node->ObserveImages(drawn));
  return node.Asks(kImage, kImageRef);
}

// --- Losses and gaps

Decision StoreLostAndTrusted(Mode rules) {
  Node node(rules);
  node.Arrives(App());
  node.Pull(kImage, kImageRef, TenantX());
  node.LosesItsStore();
  Must(node->ClearDistrust("the disk was replaced",
                           {.images = std::vector<ListedImage>{Pause(), App()}}));
  return node.Asks(kImage, kImageRef);
}

// The pull began before the loss, and nobody knows of it any more.
Decision ArrivesAfterTrust(Mode rules) {
  Node node(rules);
  node.Begins(kImage);
  node.LosesItsStore();
  Must(node->ClearDistrust("the disk was replaced", {.images = std::vector<ListedImage>{Pause()}}));
  node.Arrives(App());
  return node.Asks(kImage, kImageRef);
}

// A kubelet without waybill pulled; its pull ends after the list that closed the gap.
Decision ArrivesAfterGap(Mode rules) {
  Node node(rules);
  node.Stop();
  NodeStoreOptions options = node.Options({Pause()});
  options.gap = Gap::kYes;
  Must(Must(NodeStore::Open(std::move(options)))->Close());
  node.Start({Pause()});
  node.Arrives(App());
  return node.Asks(kImage, kImageRef);
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
  node.Pull("registry.example.com/y/pause:mine", kPauseId,
            WithSecret(MakeSecret("y", "pull", "uid-y", "hash-y")));
  return node.Asks(kPauseId, kPauseId);
}

Decision TenantPullsById(Mode rules) {
  Node node(rules);
  node.Looks();
  const PullId pull = node.Begins(kPauseId);
  node.Fails(kPauseId, pull, PullOutcome::kUnknown);
  return node.Asks(kPause, kPauseId);
}

constexpr std::array kWays = {
    Way{"garbage collection is handed part of the images", true, true, false, CollectorForgets},
    Way{"a pull ends in the second the collector began", true, true, false, CollectorCutsToSeconds},
    Way{"a pull that adds nothing ends while the collector runs", true, true, false,
        CollectorMissesConfirmation},
    Way{"the power fails right after a pull", true, false, false, PowerCutAfterPull},
    Way{"a power cut left an empty record file", false, false, false, EmptyRecordFile},
    Way{"the directory with the records is wiped", true, false, false, WipedDirectory},
    Way{"the records are put back from an older copy", true, false, false, HalfRestoredDirectory},
    Way{"a record file holds another image's record", true, false, false, AnotherRefInside},
    Way{"at a restart an older image has the tag being pulled", true, true, false,
        ReplayMatchesOlderImage},
    Way{"after a restart in mid-pull another pod's pull fails", true, true, false,
        FailedPullDropsIntent},
    Way{"an image being pulled by tag is asked for by digest", true, true, false, AskedByDigest},
    Way{"an intent has a short name, the runtime lists the full one", true, true, false,
        ShortNameNeverMatches},
    Way{"the runtime has an alias for a short name being pulled", true, true, false,
        ShortNameHasAlias},
    Way{"after a crash in mid-pull the image is asked for by its ID", true, true, false, AskedById},
    Way{"a pull by tag and digest is cut short; asked for by ID", true, true, false,
        TagAndDigestCutShort},
    Way{"a pull is cancelled, the tag moves, another pull succeeds", true, true, false,
        SuccessForgetsOthers},
    Way{"pulled under a repo digest, asked for by ID", true, true, false, RuntimeChangesRefs},
};

constexpr std::array kPrivate = {
    Way{"the record has its ID, a pod asks by its digest", true, true, false, RecordUnderId},
    Way{"an upgrade of the runtime changes every image ref", true, true, false,
        RuntimeUpgradeChangesRefs},
    Way{"pulled by its full name, asked for by a short one", true, true, false, AskedByShortName},
    Way{"a pull fails after 25 hours, and brought its image", true, true, false, LongPullFails},
    Way{"a list of the day before is applied", true, true, false, AppliedListIsOld},
    Way{"the records were lost, and an operator said: all right", true, true, false,
        StoreLostAndTrusted},
    Way{"the same, and it arrives after the operator's word", true, true, false, ArrivesAfterTrust},
    Way{"a kubelet without waybill pulled it, and it arrives late", true, true, false,
        ArrivesAfterGap},
};

constexpr std::array kPreloaded = {
    Way{"a tenant asks for pause:typo, and is deleted", true, true, true, TenantMistypesTag},
    Way{"a tenant pulls a copy out of his own repository", false, false, true,
        TenantCopiesPreloadedImage},
    Way{"a tenant asks for its ID, and is deleted", true, true, true, TenantPullsById},
};

}  // namespace

std::span<const Way> WaysTheKubeletOpens() { return kWays; }
std::span<const Way> WaysToAPrivateImage() { return kPrivate; }
std::span<const Way> WaysToAPreloadedImage() { return kPreloaded; }

}  // namespace waybill::testing
