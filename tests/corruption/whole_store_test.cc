// A whole store, or a whole file of it, that is lost, replaced, older, or of a newer schema.

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "store/maintenance.h"
#include "store/opening/witness.h"
#include "tests/corruption/scene.h"
#include "tests/support/damage.h"
#include "tests/support/forked_child.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace {

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

constexpr std::string_view kOtherImage = "registry.example.com/team/other:v1";
constexpr std::string_view kUnknownRef = "sha256:none";

struct StoreScene : Scene {
  void CopyAside() {
    fs::remove_all(aside);
    fs::copy(store.directory(), aside, fs::copy_options::recursive);
  }
  void PutBack() {
    fs::remove_all(store.directory());
    fs::copy(aside, store.directory(), fs::copy_options::recursive);
  }
  void CheckDistrust(const std::string& why) {
    const OpeningReport& report = store->recovery_report();
    BOOST_TEST(report.distrustful);
    BOOST_TEST(report.distrust_reason.find(why) != std::string::npos, report.distrust_reason);
    BOOST_TEST(store.Check(kImage, kUnknownRef).pull);
    BOOST_TEST(store.Check(kImage, kUnknownRef).reason == Reason::kStoreDistrustful);
  }
  // What nobody pulled enters the ledger again.
  void CheckTrust() {
    BOOST_TEST(!store->recovery_report().distrustful);
    BOOST_TEST(store.Check(kImage, kUnknownRef).reason == Reason::kNoEvidence);
    ImageList list{.images = {{.id = "sha256:by-hand", .repo_tags = {"r.example/by-hand:v1"}}}};
    list.images.front().pinned = true;  // a pull of anything does not count
    list.token = Must(store->BeginList());
    BOOST_TEST(Must(store->ObserveImages(list)).preloaded == 1U);
  }

  const fs::path aside = store.scratch() / "aside";
};

BOOST_FIXTURE_TEST_SUITE(whole_store, StoreScene)

// --- The witness tells

// The kubelet's files are as old as the take-over: a credential in them may have been revoked
// since.
BOOST_AUTO_TEST_CASE(a_wiped_store_takes_no_credentials_from_old_files) {
  ImagePulledRecord record;
  record.image_ref = kRef2;
  record.last_updated = Timestamp{kFakeEpoch, 0};
  record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
  WriteRecordFile(store.kubelet_directory(), "pulled", kRef2, EncodePulledRecord(record));
  store.Restart();
  BOOST_TEST(!store.Check(kImage, kRef2, Pod(kSecretA)).pull);
  store.Pull(kImage, kRef2, WithSecret(kRotatedA));
  BOOST_TEST(store.Check(kImage, kRef2, Pod(kThief)).pull);
  store.Stop();
  fs::remove_all(store.directory());
  store.Start();
  BOOST_TEST(store->recovery_report().import.records == 1U);
  BOOST_TEST(store.Check(kImage, kRef2, Pod(kThief)).pull);
  BOOST_TEST(store.Check(kImage, kRef2).pull);
}

// `rm` without -r leaves the directories.
BOOST_AUTO_TEST_CASE(each_trace_alone_tells_of_a_store_that_was_lost) {
  store.Stop();
  Must(MigrateStore({.directory = store.directory(), .to = 1}));
  store.Start();
  store.Stop();
  BOOST_REQUIRE(!Must(BackupsOf(store.directory())).empty());
  CopyAside();
  const std::string witness = ReadFile(store.witness());
  for (const auto& [trace, why] :
       {std::pair("lock.mdb", "data.mdb is gone"), std::pair("backup", "only backup/ is left"),
        std::pair("commit.mark", "only commit.mark is left"),
        std::pair("owner.lock", "only owner.lock is left"),
        std::pair("", "the store that the witness tells of is gone")}) {
    PutBack();
    for (const auto& entry : fs::directory_iterator(store.directory())) {
      if (entry.path().filename() != trace) fs::remove_all(entry.path());
    }
    fs::remove(store.witness());
    if (*trace == '\0') WriteFile(store.witness(), witness);
    store.Start();
    CheckDistrust(why);
    store.Stop();
  }
}

BOOST_AUTO_TEST_CASE(an_older_copy_put_back_is_distrustful_and_opens_nothing) {
  store.Stop();
  CopyAside();
  store.Start();
  Rotate();
  store.Pull(kOtherImage, kRef2, WithSecret(kSecretB));
  BOOST_TEST(Pulls(kThief));
  store.Stop();
  PutBack();
  const auto witnessed = Must(internal::ReadMark(store.witness())).line;
  BOOST_REQUIRE(witnessed.has_value());

  // Without an owner, an observer reads the witness itself.
  ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kDamaged);

  store.Start();
  CheckDistrust("the store is older than its witness");
  BOOST_TEST(Pulls(kThief));
  BOOST_TEST(store->recovery_report().records_without_credentials == 1U);
  BOOST_TEST(store->recovery_report().commit_sequence > witnessed->acknowledged);
  BOOST_TEST(Pulls(kSecretA));
  BOOST_TEST(store.Check(kOtherImage, kRef2).pull);
  store.Restart();
  BOOST_TEST(store->recovery_report().findings.empty());
  CheckDistrust("the store is older than its witness");
  // A pull brings its credentials back, and an operator the trust.
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(!Pulls(kSecretA));
  Must(store->ClearDistrust("the node was emptied"));
  store.Restart();
  CheckTrust();
}

BOOST_AUTO_TEST_CASE(another_store_swapped_in_is_distrustful_and_opens_nothing) {
  ScratchStore other(Mode::kStrict);
  for (int i = 0; i < 8; ++i) other.Pull(kOtherImage, kRef2, NodeWide());
  other.Pull(kImage, kRef, WithSecret(kThief));
  other.Stop();
  Rotate();
  store.Stop();
  fs::remove_all(store.directory());
  fs::copy(other.directory(), store.directory(), fs::copy_options::recursive);
  store.Start();
  CheckDistrust("tells of another store");
  BOOST_TEST(Pulls(kThief));
  BOOST_TEST(store.Check(kOtherImage, kRef2).pull);
}

BOOST_AUTO_TEST_CASE(a_witness_that_is_a_symlink_or_a_directory_is_never_believed) {
  store.Stop();
  fs::rename(store.witness(), aside);
  fs::create_symlink(aside, store.witness());
  const std::string behind = ReadFile(aside);
  store.Start();
  CheckDistrust("can't be read");
  store.Stop();
  BOOST_TEST(ReadFile(aside) == behind);

  fs::remove(store.witness());
  fs::create_directory(store.witness());
  const auto opened = NodeStore::Open(store.Options({}));
  if (opened) BOOST_TEST((*opened)->recovery_report().distrustful);
}

// --- Set aside

constexpr const char* kDamagedRecord = "a value of table images---------1 does not verify";

BOOST_AUTO_TEST_CASE(a_failed_file_is_kept_and_what_is_sound_carried_over) {
  store.Pull(kOtherImage, kRef2, WithSecret(kSecretB));
  Must(store->PutIntent({.image = "registry.example.com/team/dangling:v1"}));
  store.Stop();
  const std::string damaged = FlipUntil(database(), kDamagedRecord);
  WriteFile(database(), damaged);
  store.Start();
  const OpeningReport report = store->recovery_report();
  BOOST_TEST(report.set_aside);
  BOOST_TEST(report.set_aside_path.starts_with((store.directory() / "quarantine").string()));
  BOOST_TEST(ReadFile(report.set_aside_path) == damaged);
  BOOST_TEST(report.records_carried == 1U);
  BOOST_TEST(report.records_without_credentials == 0U);
  BOOST_TEST(report.intents_carried == 1U);
  CheckDistrust("failed its check");
  // One record was damaged, the other is proven current: its tenant need not pull.
  const bool first_open = !Pulls(kSecretA);
  const bool second_open = !store.Check(kOtherImage, kRef2, Pod(kSecretB)).pull;
  BOOST_TEST(first_open != second_open);

  store.Restart();
  BOOST_TEST(!store->recovery_report().set_aside);
  BOOST_TEST(store->recovery_report().findings.empty());
  CheckDistrust("failed its check");
  BOOST_TEST(Must(store->Verify()).sound);
}

// Open pulls close, so all that verify are kept. Entries of the ledger open: only if it is proven
// that none is missing or stale.
BOOST_AUTO_TEST_CASE(evidence_is_carried_over) {
  Must(store->AddToLedger({.id = std::string(kRef2)}, "operator", "preloaded"));
  const PullId pull = Must(store->RecordPullIntent({.image = kOtherImage}));
  Must(store->RecordImagePullFailed({.image = kOtherImage}, PullOutcome::kUnknown, pull));
  const UnresolvedPull open = Must(store->ListOpenPulls()).at(0);
  store.Stop();
  CopyAside();
  const std::string witness = ReadFile(store.witness());
  struct Row {
    const char* finding;
    bool is_preloaded;
    std::size_t pulls;
  };
  for (const Row& row : {Row{kDamagedRecord, false, 1},
                         Row{"a value of table pull-intents---1 does not verify", true, 0},
                         Row{"the trust journal is missing or damaged", true, 1}}) {
    BOOST_TEST_CONTEXT(row.finding) {
      PutBack();
      WriteFile(store.witness(), witness);
      fs::remove(store.directory() / "lock.mdb");
      WriteFile(database(), FlipUntil(database(), row.finding));
      store.Start();
      BOOST_TEST(store->recovery_report().set_aside);
      CheckDistrust("failed its check");
      BOOST_TEST(store.Check(kImage, kRef2).pull != row.is_preloaded);
      const auto pulls = Must(store->ListOpenPulls());
      BOOST_TEST_REQUIRE(pulls.size() == row.pulls);
      if (row.pulls == 1) BOOST_TEST((pulls[0].id == open.id && pulls[0].image == open.image));
      // Nothing that the list shows is judged by what is left.
      ImageList list{.images = {{.id = "sha256:late", .repo_tags = {std::string(kOtherImage)}}}};
      list.token = Must(store->BeginList());
      BOOST_TEST(Must(store->ObserveImages(list)).left == 1U);
      BOOST_TEST(store.Check(kOtherImage, "sha256:late").pull);
      store.Stop();
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_proven_current_is_carried_over_without_credentials) {
  store.Stop();
  WriteFile(database(), FlipUntil(database(), "the trust journal is missing or damaged"));
  store.Start();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(store->recovery_report().records_carried == 1U);
  CheckDistrust("failed its check");
  store.Stop();

  // The header of the last commit is lost, so what that commit changed is unknown.
  fs::remove_all(store.directory());
  fs::remove(store.witness());
  store.Start();
  store.Pull(kImage, kRef, NodeWide());
  store.Stop();
  const auto damaged = [&] {
    std::string bytes = ReadFile(database());
    const auto inspection = InspectPath(database());
    bytes[(inspection.txn_id & 1) * 4096 + 16] ^= 1;
    return bytes;
  }();
  WriteFile(database(), damaged);
  fs::remove(store.witness());
  store.Start();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(store.Check(kImage, kRef).pull);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
