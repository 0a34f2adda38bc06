// What was forgotten stays forgotten, whichever way it might come back.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(revocation)

namespace {

const CredentialName kNameA = {"team-a", "pull", "uid-a"};

bool MustPull(ScratchStore& store, const ImagePullSecret& secret, std::string_view ref = kRef) {
  return store.Check(kImage, ref, Pod(secret)).pull;
}

// Two images: one that A and B opened and one that A did.
void PullTwo(ScratchStore& store) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Pull(kImage, kRef, WithSecret(kSecretB));
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
}

std::uint64_t Commits(ScratchStore& store) { return Must(store->GetStatistics()).commit_sequence; }

// Each way to forget the Secret A, and nothing of B.
using ForgetA = Result<ForgetReport> (*)(NodeStore& store);
const ForgetA kForgetHashA = [](NodeStore& store) { return store.ForgetCredential("hash-a"); };
const ForgetA kWaysToForgetA[] = {
    [](NodeStore& store) { return store.ForgetSecret(kNameA); },
    [](NodeStore& store) {
      return store.ForgetSecret({"team-a", "pull", {}});
    },
    [](NodeStore& store) { return store.ForgetNamespace("team-a"); },
    kForgetHashA,
    [](NodeStore& store) -> Result<ForgetReport> {
      auto done =
          store.Reconcile({.secrets = {{"team-b", "pull", "uid-b"}}}, Must(store.BeginList()));
      if (!done) return done.error();
      return done->forgotten;
    },
};

void ForEachWay(const std::function<void(ScratchStore& store, ForgetA forget)>& row) {
  for (std::size_t way = 0; way < std::size(kWaysToForgetA); ++way) {
    BOOST_TEST_CONTEXT("way " << way) {
      UnderBothRules([&](ScratchStore& store) { row(store, kWaysToForgetA[way]); });
    }
  }
}

}  // namespace

// A limit: "A pull that begins after a credential was forgotten"
BOOST_AUTO_TEST_CASE(a_forgotten_secret_opens_nothing_and_others_go_on) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    PullTwo(store);
    BOOST_TEST(!MustPull(store, kSecretA));
    const ForgetReport report = Must(forget(*store));
    BOOST_TEST(report.records == 2U);
    BOOST_TEST(report.secrets == 2U);
    BOOST_TEST(report.stored);
    BOOST_TEST(report.untidied == 0U);
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(MustPull(store, kSecretA, kRef2));
    BOOST_TEST(!MustPull(store, kSecretB));
    // The record stays, so the image is no preloaded one.
    BOOST_TEST(Must(store->GetRecord({.image_ref = kRef2})).credential_mapping.empty());
    Expect(store.Check(kImage, kRef2), true, CheckResult::kMustAuthenticate,
           Reason::kEntryWithoutCredentials);
    // A pull that begins now proves it anew.
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    BOOST_TEST(!MustPull(store, kSecretA, kRef2));
    store.Restart();
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(!MustPull(store, kSecretA, kRef2));
  });
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_remembered) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    const std::uint64_t before = Commits(store);
    const ForgetReport report = Must(forget(*store));
    BOOST_TEST(report.records == 0U);
    BOOST_TEST(Must(store->ListRevocations()).size() == (report.stored ? 1U : 0U));
    BOOST_TEST(Commits(store) - before <= 1U);
    // A kubelet's file that comes later brings it; of a truth its token is remembered.
    store.Stop();
    ImagePulledRecord record = {.image_ref = std::string(kRef2), .last_updated = Timestamp{1, 0}};
    record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA};
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef2, EncodePulledRecord(record));
    store.Start();
    BOOST_TEST(MustPull(store, kSecretA, kRef2) == report.stored);
  });
}

BOOST_AUTO_TEST_CASE(a_pull_that_began_before_does_not_bring_it_back) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    PullTwo(store);
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const PullId pull = Must(store->RecordPullIntent(copy));
    Must(forget(*store));
    Must(store->RecordImagePulled(copy, WithSecret(kSecretA), {.pull = pull}));
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(!MustPull(store, kSecretB));
  });
}

// Nobody says which of two pulls of one string fails, and which succeeds. Only what was forgotten
// since the older one began is lost.
BOOST_AUTO_TEST_CASE(a_success_beside_a_failure_proves_what_nobody_forgot) {
  ForEachWay([](ScratchStore& like, ForgetA forget) {
    for (const PullFailure failure :
         {PullFailure::kFailed, PullFailure::kUnknown, PullFailure::kNothingTransferred}) {
      for (const bool forgets : {false, true}) {
        ScratchStore store(like.rules());
        Must(forget(*store));
        const ImageCopy copy = {.image = kImage, .image_ref = kRef};
        Must(store->RecordPullIntent(copy));
        if (forgets) Must(forget(*store));
        Must(store->RecordPullIntent(copy));
        Must(store->RecordPullIntent(copy));
        Must(store->RecordImagePullFailed(copy, failure));
        Must(store->RecordImagePullFailed(copy, failure));
        Must(store->RecordImagePulled(copy, WithSecret(kSecretA)));
        BOOST_TEST(MustPull(store, kSecretA) == forgets);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_pull_in_flight_is_met_before_any_record_has_its_secret) {
  UnderBothRules([](ScratchStore& store) {
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const PullId pull = Must(store->RecordPullIntent(copy));
    const ForgetReport report = Must(store->ForgetSecret(kNameA));
    BOOST_TEST(report.records == 0U);
    BOOST_TEST(report.stored);
    Must(store->RecordImagePulled(copy, WithSecret(kSecretA), {.pull = pull}));
    BOOST_TEST(MustPull(store, kSecretA));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!MustPull(store, kSecretA));
  });
}

BOOST_AUTO_TEST_CASE(a_pull_of_unknown_beginning_counts_as_begun_before) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    Must(store->ForgetSecret(kNameA));
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    BOOST_TEST(MustPull(store, kSecretA));
  });
}

// A decision that read before offers its rotated secret; it is written after.
BOOST_AUTO_TEST_CASE(a_write_back_by_a_decision_that_read_before_does_not_bring_it_back) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    const ImagePullSecret copy_of_b = MakeSecret("team-a", "pull", "uid-a", "hash-b");
    DeferredCredentials late;
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    BOOST_TEST((store->MustAttemptPull(copy, late).reason == Reason::kCredentialsNeeded));
    BOOST_TEST(Must(store->ForgetNamespace("team-a")).records == 0U);
    const ImagePullSecretView view(copy_of_b);
    late.Provide(PodCredentials{.secrets = {&view, 1}});
    BOOST_TEST(!store->MustAttemptPull(copy, late).pull);
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 1U);
    // Nor does one that reads after; a pull proves it anew.
    BOOST_TEST(!MustPull(store, copy_of_b));
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 1U);
    store.Pull(kImage, kRef, WithSecret(copy_of_b));
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 2U);
  });
}

// No commit follows that would make later decisions newer.
BOOST_AUTO_TEST_CASE(what_is_refused_drops_no_write_back) {
  UnderBothRules([](ScratchStore& store) {
    const ListToken old = Must(store->BeginList());
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    const ExistingCredentials truth{.secrets = {{"team-b", "pull", "uid-b"}}};
    Must(store->Reconcile(truth, Must(store->BeginList())));
    BOOST_TEST(!store->Reconcile(truth, old));
    BOOST_TEST(!MustPull(store, MakeSecret("team-b", "pull", "uid-b", "hash-b-2")));
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.at(0).credential_hash == "hash-b-2");
  });
}

// It matched before: what it adds has that proof, which is older than the revocation.
BOOST_AUTO_TEST_CASE(what_a_match_writes_back_is_as_old_as_what_it_matched) {
  UnderBothRules([](ScratchStore& store) {
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(Must(store->ForgetSecret(kNameA)).stored);
    const ImagePullSecret copy_of_b = MakeSecret("team-a", "pull", "uid-a", "hash-b");
    BOOST_TEST(!MustPull(store, copy_of_b));
    Must(store->Flush());
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 1U);
  });
}

BOOST_AUTO_TEST_CASE(a_restored_backup_does_not_bring_it_back) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    PullTwo(store);
    store.Stop();
    // A migration leaves a backup.
    Must(Migrate({.directory = store.directory(), .to = 5, .accept_loss = true}));
    Must(Migrate({.directory = store.directory()}));
    store.Start();
    Must(forget(*store));
    BOOST_TEST(MustPull(store, kSecretA));
    store.Stop();
    for (const Backup& backup : Must(ListBackups(store.directory()))) {
      Must(Restore({.directory = store.directory(), .backup = backup.path}));
      store.Start();
      BOOST_TEST(MustPull(store, kSecretA));
      BOOST_TEST(MustPull(store, kSecretA, kRef2));
      BOOST_TEST(!Must(store->ListRevocations()).empty());
      store.Stop();
    }
  });
}

// The kubelet takes two spellings of an image for two images, and so does what it forgets.
BOOST_FIXTURE_TEST_CASE(a_restored_store_forgets_by_the_rules_that_it_was_run_under, KubeletStore) {
  const std::string bare = std::string(kRef).substr(std::string_view("sha256:").size());
  store.Pull(kImage, kRef, NodeWide());
  store.Pull(kImage, bare, NodeWide());
  Must(store->ForgetImage({.image_ref = kRef}));
  BOOST_TEST(store.Check(kImage, kRef).pull);
  BOOST_TEST(!store.Check(kImage, bare).pull);
  const auto backup = Must(store->MakeBackup());
  store.Stop();
  Must(Restore({.directory = store.directory(), .backup = backup.path}));
  store.Start();
  BOOST_TEST(store.Check(kImage, kRef).pull);
  BOOST_TEST(!store.Check(kImage, bare).pull);
}

BOOST_AUTO_TEST_CASE(a_second_import_does_not_bring_it_back) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    PullTwo(store);
    Must(forget(*store));
    Must(store->DeleteRecord({.image_ref = kRef}));
    // The kubelet's file still has both.
    ImagePulledRecord record = {.image_ref = std::string(kRef), .last_updated = Timestamp{1, 0}};
    record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA, kSecretB};
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, EncodePulledRecord(record));
    store.Restart();
    const auto entry = EntryOf(store);
    BOOST_TEST((entry.kubernetes_secrets == std::vector<ImagePullSecret>{kSecretB}));
  });
}

BOOST_AUTO_TEST_CASE(a_whole_record_that_was_read_before_does_not_bring_it_back) {
  ForEachWay([](ScratchStore& store, ForgetA forget) {
    PullTwo(store);
    const ImagePulledRecord before = Must(store->GetRecord({.image_ref = kRef}));
    Must(forget(*store));
    Must(store->PutRecord(before));
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(!MustPull(store, kSecretB));
    // The kubelet puts a whole record while the intent of its pull is stored.
    Must(store->PutIntent({.image = kImage}));
    Must(store->PutRecord(before));
    BOOST_TEST(!MustPull(store, kSecretA));
  });
}

BOOST_AUTO_TEST_CASE(service_accounts_and_namespaces) {
  UnderBothRules([](ScratchStore& store) {
    ImagePullCredentials account;
    account.kubernetes_service_accounts = {kBuilder};
    store.Pull(kImage, kRef, account);
    store.Pull(kImage, kRef2, account);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kBuilder)).pull);
    BOOST_TEST(Must(store->ForgetSecret({"team-a", "builder", {}})).records == 0U);
    const ForgetReport report = Must(store->ForgetServiceAccount({"team-a", "builder", {}}));
    BOOST_TEST(report.records == 2U);
    BOOST_TEST(report.service_accounts == 2U);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kBuilder)).pull);
    store.Pull(kImage, kRef, account);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kBuilder)).pull);
    BOOST_TEST(Must(store->ForgetNamespace("team-a")).service_accounts == 1U);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kBuilder)).pull);
  });
}

BOOST_FIXTURE_TEST_CASE(an_image_is_forgotten_by_any_spelling, ClosedStore) {
  const std::string digest = "registry.example.com/team/app@" + std::string(kRef2);
  const ListToken token = Must(store->BeginList());
  ImagePullCredentials all;
  all.node_pods_accessible = true;
  store.Pull(kImage, kRef, all);
  Must(store->ObserveImages(
      {.images = {{.id = std::string(kRef), .repo_digests = {digest}}}, .token = token}));
  BOOST_TEST(!store.Check(kImage, kRef).pull);
  BOOST_TEST(!store.Check(kImage, digest).pull);
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  const PullId before = Must(store->RecordPullIntent(copy));
  const ForgetReport report = Must(store->ForgetImage({.image_ref = digest}));
  BOOST_TEST(report.records == 1U);
  BOOST_TEST(report.node_pods == 1U);
  BOOST_TEST(store.Check(kImage, kRef).pull);
  BOOST_TEST(store.Check(kImage, digest).pull);
  Must(store->RecordImagePulled(copy, all, {.pull = before}));
  BOOST_TEST(store.Check(kImage, kRef).pull);
  store.Pull(kImage, kRef, all);
  BOOST_TEST(!store.Check(kImage, kRef).pull);
}

// The digest is not yet known to be the image's when it is forgotten.
BOOST_AUTO_TEST_CASE(an_image_is_forgotten_by_a_spelling_that_a_later_list_tells) {
  for (const bool pull_is_open : {false, true}) {
    ScratchStore store(Rules::kClosed);
    const std::string digest = "registry.example.com/team/app@" + std::string(kRef2);
    store.Pull(kImage, kRef, NodeWide());
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const PullId before = pull_is_open ? Must(store->RecordPullIntent(copy)) : PullId();
    BOOST_TEST(Must(store->ForgetImage({.image_ref = digest})).records == 0U);
    BOOST_TEST(!store.Check(kImage, kRef).pull);
    const ImageList list{.images = {{.id = std::string(kRef), .repo_digests = {digest}}}};
    Must(store->ObserveImages(list));
    BOOST_TEST(store.Check(kImage, kRef).pull);
    if (pull_is_open) Must(store->RecordImagePulled(copy, NodeWide(), {.pull = before}));
    BOOST_TEST(store.Check(kImage, kRef).pull);
    store.Pull(kImage, kRef, NodeWide());
    Must(store->ObserveImages(list));
    BOOST_TEST(!store.Check(kImage, kRef).pull);
  }
}

// "0 records" would pass for "nothing is open".
BOOST_FIXTURE_TEST_CASE(a_digest_of_two_images_names_neither, ClosedStore) {
  const std::string digest = "registry.example.com/team/app@sha256:" + std::string(64, '3');
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  Must(store->ObserveImages({.images = {{.id = std::string(kRef), .repo_digests = {digest}},
                                        {.id = std::string(kRef2), .repo_digests = {digest}}},
                             .token = Must(store->BeginList())}));
  ExpectError(store->ForgetImage({.image_ref = digest}), ErrorCode::kInvalidArgument);
  BOOST_TEST(!MustPull(store, kSecretA));
  BOOST_TEST(Must(store->ForgetImage({.image_ref = kRef})).records == 1U);
  BOOST_TEST(MustPull(store, kSecretA));
  BOOST_TEST(!MustPull(store, kSecretA, kRef2));
}

BOOST_AUTO_TEST_CASE(equal_hashes_elsewhere_are_told_and_stay) {
  UnderBothRules([](ScratchStore& store) {
    const ImagePullSecret same = MakeSecret("team-c", "pull", "uid-c", "hash-a");
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, WithSecret(same));
    store.Pull(kImage, kRef2, WithSecret(same));
    const ForgetReport report = Must(store->ForgetSecret(kNameA));
    BOOST_TEST(report.equal_hashes == 2U);
    BOOST_TEST(!MustPull(store, same));
    BOOST_TEST(!MustPull(store, kSecretA));  // by the hash, which team-c proved
    BOOST_TEST(Must(store->ForgetCredential("hash-a")).secrets == 2U);
    BOOST_TEST(MustPull(store, same));
    BOOST_TEST(MustPull(store, kSecretA));
  });
}

BOOST_FIXTURE_TEST_CASE(a_dry_run_counts_and_changes_nothing, ClosedStore) {
  PullTwo(store);
  const std::uint64_t before = Commits(store);
  BOOST_TEST(Must(store->ForgetNamespace("team-a", {.dry_run = true})).secrets == 2U);
  BOOST_TEST(Commits(store) == before);
  BOOST_TEST(!MustPull(store, kSecretA));
}

BOOST_FIXTURE_TEST_CASE(bad_arguments_change_nothing, ClosedStore) {
  PullTwo(store);
  const std::uint64_t before = Commits(store);
  const std::string long_text(kMaxCoordinateBytes + 1, 'x');
  ExpectError(store->ForgetSecret({"", "pull", {}}), ErrorCode::kInvalidArgument);
  ExpectError(store->ForgetSecret({"team-a", "", {}}), ErrorCode::kInvalidArgument);
  ExpectError(store->ForgetServiceAccount({"team-a", "", {}}), ErrorCode::kInvalidArgument);
  ExpectError(store->ForgetNamespace(""), ErrorCode::kInvalidArgument);
  ExpectError(store->ForgetNamespace(long_text), ErrorCode::kLimitExceeded);
  ExpectError(store->ForgetImage({}), ErrorCode::kInvalidArgument);
  ExpectError(store->ForgetCredential(""), ErrorCode::kInvalidArgument);
  const ListToken token = Must(store->BeginList());
  ExpectError(store->Reconcile({}, token), ErrorCode::kInvalidArgument);
  ListToken future = token;
  future.commit += 100;
  ExpectError(store->Reconcile({.secrets = {{"a", "b", "c"}}}, future),
              ErrorCode::kInvalidArgument);
  BOOST_TEST(Commits(store) == before);
}

// Also where nothing of what the caller gives would be stored.
BOOST_AUTO_TEST_CASE(after_a_truth_what_is_too_long_is_refused_all_the_same) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    Must(store->Reconcile({.secrets = {{"team-b", "pull", "uid-b"}}}, Must(store->BeginList())));
    const ImagePullSecret too_long =
        MakeSecret("team-a", "pull", std::string(kMaxCoordinateBytes + 1, 'x'), "hash-a");
    ImagePulledRecord record = {.image_ref = std::string(kRef)};
    record.credential_mapping[std::string(kName)] = WithSecret(too_long);
    ExpectError(store->PutRecord(record), ErrorCode::kLimitExceeded);
    ExpectError(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(too_long)),
        ErrorCode::kLimitExceeded);
    BOOST_TEST(!MustPull(store, kSecretB));
  });
}

BOOST_AUTO_TEST_CASE(a_truth_keeps_what_exists_and_what_is_newer) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    const ListToken token = Must(store->BeginList());
    store.Pull(kImage, kRef2, WithSecret(kSecretB));  // proven after the token
    const ReconcileReport report =
        Must(store->Reconcile({.secrets = {{"team-a", "pull", "uid-a"}}}, token));
    BOOST_TEST(report.known == 1U);
    BOOST_TEST(report.gone == 1U);
    BOOST_TEST(report.forgotten.secrets == 1U);
    BOOST_TEST(!MustPull(store, kSecretA));
    BOOST_TEST(MustPull(store, kSecretB));
    BOOST_TEST(!MustPull(store, kSecretB, kRef2));
    // Another UID is another Secret.
    const ListToken later = Must(store->BeginList());
    BOOST_TEST(Must(store->Reconcile({.secrets = {{"team-a", "pull", "uid-z"}}}, later)).gone ==
               2U);
    BOOST_TEST(MustPull(store, kSecretA));
    // A truth that is older than the last one is none.
    ExpectError(store->Reconcile({.secrets = {{"team-a", "pull", "uid-a"}}}, token),
                ErrorCode::kInvalidArgument);
    const ListToken last = Must(store->BeginList());
    Must(store->Reconcile({}, last, {.allow_empty = true}));
  });
}

BOOST_AUTO_TEST_CASE(revocations_are_kept_for_their_time_and_as_long_as_they_are_needed) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    Must(store->ForgetSecret(kNameA));
    store.clock().AdvanceSeconds(29 * 86400);
    store.Restart();
    BOOST_TEST(Must(store->ListRevocations()).size() == 1U);
    store.clock().AdvanceSeconds(2 * 86400);
    store.Restart();
    // The kubelet that ran then may still run.
    BOOST_TEST(Must(store->ListRevocations()).size() == 1U);
    BootTime began = store.clock().Boot();
    began.nanoseconds -= std::int64_t{30} * 86400 * 1'000'000'000;
    Must(store->NoteKubeletBegan(began));
    BOOST_TEST(Must(store->ListRevocations()).size() == 1U);
    store.Restart();
    BOOST_TEST(Must(store->ListRevocations()).empty());
    BOOST_TEST(MustPull(store, kSecretA));
  });
}

// What the kubelet's files may still say does not open, and files that can't be read may say it.
BOOST_AUTO_TEST_CASE(a_revocation_waits_for_all_that_the_kubelets_files_may_say) {
  namespace fs = std::filesystem;
  using Spoil = std::function<void(const fs::path& pulled, const fs::path& file)>;
  const std::pair<const char*, Spoil> cases[] = {
      {"as it is", [](auto&, auto&) {}},
      {"gone", [](auto&, auto& file) { fs::remove(file); }},
      {"pulled/ is away",
       [](auto& pulled, auto&) { fs::rename(pulled, pulled.string() + ".away"); }},
      {"linked", [](auto&, auto& file) { fs::create_hard_link(file, file.string() + ".link"); }},
      {"anybody's", [](auto&, auto& file) { fs::permissions(file, fs::perms::all); }},
      {"cut short", [](auto&, auto& file) { fs::resize_file(file, 20); }},
      {"another's name",
       [](auto& pulled, auto& file) {
         fs::rename(file, pulled / fs::path(RecordFile("pulled", kRef2)).filename());
       }},
  };
  for (const auto& [what, spoil] : cases) {
    ScratchStore store(Rules::kClosed);
    PullTwo(store);
    const fs::path files = store.scratch() / "files";
    ImagePulledRecord record{.image_ref = std::string(kRef)};
    record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
    WriteRecordFile(files, "pulled", kRef, EncodePulledRecord(record));
    Must(store->ForgetSecret(kNameA));
    const fs::path file = files / RecordFile("pulled", kRef);
    spoil(file.parent_path(), file);
    store.clock().Reboot();
    store.clock().AdvanceSeconds(31 * 86400);
    store.Stop();
    OpenOptions options = store.Options({});
    options.kubelet_files = files;
    const auto opened = Must(NodeStore::Open(options));
    const bool is_over = std::string_view(what) == "gone";
    BOOST_TEST(Must(opened->ListRevocations()).empty() == is_over, what);
  }
}

BOOST_FIXTURE_TEST_CASE(a_kubelet_begins_in_this_boot_and_not_later_than_now, ClosedStore) {
  BootTime began = store.clock().Boot();
  ++began.nanoseconds;
  ExpectError(store->NoteKubeletBegan(began), ErrorCode::kInvalidArgument);
  began = store.clock().Boot();
  began.boot_id = {99};
  ExpectError(store->NoteKubeletBegan(began), ErrorCode::kInvalidArgument);
  ExpectError(store->NoteKubeletBegan({}), ErrorCode::kInvalidArgument);
}

BOOST_FIXTURE_TEST_CASE(a_revocation_is_kept_as_long_as_an_older_backup, ClosedStore) {
  PullTwo(store);
  store.Stop();
  Must(Migrate({.directory = store.directory(), .to = 5, .accept_loss = true}));
  store.Start();
  Must(store->ForgetSecret(kNameA));
  store.clock().Reboot();
  store.clock().AdvanceSeconds(400 * 86400);
  store.Restart();
  BOOST_TEST(Must(store->ListRevocations()).size() == 1U);
  store.Stop();
  std::filesystem::remove_all(store.directory() / "backup");
  store.Start();
  BOOST_TEST(Must(store->ListRevocations()).empty());
}

// More records than one transaction tidies up.
BOOST_AUTO_TEST_CASE(very_many_records_are_forgotten_at_once_and_tidied_up_later) {
  UnderBothRules([](ScratchStore& store) {
    constexpr std::size_t kRecords = 5000;
    store.Stop();
    OpenOptions options = store.Options({});
    auto opened = Must(NodeStore::Open(options));
    for (std::size_t i = 0; i < kRecords; ++i) {
      ImagePulledRecord record = {.image_ref = "ref-" + std::to_string(i)};
      record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA, kSecretB};
      Must(opened->PutRecord(record));
    }
    const ForgetReport report = Must(opened->ForgetNamespace("team-a"));
    BOOST_TEST(report.records == kRecords);
    BOOST_TEST(report.untidied == kRecords);
    const auto check = [&] {
      for (std::size_t i = 0; i < kRecords; i += 97) {
        const std::string ref = "ref-" + std::to_string(i);
        const ImageCopy copy = {.image = kImage, .image_ref = ref};
        BOOST_TEST(DecisionOf(*opened, copy, Pod(kSecretA)).pull);
        BOOST_TEST(!DecisionOf(*opened, copy, Pod(kSecretB)).pull);
        const auto record = Must(opened->GetRecord(copy));
        BOOST_TEST((record.credential_mapping.at(std::string(kName)) == WithSecret(kSecretB)));
      }
    };
    check();
    // The owner goes before it is done: the next one goes on.
    Must(opened->Close());
    opened.reset();
    opened = Must(NodeStore::Open(options));
    check();
    Must(opened->TidyUp());
    check();
    for (const Revocation& one : Must(opened->ListRevocations())) BOOST_TEST(!one.untidied);
    BOOST_TEST(Must(opened->Verify()).sound);
  });
}

// As few at once as may be, which 0 is, too.
BOOST_AUTO_TEST_CASE(records_are_tidied_up_one_by_one) {
  for (const std::size_t at_once : {0U, 1U}) {
    ScratchStore store(Rules::kClosed);
    store.TidyAtOnce(at_once);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    BOOST_TEST(Must(store->ForgetSecret(kNameA)).untidied == 2U);
    Must(store->TidyUp());
    for (const Revocation& one : Must(store->ListRevocations())) BOOST_TEST(!one.untidied);
    for (const std::string_view ref : {kRef, kRef2}) {
      BOOST_TEST(Must(store->GetRecord({.image_ref = ref})).credential_mapping.empty());
    }
  }
}

// The index leads to it, too, since its Secret has the same name.
BOOST_AUTO_TEST_CASE(a_record_that_loses_nothing_keeps_its_stamp) {
  const ImagePullSecret other_uid = MakeSecret("team-a", "pull", "uid-other", "hash-other");
  for (const std::size_t records : {std::size_t{1}, std::size_t{2100}}) {
    UnderBothRules([&](ScratchStore& store) {
      store.Pull(kImage, kRef, WithSecret(other_uid));
      for (std::size_t i = 0; i < records; ++i) {
        ImagePulledRecord record = {.image_ref = "ref-" + std::to_string(i)};
        record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA};
        Must(store->PutRecord(record));
      }
      const ImageCopy copy = {.image = kImage, .image_ref = kRef};
      const std::uint64_t stamp = Must(store->GetRecord(copy)).stamp;
      BOOST_TEST(Must(store->ForgetSecret(kNameA)).records == records);
      Must(store->TidyUp());
      BOOST_TEST(Must(store->GetRecord(copy)).stamp == stamp);
      BOOST_TEST(!MustPull(store, other_uid));
      BOOST_TEST(MustPull(store, kSecretA, "ref-0"));
    });
  }
}

// It looks first while records are untidied, and compares once they are tidied up.
BOOST_AUTO_TEST_CASE(a_late_decision_that_looked_before_all_was_tidied_up) {
  UnderBothRules([](ScratchStore& store) {
    constexpr std::size_t kRecords = 2100;
    for (std::size_t i = 0; i < kRecords; ++i) {
      ImagePulledRecord record = {.image_ref = "ref-" + std::to_string(i)};
      record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA};
      Must(store->PutRecord(record));
    }
    const ImageCopy copy = {.image = kImage, .image_ref = "ref-2099"};
    DeferredCredentials late;
    const Decision first = store->MustAttemptPull(copy, late);
    BOOST_TEST((first.reason == Reason::kCredentialsNeeded));
    BOOST_TEST(Must(store->ForgetNamespace("team-a")).untidied == kRecords);
    Must(store->TidyUp());
    const ImagePullSecretView view(kSecretA);
    late.Provide(PodCredentials{.secrets = {&view, 1}});
    BOOST_TEST(store->MustAttemptPull(copy, late).pull);
  });
}

// The pull ended without a trace, and the truth that it began before had no news. Still the backup
// has it as running.
BOOST_AUTO_TEST_CASE(a_pull_of_a_backup_began_before_the_last_truth) {
  UnderBothRules([](ScratchStore& store) {
    const ExistingCredentials truth{.secrets = {{"team-a", "pull", "uid-a"}}};
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->Reconcile(truth, Must(store->BeginList())));
    const PullId pull = Must(store->RecordPullIntent({.image = kImage}));
    const auto backup = store.directory().parent_path() / "backup.mdb";
    Must(store->WriteBackup(backup));
    Must(store->RecordImagePullFailed({.image = kImage}, PullFailure::kNothingTransferred, pull));
    Must(store->Reconcile(truth, Must(store->BeginList())));
    store.Stop();
    Must(Restore({.directory = store.directory(), .backup = backup}));
    auto opened = Must(NodeStore::Open({.directory = store.directory(),
                                        .witness = store.Options({}).witness,
                                        .continues_pulls = true}));
    Must(opened->RecordImagePulled({.image = kImage, .image_ref = kRef2}, WithSecret(kSecretB),
                                   {.pull = pull}));
    BOOST_TEST(DecisionOf(*opened, {.image = kImage, .image_ref = kRef2}, Pod(kSecretB)).pull);
  });
}

BOOST_AUTO_TEST_CASE(a_record_is_found_by_each_form_of_its_credentials) {
  UnderBothRules([](ScratchStore& store) {
    const std::string hex(64, 'a');
    const auto raw = MakeSecret("team-a", "raw", "0b1e3f00-0000-4000-8000-000000000001", hex);
    const auto text = MakeSecret("team-a", "text", "uid", "not hex");
    const auto upper = MakeSecret("team-b", "upper", "uid", std::string(64, 'A'));
    const std::vector<ImagePullSecret> all{raw, text, upper};
    const auto pull = [&] {
      for (const auto& secret : all) store.Pull(kImage, "ref-" + secret.name, WithSecret(secret));
    };
    pull();
    BOOST_TEST(Must(store->ForgetCredential(hex)).secrets == 1U);
    BOOST_TEST(Must(store->ForgetCredential("not hex")).secrets == 1U);
    BOOST_TEST(Must(store->ForgetCredential(upper.credential_hash)).secrets == 1U);
    for (const auto& secret : all) BOOST_TEST(MustPull(store, secret, "ref-" + secret.name));
    pull();
    BOOST_TEST(Must(store->ForgetSecret({"team-a", "text", {}})).secrets == 1U);
    BOOST_TEST(Must(store->ForgetServiceAccount({"team-a", "raw", {}})).secrets == 0U);
    BOOST_TEST(Must(store->ForgetNamespace("team-a")).secrets == 1U);
    BOOST_TEST(!MustPull(store, upper, "ref-upper"));
  });
}

// Version 8 had an index of credentials, and makes it anew if it lacks rows.
BOOST_AUTO_TEST_CASE(the_index_goes_and_what_is_forgotten_is_found_without) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    store.Stop();
    BOOST_TEST(Must(Migrate({.directory = store.directory(), .to = 8})).steps.back().name ==
               "no index");
    store.Start();
    BOOST_TEST(store->recovery_report().migration.has_value());
    BOOST_TEST(Must(store->Verify()).sound);
    const ForgetReport report = Must(store->ForgetNamespace("team-a"));
    BOOST_TEST(report.records == 2U);
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(!MustPull(store, kSecretB));
  });
}

BOOST_AUTO_TEST_CASE(going_down_ends_closed) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    Must(store->ForgetSecret(kNameA));
    store.Stop();
    MigrateOptions down{.directory = store.directory(), .to = 5};
    ExpectError(Migrate(down), ErrorCode::kConflict);
    down.accept_loss = true;
    BOOST_TEST(Must(Migrate(down)).steps.back().name == "revocation");
    store.Start();
    BOOST_TEST(MustPull(store, kSecretA));
    BOOST_TEST(!MustPull(store, kSecretB));
    BOOST_TEST(Must(store->ListRevocations()).empty());
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
