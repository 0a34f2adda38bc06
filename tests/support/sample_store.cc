#include "tests/support/sample_store.h"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "store/opening/witness.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

namespace {

std::string RefOf(const std::string& name) { return "sha256:" + Sha256Hex(name); }
std::string ImageOf(const std::string& name) { return "registry.example.com/" + name + ":v1"; }

ImagePullSecret SecretOf(const std::string& tenant, const std::string& password) {
  const std::string hex = Sha256Hex(tenant);
  const std::string uid = hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(12, 3) +
                          "-8" + hex.substr(15, 3) + "-" + hex.substr(18, 12);
  return MakeSecret(tenant, "pull", uid, Sha256Hex(password));
}

ImagePullCredentials Both(const ImagePullSecret& a, const ImagePullSecret& b) {
  ImagePullCredentials credentials;
  credentials.kubernetes_secrets = {a, b};
  return credentials;
}

// A pod whose file no kubelet takes: its user IDs are not its group IDs.
void WriteHeldPod(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  WriteFile(directory / "userns",
            R"({"uidMappings":[{"hostId":1310720,"containerId":0,"length":65536}],)"
            R"("gidMappings":[{"hostId":1376256,"containerId":0,"length":65536}]})");
}

}  // namespace

std::vector<Asking> AllAskings() {
  std::vector<Asking> all;
  for (const Mode rules : kBothRules) {
    for (const Verification mode :
         {Verification::kNeverVerifyPreloadedImages, Verification::kAlwaysVerify}) {
      all.push_back({rules, mode});
    }
  }
  return all;
}

std::vector<bool> Ask(NodeStore& store, const std::vector<Probe>& probes,
                      const VerificationPolicy* what_if) {
  std::vector<bool> answers;
  answers.reserve(probes.size());
  for (const Probe& probe : probes) {
    Pod pod(probe.secrets);
    const ImageCopy copy{.image = probe.image,
                         .image_ref = probe.image_ref,
                         .runtime_handler = probe.runtime_handler};
    const Decision decision = what_if != nullptr ? store.PreviewDecision(copy, pod, what_if)
                                                 : store.MustAttemptPull(copy, pod);
    answers.push_back(decision.pull);
  }
  return answers;
}

SampleStore MakeSampleStore(int more_records) {
  const ImagePullSecret a = SecretOf("tenant-a", "first password");
  const ImagePullSecret a_rotated = SecretOf("tenant-a", "second password");
  const ImagePullSecret b = SecretOf("tenant-b", "another password");
  // The first password under coordinates that the store never saw.
  ImagePullSecret thief = SecretOf("tenant-c", "first password");

  SampleStore sample;
  // It remembers no witness: its file is opened elsewhere, beside another one.
  ScratchStore store(Mode::kStrict, {}, {}, false);
  const auto note = [&] { sample.history.push_back(ReadFile(store.directory() / "data.mdb")); };
  WriteRecordFile(store.kubelet_directory(), "pulled", RefOf("unreadable"), "{");
  WriteRecordFile(store.kubelet_directory(), "pulling", ImageOf("unreadable-pull"), "{");
  ImagePreloadedRecord preloaded;
  preloaded.image_ref = RefOf("preloaded");
  preloaded.last_updated = Timestamp{kFakeEpoch, 0};
  preloaded.observed_images = {"registry.example.com/preloaded"};
  WriteRecordFile(store.kubelet_directory(), "observed-preloaded", preloaded.image_ref,
                  EncodePreloadedRecord(preloaded));
  WriteHeldPod(store.kubelet_directory() / "pods" / "held");
  store.Restart();
  note();

  const auto pull = [&](const std::string& name, const ImagePullCredentials& credentials,
                        std::string_view handler = {}) {
    Must(store->RecordPullIntent({.image = ImageOf(name), .runtime_handler = handler}));
    note();
    Must(store->RecordImagePulled(
        {.image = ImageOf(name), .image_ref = RefOf(name), .runtime_handler = handler},
        credentials));
    note();
  };
  const auto serve = [&](const Platform& guest) {
    Must(store->ReplaceRuntimeHandlers(
        {{"runc", true, true}, {"kata", false, false}, {"vm", false, false, guest}}));
    note();
  };
  const auto replace = [&](const std::string& name, const ImagePullCredentials& credentials) {
    ImagePulledRecord record;
    record.image_ref = RefOf(name);
    record.last_updated = store.clock().Now();
    record.credential_mapping["registry.example.com/" + name] = credentials;
    Must(store->PutRecord(record));
    note();
  };

  // What garbage collection will take, so that free pages and older ones hold it.
  const ListToken pruned = [&] {
    pull("pruned-open", NodeWide());
    pull("pruned", WithSecret(a));
    return Must(store->BeginList());
  }();
  pull("rotated", WithSecret(a));
  pull("two-secrets", Both(a, b));
  pull("was-open", NodeWide());
  pull("open", NodeWide());
  pull("of-a", WithSecret(a_rotated));
  pull("of-b", WithSecret(b));
  pull("deleted", WithSecret(a));
  pull("no-credentials", {});
  serve({"amd64", "windows", "10.0.17763"});
  pull("for-kata", WithSecret(a_rotated), "kata");
  pull("for-both", WithSecret(b));
  pull("for-both", WithSecret(a_rotated), "kata");
  pull("for-vm", NodeWide(), "vm");
  for (int i = 0; i < more_records; ++i) {
    pull("more-" + std::to_string(i), WithSecret(i % 2 == 0 ? a_rotated : b));
  }
  for (const char* name : {"in-flight", "of-a"}) {
    Must(store->PutIntent({.image = ImageOf(name)}));
    note();
  }
  pull("rotated", WithSecret(a_rotated));
  replace("two-secrets", WithSecret(b));
  Must(store->DeleteRecord({.image_ref = RefOf("deleted")}));
  note();
  std::vector<ListedImage> listed;
  for (const ImagePulledRecord& record : Must(store->ListRecords())) {
    if (record.image_ref != RefOf("pruned") && record.image_ref != RefOf("pruned-open")) {
      listed.push_back({.id = record.image_ref});
    }
  }
  if (Must(store->Prune(listed, pruned)).removed != 2) throw std::runtime_error("prune");
  note();
  // Evidence: an image under two refs; some that a list showed, preloaded or closed; one that an
  // operator no longer calls preloaded.
  const std::string digest = "registry.example.com/spelt@" + RefOf("spelt-digest");
  Must(store->RecordImagePulled(
      {.image = ImageOf("spelt"), .image_ref = RefOf("spelt")}, WithSecret(a_rotated),
      {.image = ListedImage{
           .id = RefOf("spelt"), .repo_tags = {ImageOf("spelt")}, .repo_digests = {digest}}}));
  note();
  for (const PullOutcome how : {PullOutcome::kUnknown, PullOutcome::kFailed}) {
    Must(store->RecordPullIntent({.image = ImageOf("cancelled")}));
    note();
    Must(store->RecordImagePullFailed({.image = ImageOf("cancelled")}, how));
    note();
  }
  ImageList list;
  for (const char* name : {"listed", "cancelled"}) {
    list.images.push_back({.id = RefOf(name), .repo_tags = {ImageOf(name)}});
  }
  // The unreadable intent is a pull of anything, which would close every image of the list.
  for (const UnresolvedPull& open : Must(store->ListOpenPulls())) {
    if (!open.anything) continue;
    Must(store->DropOpenPull(open.id, "it brought nothing"));
    note();
  }
  list.token = Must(store->BeginList());
  const ClassifyReport observed = Must(store->ObserveImages(list));
  if (observed.preloaded != 1 || observed.closed != 1) throw std::runtime_error("observe");
  note();
  for (const char* name : {"by-hand", "was-by-hand"}) {
    Must(store->AddToLedger({.id = RefOf(name), .repo_tags = {ImageOf(name)}}, "operator",
                            "imported by hand"));
    note();
  }
  Must(store->RemoveFromLedger({.image_ref = RefOf("was-by-hand")}, "it was a tenant's"));
  note();
  // An image that the kubelet pulled last: an older store knows nothing of it.
  pull("last", WithSecret(b));
  Must(store->PutIntent({.image = ImageOf("last-in-flight")}));
  note();
  Must(store->PutIntent({.image = ImageOf("in-flight-for-kata"), .runtime_handler = "kata"}));
  note();
  serve({"amd64", "windows", "10.0.20348"});
  note();
  // Ranges go from pod to pod: an older store gives them to the wrong ones.
  const auto give = [&](const std::string& uid, std::uint64_t block, std::uint64_t blocks = 1) {
    Must(store->AdoptUserNamespace(uid, block * kIdsPerBlock, blocks * kIdsPerBlock));
    note();
    sample.living.push_back({uid, block * kIdsPerBlock, blocks * kIdsPerBlock});
  };
  const auto take = [&](const std::string& uid) {
    Must(store->ReleaseUserNamespace(uid));
    note();
    std::erase_if(sample.living, [&](const LivingPod& pod) { return pod.uid == uid; });
  };
  give("0a1b2c3d-0000-4000-8000-000000000001", 3);
  give("gone", 4, 2);
  give("static-pod-with-a-name", 8, 4);
  take("gone");
  give("0a1b2c3d-0000-4000-8000-000000000002", 5);
  sample.living.push_back({"held", 20 * kIdsPerBlock, kIdsPerBlock});
  // The very last commit takes something away: to miss it is to open an image.
  replace("was-open", WithSecret(b));
  store.Stop();

  sample.database = ReadFile(store.directory() / "data.mdb");
  const auto inspection = InspectPath(store.directory() / "data.mdb");
  Must(internal::WitnessFile::Open(
      store.witness(),
      internal::ShutAt(inspection.identity->uuid, inspection.state->commit_sequence)));
  sample.witness = ReadFile(store.witness());

  const auto probe = [&](const std::string& image, const std::string& name,
                         std::vector<ImagePullSecret> secrets, const std::string& handler = {}) {
    sample.probes.push_back({image, RefOf(name), std::move(secrets), handler});
  };
  // Nobody's own secret with a rotated hash: a match by coordinates would be written back.
  for (const char* name : {"rotated", "two-secrets", "was-open", "of-a", "of-b", "last"}) {
    probe(ImageOf(name), name, {});
    probe(ImageOf(name), name, {thief});
    probe(ImageOf(name), name, {a_rotated});
    probe(ImageOf(name), name, {b});
  }
  for (const char* name : {"open", "deleted", "no-credentials", "in-flight", "last-in-flight",
                           "unreadable", "unreadable-pull", "unknown", "pruned"}) {
    probe(ImageOf(name), name, {thief});
  }
  for (const char* name : {"cancelled", "was-by-hand", "listed", "by-hand"}) {
    probe(ImageOf(name), name, {thief});
    probe(RefOf(name), name, {});
  }
  sample.probes.push_back({ImageOf("spelt"), digest, {thief}, ""});
  sample.probes.push_back({ImageOf("spelt"), digest, {a_rotated}, ""});
  for (const char* name : {"in-flight", "last-in-flight"}) {
    probe("registry.example.com/" + std::string(name) + ":v2", name, {});
  }
  for (const char* name : {"for-kata", "for-both", "for-vm", "in-flight-for-kata"}) {
    for (const char* handler : {"", "kata", "vm", "unknown"}) {
      probe(ImageOf(name), name, {a_rotated}, handler);
      probe(ImageOf(name), name, {b}, handler);
    }
  }
  probe("mirror.example.com/of-a", "of-a", {a_rotated});
  for (int i = 0; i < more_records; i += 8) {
    const std::string name = "more-" + std::to_string(i);
    probe(ImageOf(name), name, {});
  }
  return sample;
}

}  // namespace waybill::testing
