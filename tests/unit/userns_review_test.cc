// Ways in which two pods could come to share host IDs, tried one by one.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/userns_store.h"
#include "tests/support/versions.h"
#include "waybill/maintenance.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(userns_review)

namespace {

namespace fs = std::filesystem;

// Every block that can be handed out to new pods.
std::set<std::uint32_t> AllThatIsHandedOut(UsernsStore& store) {
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 100; ++i) {
    const auto got = store.Try("filler" + std::to_string(i));
    if (!got) break;
    blocks.insert(static_cast<std::uint32_t>(got->uids.front().host_id / kIdsPerBlock));
  }
  return blocks;
}

MigrateOptions To(const UsernsStore& store, std::uint32_t version) {
  MigrateOptions options{.directory = store.directory(), .to = version};
  options.accept_loss = true;
  options.map_bytes = std::uint64_t{64} << 20U;
  return options;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_stale_store_put_back, WithFourRanges) {
  store.Open();
  store.Close();
  fs::copy(store.database(), store.kubelet() / "copy");
  const std::uint32_t block = store.Get("living");
  store.Close();
  fs::copy(store.kubelet() / "copy", store.database(), fs::copy_options::overwrite_existing);
  fs::remove(store.directory() / "lock.mdb");
  for (const std::uint32_t other : AllThatIsHandedOut(store)) BOOST_TEST(other != block);
  BOOST_TEST(!store.report().refused_because.empty());
  Must(store->AdoptUserNamespace("living", block * kIdsPerBlock, kIdsPerBlock));
  BOOST_TEST(Must(store->ReleaseLostUserNamespaces()));
  for (const std::uint32_t other : AllThatIsHandedOut(store)) BOOST_TEST(other != block);
}

BOOST_AUTO_TEST_CASE(restores_keep_what_lives) {
  UsernsStore store(SmallPool(4, 6));
  const std::uint32_t a = store.Get("a");
  store.Close();
  Must(Migrate(To(store, 2)));
  store.Reopen();
  const fs::path v2 = [&] {
    for (const auto& one : Must(ListBackups(store.directory()))) {
      if (one.schema_version == 2) return one.path;
    }
    return fs::path();
  }();
  BOOST_TEST_REQUIRE(!v2.empty());
  Must(store->AdoptUserNamespace("a", a * kIdsPerBlock, kIdsPerBlock));
  Must(store->ReleaseLostUserNamespaces());
  const std::uint32_t b = store.Get("b");
  store.Close();
  RestoreOptions restore{.directory = store.directory(), .backup = v2};
  restore.map_bytes = std::uint64_t{64} << 20U;
  BOOST_TEST(Must(Restore(restore)).schema_version == kNewestSchema);
  BOOST_TEST(store.Get("a") == a);
  BOOST_TEST(store.Get("b") == b);
  for (const std::uint32_t other : AllThatIsHandedOut(store))
    BOOST_TEST((other != a && other != b));
}

BOOST_FIXTURE_TEST_CASE(a_damaged_copy_of_a_version_that_knew_no_ranges, WithFourRanges) {
  Must(store->PutIntent({.image = "registry.example/a:v1"}));
  store.Close();
  Must(Migrate(To(store, 2)));
  std::string copy = ReadFile(store.database());
  const std::uint32_t block = store.Get("living");
  store.Close();
  for (std::size_t at = copy.find("registry.example/a"); at != std::string::npos;
       at = copy.find("registry.example/a", at + 1)) {
    copy[at] = 'R';
  }
  WriteFile(store.database(), copy);
  fs::remove(store.directory() / "lock.mdb");
  for (const std::uint32_t other : AllThatIsHandedOut(store)) BOOST_TEST(other != block);
  BOOST_TEST(store->recovery_report().set_aside);
}

BOOST_FIXTURE_TEST_CASE(an_import_that_stopped_at_the_images, WithFourRanges) {
  store.WriteMapping("living", 5);
  WriteRecordFile(store.kubelet(), "pulling", "x", "{");
  OpenOptions options = store.Options();
  options.kubelet_directory = store.kubelet();
  options.import_progress = [](auto, auto) { return false; };
  ExpectError(NodeStore::Open(options), ErrorCode::kInterrupted);
  options = store.Options();
  options.pods_directory.clear();
  {
    auto opened = Must(NodeStore::Open(options));
    for (const std::string pod : {"a", "b", "c", "d"}) {
      const auto got = opened->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false});
      if (got) BOOST_TEST(got->uids.front().host_id != 5 * kIdsPerBlock);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(pods_that_could_not_be_listed, WithFourRanges) {
  const fs::path elsewhere = store.kubelet() / "elsewhere";
  fs::create_directories(elsewhere / "living");
  WriteFile(elsewhere / "living" / "userns", UsernsStore::FileOf(5 * kIdsPerBlock, kIdsPerBlock));
  fs::create_directory_symlink(elsewhere, store.pods());
  // Anybody could put another one in its place.
  fs::permissions(elsewhere, fs::perms::all);
  ExpectError(NodeStore::Open(store.Options()), ErrorCode::kUnsafePath);
  fs::remove(store.pods());
  for (const std::uint32_t block : AllThatIsHandedOut(store)) BOOST_TEST(block != 5U);
}

BOOST_FIXTURE_TEST_CASE(a_store_put_back_while_its_witness_is_moved, WithFourRanges) {
  store.Open();
  store.Close();
  fs::copy(store.database(), store.kubelet() / "copy");
  const std::uint32_t block = store.Get("living");
  store.Close();
  fs::copy(store.kubelet() / "copy", store.database(), fs::copy_options::overwrite_existing);
  fs::remove(store.directory() / "lock.mdb");
  OpenOptions options = store.Options();
  options.witness = Witness::At(store.kubelet() / "another-witness");
  auto opened = Must(NodeStore::Open(options));
  for (const std::string pod : {"a", "b", "c", "d"}) {
    const auto got = opened->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false});
    if (got) BOOST_TEST(got->uids.front().host_id != block * kIdsPerBlock);
  }
}

BOOST_FIXTURE_TEST_CASE(a_pods_directory_behind_a_symlink_is_not_passed_over, WithFourRanges) {
  const fs::path elsewhere = store.kubelet() / "elsewhere";
  fs::create_directories(elsewhere);
  WriteFile(elsewhere / "userns", UsernsStore::FileOf(5 * kIdsPerBlock, kIdsPerBlock));
  fs::create_directory(store.pods());
  fs::create_directory_symlink(elsewhere, store.pods() / "living");
  store.Open();
  for (const std::uint32_t block : AllThatIsHandedOut(store)) BOOST_TEST(block != 5U);
}

// The store that a backup replaces may itself be the older one.
BOOST_AUTO_TEST_CASE(a_backup_that_is_newer_than_the_store_that_it_replaces) {
  UsernsStore store(SmallPool(4, 8));
  Must(store->AdoptUserNamespace("static", 4 * kIdsPerBlock, kIdsPerBlock));
  Must(store->AdoptUserNamespace("steady", 9 * kIdsPerBlock, kIdsPerBlock));
  store.Close();
  const std::string older = ReadFile(store.database());
  Must(store->ReleaseUserNamespace("static"));
  Must(store->AdoptUserNamespace("living", 4 * kIdsPerBlock, kIdsPerBlock));
  Must(store->AdoptUserNamespace("static", 5 * kIdsPerBlock, kIdsPerBlock));
  store.Close();
  const auto migrated = Must(Migrate(To(store, 2)));
  WriteFile(store.database(), older);
  fs::remove(store.directory() / "lock.mdb");
  RestoreOptions restore{.directory = store.directory(), .backup = migrated.backup};
  restore.map_bytes = std::uint64_t{64} << 20U;
  Must(Restore(restore));
  const auto is_elsewhere = [&](const std::string& pod, std::uint64_t block) {
    const auto got = store.Try(pod);
    return !got || got->uids.front().host_id != block * kIdsPerBlock;
  };
  BOOST_TEST(is_elsewhere("static", 4));
  BOOST_TEST(is_elsewhere("living", 5));
  BOOST_TEST(store.Get("steady") == 9U);
  for (const std::uint32_t other : AllThatIsHandedOut(store))
    BOOST_TEST((other != 4 && other != 5));
}

// Where a kubelet's ranges are still to be taken over, that a pod has none does not say that its
// range was released.
BOOST_FIXTURE_TEST_CASE(down_and_up_and_back_by_the_backup, WithFourRanges) {
  WriteRecordFile(store.kubelet(), "pulling", "x", "{");
  OpenOptions options = store.Options();
  options.kubelet_directory = store.kubelet();
  Must(Must(NodeStore::Open(options))->Close());
  const std::uint32_t block = store.Get("living");
  store.Close();
  const auto migrated = Must(Migrate(To(store, 2)));
  Must(Migrate(To(store, kNewestSchema)));
  store.Open();
  BOOST_TEST(!store.report().refused_because.empty());
  store.Close();
  RestoreOptions restore{.directory = store.directory(), .backup = migrated.backup};
  restore.map_bytes = std::uint64_t{64} << 20U;
  const auto report = Must(Restore(restore));
  BOOST_TEST(report.id_mappings_dropped == 0U);
  fs::create_directory(store.pods());
  for (const std::uint32_t other : AllThatIsHandedOut(store)) BOOST_TEST(other != block);
}

BOOST_FIXTURE_TEST_CASE(a_damaged_store_of_a_version_that_knew_no_ranges_beside_a_kubelet,
                        WithFourRanges) {
  WriteRecordFile(store.kubelet(), "pulling", "x", "{");
  OpenOptions options = store.Options();
  options.kubelet_directory = store.kubelet();
  Must(Must(NodeStore::Open(options))->Close());
  Must(store->PutIntent({.image = "registry.example/a:v1"}));
  store.Close();
  Must(Migrate(To(store, 2)));
  std::string damaged = ReadFile(store.database());
  for (std::size_t at = damaged.find("registry.example/a"); at != std::string::npos;
       at = damaged.find("registry.example/a", at + 1)) {
    damaged[at] = 'R';
  }
  WriteFile(store.database(), damaged);
  // Of its pods nothing was read yet.
  store.Open();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(!store.report().refused_because.empty());
  BOOST_TEST(!store.Try("new").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
