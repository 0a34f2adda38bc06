// Restoring a backup: the state of the store afterwards, what it keeps, what is refused.

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "store/maintenance.h"
#include "store/opening/witness.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/good_in_child.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(restore)

namespace {

namespace fs = std::filesystem;

std::string RefOf(const std::string& name) { return "sha256:" + Sha256Hex(name); }
std::string ImageOf(const std::string& name) { return "registry.example/" + name + ":v1"; }
std::string NameOf(const std::string& name) { return "registry.example/" + name; }

void Pull(NodeStore& store, const std::string& name, const ImagePullCredentials& credentials) {
  Must(store.RecordPullIntent({.image = ImageOf(name)}));
  Must(store.RecordImagePulled({.image = ImageOf(name), .image_ref = RefOf(name)}, credentials));
}

// Replaces what is recorded of an image.
void Replace(NodeStore& store, const std::string& name, const ImagePullCredentials& credentials) {
  ImagePulledRecord record;
  record.image_ref = RefOf(name);
  record.credential_mapping[NameOf(name)] = credentials;
  Must(store.PutRecord(record));
}

// Whether a pod with this secret may use the image without a pull.
bool Opens(NodeStore& store, const std::string& name, const ImagePullSecret& secret) {
  return !DecisionOf(store, {.image = ImageOf(name), .image_ref = RefOf(name)}, Pod(secret)).pull;
}

// A store that changed after its backup.
struct LivedOn : VersionedStore {
  LivedOn() {
    Open([](NodeStore& opened) {
      for (const char* name : {"same", "revoked", "more", "gone"}) {
        Pull(opened, name, WithSecret(kSecretA));
      }
      Pull(opened, "open", NodeWide());
      Must(opened.PutIntent({.image = ImageOf("in-flight")}));
    });
    backup = Migrate(1).backup;
    Open([](NodeStore& opened) {
      Replace(opened, "revoked", WithSecret(kSecretB));
      Pull(opened, "more", WithSecret(kSecretB));
      Must(opened.DeleteRecord({.image_ref = RefOf("gone")}));
      Pull(opened, "new", WithSecret(kSecretA));
    });
  }
  fs::path backup;
};

// The restore is refused, and no file has changed.
void CheckRefused(const VersionedStore& store, const fs::path& backup, ErrorCode code) {
  const Tree before = store.Files();
  ExpectError(RestoreStore(store.From(backup)), code);
  BOOST_TEST((store.Files() == before));
}

void CheckSequenceBeyondWitness(const VersionedStore& store) {
  const auto reading = Must(internal::ReadMark(store.witness()));
  BOOST_TEST_REQUIRE(reading.line.has_value());
  BOOST_TEST(StateOf(store.directory()).commit_sequence > reading.line->acknowledged);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(it_is_what_the_backup_was_and_distrustful, LivedOn) {
  const auto before = IdentityOf(directory());
  const auto sequence = StateOf(directory()).commit_sequence;
  const std::string replaced = ReadFile(database());
  const RestoreReport report = Must(RestoreStore(From(backup)));
  BOOST_TEST(report.schema_version == kNewestSchema);
  BOOST_TEST(report.backup_commit_sequence < sequence);
  BOOST_TEST(report.records == 5U);
  BOOST_TEST(report.records_without_credentials == 3U);
  BOOST_TEST(report.distrust_reason.find(backup.filename().string()) != std::string::npos);
  BOOST_TEST(report.replaced_path.starts_with((directory() / "quarantine").string()));
  BOOST_TEST((ReadFile(report.replaced_path) == replaced));
  BOOST_TEST(fs::exists(backup));
  BOOST_TEST(!fs::exists(directory() / "new.tmp"));
  BOOST_TEST(fs::exists(directory() / "lock.mdb"));

  const auto inspection = InspectPath(database());
  BOOST_TEST_REQUIRE(inspection.sound, FirstFinding(inspection));
  BOOST_TEST((inspection.identity->uuid == before.uuid));
  BOOST_TEST(inspection.identity->witness_path == before.witness_path);
  BOOST_TEST(inspection.state->commit_sequence > sequence);
  BOOST_TEST(ContentsOf(directory()).distrustful);
  CheckSequenceBeyondWitness(*this);

  const OpeningReport opened = Open([](NodeStore& store) {
    BOOST_TEST(Opens(store, "same", kSecretA));
    BOOST_TEST(Opens(store, "open", kSecretB));
    for (const auto& secret : {kSecretA, kSecretB}) {
      for (const char* name : {"revoked", "more", "gone", "new", "in-flight", "unheard-of"}) {
        BOOST_TEST(!Opens(store, name, secret), name);
      }
    }
    BOOST_TEST(Must(store.HasIntent({.image = ImageOf("in-flight")})));
  });
  BOOST_TEST(opened.findings.empty());
  BOOST_TEST(!opened.set_aside);
  BOOST_TEST(opened.distrustful);
  BOOST_TEST(opened.distrust_reason == report.distrust_reason);
  BOOST_TEST(!Open().set_aside);
}

BOOST_FIXTURE_TEST_CASE(a_backup_of_an_older_version_comes_back_as_the_newest, VersionedStore) {
  PlaceGolden(directory(), 1);
  Contents golden = WithoutStamps(ContentsOf(directory()));
  const fs::path backup = Open().migration->backup;
  const RestoreReport report = Must(RestoreStore(From(backup)));
  BOOST_TEST(report.schema_version == kNewestSchema);
  BOOST_TEST(report.records == golden.records.size());
  BOOST_TEST(report.records_without_credentials == 0U);
  BOOST_TEST(InspectPath(database()).sound);
  BOOST_TEST(IdentityOf(directory()).schema_version == kNewestSchema);
  CheckSequenceBeyondWitness(*this);

  const OpeningReport opened = Open();
  BOOST_TEST(!opened.migration.has_value());
  BOOST_TEST(opened.findings.empty());
  BOOST_TEST(opened.distrustful);
  Contents after = WithoutStamps(ContentsOf(directory()));
  BOOST_TEST(after.journal.size() == golden.journal.size() + 1);
  BOOST_TEST(std::get<2>(after.journal.back()) == report.distrust_reason);
  after.journal = golden.journal;
  after.distrustful = golden.distrustful;
  // What can't be read closes an image under every spelling, and spellings are not restored.
  BOOST_TEST(after.ledger.empty());
  after.ledger = golden.ledger;
  for (auto* contents : {&after, &golden}) DropSeveral(*contents);
  BOOST_TEST((after == golden));
}

BOOST_AUTO_TEST_CASE(where_the_replaced_store_proves_nothing_no_credentials_are_believed) {
  const std::pair<const char*, void (*)(const LivedOn&)> kWays[] = {
      {"gone", [](const LivedOn& store) { fs::remove(store.database()); }},
      {"damaged",
       [](const LivedOn& store) {
         std::string damaged = ReadFile(store.database());
         for (const std::size_t at : PlacesOf(damaged, NameOf("new"))) damaged[at + 9] = 'x';
         WriteFile(store.database(), damaged);
       }},
      {"empty", [](const LivedOn& store) { WriteFile(store.database(), ""); }},
      {"no database",
       [](const LivedOn& store) { WriteFile(store.database(), std::string(50'000, 'x')); }},
      {"without its witness", [](const LivedOn& store) { fs::remove(store.witness()); }}};
  for (const auto& [name, change] : kWays) {
    BOOST_TEST_CONTEXT(name) {
      const LivedOn store;
      change(store);
      const bool is_there = fs::exists(store.database());
      const std::string bytes = is_there ? ReadFile(store.database()) : "";
      const RestoreReport report = Must(RestoreStore(store.From(store.backup)));
      BOOST_TEST(report.records == 5U);
      BOOST_TEST(report.records_without_credentials == 5U);
      BOOST_TEST(report.replaced_path.empty() != is_there);
      if (is_there) BOOST_TEST((ReadFile(report.replaced_path) == bytes));
      if (!fs::exists(store.witness())) continue;
      CheckSequenceBeyondWitness(store);
      const OpeningReport opened = store.Open([](NodeStore& restored) {
        for (const char* image : {"same", "revoked", "open", "new"}) {
          BOOST_TEST(!Opens(restored, image, kSecretA), image);
        }
      });
      BOOST_TEST(opened.findings.empty());
    }
  }
}

// The replaced store is itself an old copy, as the witness shows: its credentials prove nothing.
BOOST_FIXTURE_TEST_CASE(what_is_replaced_is_older_than_its_witness, LivedOn) {
  const MemoryDir older;
  fs::copy_file(backup, older / "backup.mdb");
  const std::string now = ReadFile(database());
  Must(RestoreStore(From(backup)));
  Open([](NodeStore& store) {
    Must(store.ClearDistrust("test"));
    Replace(store, "same", WithSecret(kSecretB));
  });
  // Here "same" was still tenant A's.
  WriteFile(database(), now);
  fs::remove(directory() / "lock.mdb");
  const RestoreReport report = Must(RestoreStore(From(older / "backup.mdb")));
  BOOST_TEST(report.records_without_credentials == 5U);
  Open([](NodeStore& store) { BOOST_TEST(!Opens(store, "same", kSecretA)); });
}

// Without a witness the backup proves it: the sequence of a store only grows.
BOOST_FIXTURE_TEST_CASE(what_is_replaced_is_older_than_the_backup, VersionedStore) {
  const auto open = [this](const std::function<void(NodeStore&)>& then) {
    NodeStoreOptions options = Options();
    options.witness = Witness::None();
    auto store = Must(NodeStore::Open(options));
    then(*store);
    Must(store->Close());
  };
  open([](NodeStore& store) { Pull(store, "image", WithSecret(kSecretA)); });
  const std::string older = ReadFile(database());
  open([](NodeStore& store) { Pull(store, "another", WithSecret(kSecretB)); });
  const fs::path backup = Migrate(1).backup;
  open([](NodeStore& store) { Replace(store, "image", WithSecret(kSecretB)); });
  WriteFile(database(), older);
  fs::remove(directory() / "lock.mdb");
  const RestoreReport report = Must(RestoreStore(From(backup)));
  BOOST_TEST(report.records_without_credentials == 2U);
  open([](NodeStore& store) { BOOST_TEST(!Opens(store, "image", kSecretA)); });
}

// An entry that was taken back, or that nobody can confirm, must not open again.
BOOST_AUTO_TEST_CASE(what_is_preloaded_counts_where_the_replaced_store_says_the_very_same) {
  enum { kSound, kGone, kNoDatabase, kOlderThanItsWitness, kWays };
  for (int way = kSound; way < kWays; ++way) {
    const VersionedStore store;
    const auto add = [](NodeStore& opened, const std::string& name, const std::string& image) {
      Must(opened.AddToLedger({.id = RefOf(name), .repo_tags = {ImageOf(image)}}, "test", "test"));
    };
    store.Open([&](NodeStore& opened) {
      for (const char* name : {"same", "taken-back", "renamed"}) add(opened, name, name);
    });
    const std::string older = ReadFile(store.database());
    const fs::path backup = store.scratch() / "backup.mdb";
    WriteFile(backup, older);
    store.Open([&](NodeStore& opened) {
      Must(opened.RemoveFromLedger({.image_ref = RefOf("taken-back")}, "it is not"));
      add(opened, "renamed", "another-name");
      const PullId pull = Must(opened.RecordPullIntent({.image = ImageOf("cancelled")}));
      Must(opened.RecordImagePullFailed({.image = ImageOf("cancelled")}, PullOutcome::kUnknown,
                                        pull));
    });
    if (way == kGone) fs::remove(store.database());
    if (way == kNoDatabase) WriteFile(store.database(), std::string(50'000, 'x'));
    if (way == kOlderThanItsWitness) WriteFile(store.database(), older);
    fs::remove(store.directory() / "lock.mdb");
    Must(RestoreStore(store.From(backup)));
    store.Open([&](NodeStore& opened) {
      BOOST_TEST_CONTEXT("way " << way) {
        for (const char* name : {"same", "taken-back", "renamed"}) {
          const bool opens = way == kSound && std::string_view(name) == "same";
          BOOST_TEST(Opens(opened, name, kSecretB) == opens, name);
        }
        if (way == kSound) BOOST_TEST(Must(opened.HasIntent({.image = ImageOf("cancelled")})));
      }
    });
  }
}

BOOST_FIXTURE_TEST_CASE(a_backup_that_is_none, LivedOn) {
  const fs::path made = scratch() / "made.mdb";
  CheckRefused(*this, made, ErrorCode::kNotFound);
  const std::string bytes = ReadFile(backup);
  for (const std::string& bad :
       {std::string(), std::string("text"), std::string(100'000, '\0'), std::string(4096 * 4, 'x'),
        bytes.substr(0, bytes.size() - 4096), bytes.substr(4096)}) {
    WriteFile(made, bad);
    BOOST_TEST_CONTEXT(bad.size() << " bytes") { CheckRefused(*this, made, ErrorCode::kDamaged); }
  }
  fs::remove(made);
  fs::create_symlink(backup, made);
  CheckRefused(*this, made, ErrorCode::kUnsafePath);
  fs::remove(made);
  BOOST_REQUIRE(mkfifo(made.c_str(), 0600) == 0);
  ExpectError(RestoreStore(From(made)), ErrorCode::kUnsafePath);
  fs::remove(made);
  fs::create_directory(made);
  CheckRefused(*this, made, ErrorCode::kNotFound);
}

BOOST_FIXTURE_TEST_CASE(a_backup_of_another_store, LivedOn) {
  const LivedOn other;
  CheckRefused(*this, other.backup, ErrorCode::kConflict);
  // Only the witness is left to show it.
  const fs::path copy = scratch() / "copy.mdb";
  fs::copy_file(backup, copy);
  fs::remove(database());
  WriteFile(witness(), ReadFile(other.witness()));
  CheckRefused(*this, copy, ErrorCode::kConflict);
}

BOOST_FIXTURE_TEST_CASE(a_newer_backup_or_store, LivedOn) {
  const MemoryDir newer;
  fs::copy_file(database(), newer / "data.mdb");
  MakeNewer(newer.path());
  CheckRefused(*this, newer / "data.mdb", ErrorCode::kNewerSchema);
  MakeNewer(directory());
  CheckRefused(*this, backup, ErrorCode::kNewerSchema);
}

BOOST_FIXTURE_TEST_CASE(a_directory_that_is_not_safe, LivedOn) {
  RestoreOptions options = From(backup);
  options.directory = scratch() / "nowhere";
  ExpectError(RestoreStore(options), ErrorCode::kNotFound);
  fs::create_symlink(directory(), scratch() / "symlink");
  options.directory = scratch() / "symlink";
  ExpectError(RestoreStore(options), ErrorCode::kUnsafePath);
  fs::permissions(directory(), fs::perms::all);
  CheckRefused(*this, backup, ErrorCode::kUnsafePath);
}

// The intent must still be found under the handler's own name when the pull ends.
BOOST_FIXTURE_TEST_CASE(pulls_in_flight_for_what_is_the_default_handler_again, VersionedStore) {
  Open([](NodeStore& opened) {
    Must(opened.ReplaceRuntimeHandlers({{"runc", true, true}, {"kata", false, true}}));
  });
  const fs::path backup = Migrate(1, true).backup;
  Open([](NodeStore& opened) {
    Must(opened.ReplaceRuntimeHandlers({{"runc", false, true}, {"kata", true, true}}));
    Must(opened.RecordPullIntent({.image = ImageOf("app"), .runtime_handler = "runc"}));
  });
  Must(RestoreStore(From(backup)));
  Open([](NodeStore& opened) {
    BOOST_TEST(Must(opened.HasIntent({.image = ImageOf("app"), .runtime_handler = "runc"})));
    Must(opened.RecordImagePulled(
        {.image = ImageOf("app"), .image_ref = RefOf("app"), .runtime_handler = "runc"},
        WithSecret(kSecretA)));
    BOOST_TEST(Must(opened.ListIntents()).empty());
  });
}

// --- The number of replaced databases kept is bounded --------------------------------------------

void CheckDamagedOnesGo(const VersionedStore& store, const fs::path& stays, bool does_stay) {
  std::vector<std::string> removed;
  for (int i = 0; i < 6; ++i) {
    WriteFile(store.database(), std::string(8192, static_cast<char>('a' + i)));
    const OpeningReport report = store.Open();
    BOOST_TEST_REQUIRE(report.set_aside);
    BOOST_TEST(fs::exists(report.set_aside_path));
    removed.insert(removed.end(), report.removed_paths.begin(), report.removed_paths.end());
  }
  std::size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(store.directory() / "quarantine")) {
    if (entry.path() != stays) ++kept;
  }
  BOOST_TEST(kept == kMaxKeptAside);
  for (const std::string& path : removed) BOOST_TEST(!fs::exists(path));
  BOOST_TEST(removed.size() == 6 - kMaxKeptAside + (does_stay ? 0 : 1));
  BOOST_TEST(fs::exists(stays) == does_stay);
}

BOOST_FIXTURE_TEST_CASE(databases_that_failed_go_and_one_that_no_backup_has_stays, LivedOn) {
  const RestoreReport report = Must(RestoreStore(From(backup)));
  BOOST_TEST(report.removed_paths.empty());
  CheckDamagedOnesGo(*this, fs::path(report.replaced_path).parent_path(), true);
}

BOOST_FIXTURE_TEST_CASE(a_replaced_database_goes_where_a_backup_has_it, LivedOn) {
  const std::string before = ReadFile(database());
  Migrate(1, true);
  const Backup same = Must(BackupsOf(directory())).front();
  WriteFile(database(), before);
  fs::remove(directory() / "lock.mdb");
  BOOST_TEST_REQUIRE(same.commit_sequence == StateOf(directory()).commit_sequence);
  const RestoreReport report = Must(RestoreStore(From(same.path)));
  CheckDamagedOnesGo(*this, fs::path(report.replaced_path).parent_path(), false);
}

// --- A copied data.mdb

BOOST_FIXTURE_TEST_CASE(the_store_itself_is_no_backup_of_it, LivedOn) {
  CheckRefused(*this, database(), ErrorCode::kInvalidArgument);
  CheckRefused(*this, directory(), ErrorCode::kInvalidArgument);
  fs::create_hard_link(database(), scratch() / "link.mdb");
  CheckRefused(*this, scratch() / "link.mdb", ErrorCode::kInvalidArgument);
}

BOOST_FIXTURE_TEST_CASE(not_while_a_process_owns_it, LivedOn) {
  VersionedStore other;
  other.Open([&](NodeStore&) { CheckRefused(*this, other.directory(), ErrorCode::kOwned); });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
