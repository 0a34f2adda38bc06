// Why a migration is refused, and that the store is then unchanged.

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/maintenance.h"
#include "tests/support/child_process.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/good_in_child.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/third_version.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(migration_refused)

namespace {

namespace fs = std::filesystem;

std::string RefOf(std::size_t i) { return "sha256:" + Sha256Hex(std::to_string(i)); }
std::string ImageOf(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }

void Fill(NodeStore& store, std::size_t records, const std::string& handler = {}) {
  Must(store.ReplaceRuntimeHandlers(SomeHandlers()));
  for (std::size_t i = 0; i < records; ++i) {
    Must(store.RecordPullIntent({.image = ImageOf(i), .runtime_handler = handler}));
    Must(store.RecordImagePulled(
        {.image = ImageOf(i), .image_ref = RefOf(i), .runtime_handler = handler},
        WithSecret(kSecretA)));
  }
}

// The call is refused, and no file has changed.
void CheckRefused(const VersionedStore& store, const MigrateOptions& options, ErrorCode code) {
  const Tree before = store.Files();
  ExpectError(MigrateStore(options), code);
  BOOST_TEST((store.Files() == before));
}

// Changes a character of a record's ref, wherever that is stored.
void Damage(const VersionedStore& store, const std::string& ref) {
  std::string bytes = ReadFile(store.database());
  for (const std::size_t at : PlacesOf(bytes, ref)) {
    bytes[at + 3] = static_cast<char>(bytes[at + 3] ^ 1);
  }
  WriteFile(store.database(), bytes);
}
constexpr const char* kRefToDamage = "custom-ref-without-hash";  // of the golden store

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_directory_that_others_can_write, OldestStore) {
  fs::permissions(store.directory(), fs::perms::all);
  CheckRefused(store, store.To(2), ErrorCode::kUnsafePath);
}

BOOST_FIXTURE_TEST_CASE(a_store_that_is_open_in_this_process, OldestStore) {
  auto opened = Must(NodeStore::Open(store.Options()));
  for (const std::uint32_t version : {1U, 2U}) {
    MigrateOptions options = store.To(version);
    CheckRefused(store, options, ErrorCode::kOwned);
    options.dry_run = true;
    CheckRefused(store, options, ErrorCode::kOwned);
  }
  Must(opened->PutIntent({.image = ImageOf(0)}));
  Must(opened->Close());
  store.Migrate(1, true);
}

// A limit: "One process owns a store"
BOOST_FIXTURE_TEST_CASE(a_store_that_another_process_owns, OldestStore) {
  ChildProcess owner([&]() -> ChildProcess::Serve {
    std::shared_ptr<NodeStore> opened = Must(NodeStore::Open(store.Options()));
    return [opened](const std::string& image) -> std::string {
      return opened->PutIntent({.image = image}) ? "stored" : "refused";
    };
  });
  BOOST_TEST(owner.Ask("one") == "stored");
  for (const std::uint32_t version : {1U, 2U}) {
    CheckRefused(store, store.To(version), ErrorCode::kOwned);
  }
  BOOST_TEST(owner.Ask("two") == "stored");
  owner.Kill();
  store.Migrate(1, true);
}

BOOST_FIXTURE_TEST_CASE(opening_that_may_not_migrate, OldestStore) {
  NodeStoreOptions options = store.Options();
  options.migrate = false;
  const auto check = [&] {
    const Tree before = store.Files();
    ExpectError(NodeStore::Open(options), ErrorCode::kOlderSchema);
    BOOST_TEST((store.Files() == before));
  };
  check();
  Damage(store, kRefToDamage);
  BOOST_TEST(!InspectPath(store.database()).sound);
  check();
  // A new store, or one of the newest version, is opened.
  const VersionedStore other;
  options = other.Options();
  options.migrate = false;
  Must(Must(NodeStore::Open(options))->Close());
  Must(Must(NodeStore::Open(options))->Close());
}

BOOST_AUTO_TEST_CASE(a_newer_store) {
  enum { kByIdentity, kByEnvelope, kReally, kWays };
  for (int way = kByIdentity; way != kWays; ++way) {
    const VersionedStore store;
    store.Open();
    if (way == kByIdentity) {
      PutIdentity(store.directory(), kNewestSchema + 1, internal::Newest().header);
    } else if (way == kByEnvelope) {
      MakeNewer(store.directory());
    } else {
      const ThirdVersion third;
      store.Migrate(kThirdVersion);
    }
    for (const std::uint32_t version : {1U, 2U}) {
      CheckRefused(store, store.To(version), ErrorCode::kNewerSchema);
      MigrateOptions options = store.To(version);
      options.dry_run = true;
      CheckRefused(store, options, ErrorCode::kNewerSchema);
    }
    const Tree before = store.Files();
    ExpectError(NodeStore::Open(store.Options()), ErrorCode::kNewerSchema);
    ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kNewerSchema);
    BOOST_TEST((store.Files() == before));
  }
}

BOOST_FIXTURE_TEST_CASE(opening_recovers_a_damaged_store_as_the_newest_version, OldestStore) {
  const Contents before = ContentsOf(store.directory());
  Damage(store, kRefToDamage);
  const std::string damaged = ReadFile(store.database());
  const OpeningReport report = store.Open();
  BOOST_TEST(report.set_aside);
  BOOST_TEST(ReadFile(report.set_aside_path) == damaged);
  BOOST_TEST(report.distrustful);
  BOOST_TEST(report.records == before.records.size() - 1);
  BOOST_TEST(!report.migration.has_value());
  BOOST_TEST(InspectPath(store.database()).sound);
  BOOST_TEST(IdentityOf(store.directory()).schema_version == kNewestSchema);

  // The damaged record is lost, and reported; the digest proves the credentials of the others.
  Contents expected = WithoutStamps(before);
  DropSeveral(expected);
  std::erase_if(expected.records,
                [](const auto& record) { return record.image_ref == kRefToDamage; });
  Contents after = WithoutStamps(ContentsOf(store.directory()));
  DropSeveral(after);
  BOOST_TEST((after.records == expected.records));
  BOOST_TEST((after.intents == expected.intents));
  BOOST_TEST((after.quarantine == expected.quarantine));
  BOOST_TEST((after.imported == expected.imported));
  BOOST_TEST((after.preloaded == expected.preloaded));
}

// Wherever a migration is stopped, the store is as before the step, and the next call succeeds.
BOOST_FIXTURE_TEST_CASE(progress_that_stops_it, NoStoreYet) {
  store.Open([](NodeStore& opened) {
    Fill(opened, 1100, "");
    for (std::size_t i = 0; i < 30; ++i) {
      Must(opened.PutIntent({.image = ImageOf(i), .runtime_handler = "kata"}));
    }
  });
  store.Migrate(2);
  const std::string before = ReadFile(store.database());
  const Contents contents = ContentsOf(store.directory());
  std::uint64_t calls = 0;
  for (std::uint64_t stop = 1;; ++stop) {
    calls = 0;
    std::uint64_t last = 0;
    MigrateOptions options = store.To(1);
    options.accept_loss = true;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      BOOST_TEST(done <= total);
      BOOST_TEST(done >= last);
      last = done;
      return ++calls != stop;
    };
    const auto migrated = MigrateStore(options);
    if (migrated) break;
    BOOST_TEST((migrated.error().code == ErrorCode::kInterrupted), migrated.error().ToString());
    BOOST_TEST(calls == stop);
    BOOST_TEST((ReadFile(store.database()) == before));
  }
  BOOST_TEST(calls >= 3U);
  BOOST_TEST(IdentityOf(store.directory()).schema_version == 1U);
  BOOST_TEST(ContentsOf(store.directory()).records.size() == contents.records.size());
  BOOST_TEST(InspectPath(store.database()).sound);
}

BOOST_AUTO_TEST_CASE(a_disk_without_room_for_the_step) {
  const MemoryDir scratch;
  ExpectGoodInChild([&]() -> std::string {
    if (!MountSmallFileSystem(scratch.path(), "16m")) return kMayNotMount;
    NodeStoreOptions open{.directory = scratch / "store",
                          .witness = Witness::At(scratch / "witness")};
    open.map_bytes = std::uint64_t{64} << 20U;
    auto opened = Must(NodeStore::Open(open));
    Fill(*opened, 2500, "");
    const auto used = Must(opened->GetStatistics()).used_bytes;
    Must(opened->Close());
    const Contents before = ContentsOf(open.directory);
    const auto free = fs::space(scratch.path()).available;
    // Room for the backup, and for no more than a few pages.
    if (free > used + (64U << 10U)) {
      WriteFile(scratch / "ballast", std::string(free - used - (64U << 10U), 'x'));
    }
    MigrateOptions options{.directory = open.directory, .to = 1, .accept_loss = true};
    const auto refused = MigrateStore(options);
    if (refused) return "migrated";
    if (refused.error().code != ErrorCode::kDiskFull) return refused.error().ToString();
    if (!InspectPath(open.directory / "data.mdb").sound) return "not sound";
    if (ContentsOf(open.directory) != before) return "changed";
    fs::remove(scratch / "ballast");
    for (const auto& backup : Must(BackupsOf(open.directory))) fs::remove(backup.path);
    const auto migrated = MigrateStore(options);
    if (!migrated) return migrated.error().ToString();
    return IdentityOf(open.directory).schema_version == 1 ? "good" : "still version 2";
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
