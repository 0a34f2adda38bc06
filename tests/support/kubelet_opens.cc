#include "tests/support/kubelet_opens.h"

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

namespace {

constexpr std::string_view kImage = "registry.example.com/x/app:v1";
constexpr std::string_view kImageRef =
    "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr std::string_view kOtherRef =
    "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
constexpr std::string_view kDigest =
    "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

ImagePullCredentials TenantX() { return WithSecret(MakeSecret("x", "pull", "uid-x", "hash-x")); }

ListedImage Listed(std::string_view ref, std::string tag) {
  return {.id = std::string(ref), .repo_tags = {std::move(tag)}};
}

std::string ByDigest() { return "registry.example.com/x/app@" + std::string(kDigest); }

// The image has arrived: the runtime lists it, beside others. The kubelet makes nothing of that.
Decision AskedOnArrival(ScratchStore& store, std::string_view image, const ListedImage& arrived,
                        std::vector<ListedImage> others = {}) {
  ImageList list{.images = std::move(others), .complete = true};
  list.images.push_back(arrived);
  list.token = Must(store->BeginList());
  Must(store->ObserveImages(list));
  return store.Check(image, arrived.id);
}

// --- Garbage collection

// Both images are on the node. The kubelet hands over those that it looked at and kept; the closed
// rules ask for the complete list.
Decision CollectorForgets(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, kImageRef, TenantX());
  store.clock().AdvanceSeconds(3600);
  if (rules == Mode::kKubelet) {
    Must(store->PruneBefore({{.id = std::string(kOtherRef)}}, store.clock().Now()));
  } else {
    const ListToken token = Must(store->BeginList());
    Must(store->Prune({{.id = std::string(kImageRef)}, {.id = std::string(kOtherRef)}}, token));
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
  store.Restart({Listed(kOtherRef, std::string(kImage))});
  return AskedOnArrival(store, kImage, Listed(kImageRef, std::string(kImage)),
                        {{.id = std::string(kOtherRef)}});
}

// The kubelet died in mid-pull; after the start another pod's pull of the same image fails, and
// then the runtime finishes what it began.
Decision FailedPullDropsIntent(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  store.Restart();
  Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePullFailed({.image = kImage}));
  return AskedOnArrival(store, kImage, Listed(kImageRef, std::string(kImage)));
}

// While it is being pulled by tag, a pod asks for the same image by digest.
Decision AskedByDigest(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  return AskedOnArrival(store, ByDigest(),
                        {.id = std::string(kImageRef), .repo_digests = {ByDigest()}});
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
  return AskedOnArrival(store, kImage, Listed(kImageRef, std::string(kImage)));
}

// The kubelet died in mid-pull, and the image arrives after the start. A pod names it by its ID.
Decision AskedById(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  store.Restart();
  return AskedOnArrival(store, kImageRef, Listed(kImageRef, std::string(kImage)));
}

// A pull by tag and digest is cut short. The runtime lists what it brought by digest only.
Decision TagAndDigestCutShort(Mode rules) {
  ScratchStore store(rules);
  const std::string image = std::string(kImage) + "@" + std::string(kDigest);
  Must(store->RecordPullIntent({.image = image}));
  store.Restart({{.id = std::string(kImageRef), .repo_digests = {ByDigest()}}});
  return store.Check(kImageRef, kImageRef);
}

// A first pull is cancelled, the tag moves, a second pull succeeds. Then the first one's image
// arrives.
Decision SuccessForgetsOthers(Mode rules) {
  ScratchStore store(rules);
  Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePullFailed({.image = kImage}, PullOutcome::kUnknown));
  store.Pull(kImage, kOtherRef, TenantX());
  return AskedOnArrival(store, ByDigest(),
                        {.id = std::string(kImageRef), .repo_digests = {ByDigest()}},
                        {Listed(kOtherRef, std::string(kImage))});
}

// --- Image refs

// The runtime returned a repo digest when it pulled; after an upgrade it names the image by its ID.
Decision RuntimeChangesRefs(Mode rules) {
  ScratchStore store(rules);
  store.Pull(kImage, ByDigest(), TenantX());
  ListedImage listed = Listed(kImageRef, std::string(kImage));
  listed.repo_digests = {ByDigest()};
  return AskedOnArrival(store, kImage, listed);
}

constexpr std::array kWays = {
    Way{"garbage_collection_forgets", "garbage collection is handed part of the images", true, true,
        CollectorForgets},
    Way{"garbage_collection_cuts_to_seconds", "a pull ends in the second the collector began", true,
        true, CollectorCutsToSeconds},
    Way{"garbage_collection_misses_a_confirmation",
        "a pull that adds nothing ends while the collector runs", true, true,
        CollectorMissesConfirmation},
    Way{"power_cut_after_a_pull", "the power fails right after a pull", true, false,
        PowerCutAfterPull},
    Way{"empty_record_file", "a power cut left an empty record file", false, false,
        EmptyRecordFile},
    Way{"wiped_directory", "the directory with the records is wiped", true, false, WipedDirectory},
    Way{"half_restored_directory", "the records are put back from an older copy", true, false,
        HalfRestoredDirectory},
    Way{"another_ref_inside", "a record file holds another image's record", true, false,
        AnotherRefInside},
    Way{"replay_matches_an_older_image", "at a restart an older image has the tag being pulled",
        true, true, ReplayMatchesOlderImage},
    Way{"failed_pull_drops_an_inherited_intent",
        "after a restart in mid-pull another pod's pull fails", true, true, FailedPullDropsIntent},
    Way{"asked_by_digest_while_pulled_by_tag",
        "an image being pulled by tag is asked for by digest", true, true, AskedByDigest},
    Way{"short_name_never_matches_at_start",
        "an intent has a short name, the runtime lists the full one", true, true,
        ShortNameNeverMatches},
    Way{"short_name_has_an_alias", "the runtime has an alias for a short name being pulled", true,
        true, ShortNameHasAlias},
    Way{"asked_by_id_after_a_crash", "after a crash in mid-pull the image is asked for by its ID",
        true, true, AskedById},
    Way{"tag_and_digest_cut_short", "a pull by tag and digest is cut short; asked for by ID", true,
        true, TagAndDigestCutShort},
    Way{"a_success_forgets_a_cancelled_pull",
        "a pull is cancelled, the tag moves, another pull succeeds", true, true,
        SuccessForgetsOthers},
    Way{"the_runtime_changes_its_refs", "pulled under a repo digest, asked for by ID", true, true,
        RuntimeChangesRefs},
};

}  // namespace

std::span<const Way> WaysTheKubeletOpens() { return kWays; }

}  // namespace waybill::testing
