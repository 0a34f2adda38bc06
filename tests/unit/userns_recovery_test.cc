// Ranges of host IDs: never one for two pods.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "store/disk/committer.h"
#include "store/maintenance.h"
#include "store/opening/open_store.h"
#include "store/opening/product.h"
#include "store/pods/host_ids.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/userns_store.h"
#include "tests/support/versions.h"

namespace waybill::testing {

// Ranges after losses, damage, contradictions and migrations: never one for two pods.
BOOST_AUTO_TEST_SUITE(userns_recovery)

namespace fs = std::filesystem;
using internal::StoreTxn;

namespace {

bool Refuses(UsernsStore& store) {
  const auto got = store.Try("one-more");
  return !got && got.error().code == ErrorCode::kConflict &&
         got.error().message.find("no new ID mapping can be handed out") != std::string::npos;
}

bool IsHeld(UsernsStore& store, const std::string& pod_uid) {
  const auto got = store.Try(pod_uid);
  return !got && got.error().code == ErrorCode::kConflict &&
         got.error().message.find("are unverified") != std::string::npos;
}

void ExpectLostUntilSaidOtherwise(UsernsStore& store) {
  BOOST_TEST(!store.report().refused_because.empty());
  BOOST_TEST(Refuses(store));
  store.Reopen();
  BOOST_TEST(Refuses(store));
  BOOST_TEST(!Must(store->GetUserNamespaceStatistics()).refused_because.empty());
  BOOST_TEST(Must(store->ReleaseLostUserNamespaces()));
  BOOST_TEST(!Must(store->ReleaseLostUserNamespaces()));
  store.Get("one-more");
}

// Changes the tables in ways that the library never does.
void Tamper(const UsernsStore& store, const internal::Committer::Change& change) {
  OpeningReport report;
  NodeStoreOptions options = store.Options();
  auto owned = Must(internal::OpenAsOwner(options, internal::OnDamage::kRefuse,
                                          {&internal::NodeProduct()}, report));
  internal::Committer::Hooks hooks;
  hooks.clock = options.clock;
  internal::Committer committer(*owned.database.env, owned.database.handles,
                                owned.database.identity, owned.state, hooks);
  Must(committer.Run(change));
  owned.witness->Advance(committer.state().commit_sequence);
  Must(owned.witness->Sync());
}

}  // namespace

BOOST_AUTO_TEST_CASE(pods_whose_ranges_overlap_are_held) {
  UsernsStore store(SmallPool(1, 12));
  for (const auto& [pod, block] : {std::pair{"a", 2}, {"b", 4}, {"c", 6}, {"d", 8}}) {
    Must(store->AdoptUserNamespace(pod, block * kIdsPerBlock, kIdsPerBlock));
  }
  store.Close();
  Tamper(store, [](StoreTxn& txn) {
    return PutHostIds(txn, {.pod_uid = "b", .range = {2 * kIdsPerBlock, 5 * kIdsPerBlock}});
  });
  store.Open();
  BOOST_TEST(!store->recovery_report().set_aside);
  BOOST_TEST(store.report().held == 3U);
  BOOST_TEST(Must(store->Verify()).sound);
  BOOST_TEST(store.Get("d") == 8U);
  for (const QuarantinedPod& held : Must(store->ListHeldPods())) {
    BOOST_TEST((held.kind == PodQuarantineKind::kOverlap));
    BOOST_TEST(held.ranges.empty());
  }
  for (const char* pod : {"a", "b", "c"}) BOOST_TEST(IsHeld(store, pod), pod);
  BOOST_TEST(Refuses(store));
  // A file, an operator's word, and the end of a pod.
  store.WriteMapping("a", 2);
  BOOST_TEST(store.Reopen().held == 0U);
  BOOST_TEST(store.Get("a") == 2U);
  BOOST_TEST(Refuses(store));
  ExpectError(store->AdoptUserNamespace("b", 2 * kIdsPerBlock, kIdsPerBlock), ErrorCode::kConflict);
  Must(store->AdoptUserNamespace("b", 4 * kIdsPerBlock, kIdsPerBlock));
  BOOST_TEST(Refuses(store));
  Must(store->ReleaseUserNamespace("c"));
  std::set<std::uint32_t> blocks = {2, 4, 8};
  for (int i = 0; i < 9; ++i) blocks.insert(store.Get("new" + std::to_string(i)));
  BOOST_TEST(blocks.size() == 12U);
  BOOST_TEST(!store.Try("too-many").has_value());
}

BOOST_FIXTURE_TEST_CASE(a_restored_backup_takes_nobodys_range, WithUserns) {
  store.Get("gone");
  const fs::path backup = store.Migrate(1).backup;
  Must(store->ReleaseUserNamespace("gone"));
  const std::uint32_t now = store.Get("now");
  const RestoreReport restored = store.Restore(backup);
  BOOST_TEST(restored.id_mappings == 1U);
  BOOST_TEST(restored.id_mappings_dropped == 1U);
  BOOST_TEST(!restored.id_ranges_lost);
  store.Open();
  BOOST_TEST(store.Get("now") == now);
  ExpectError(store->GetUserNamespace("gone"), ErrorCode::kNotFound);
  store.Get("new");
  store.Close();
  // If the replaced store can't be read, the backup's mappings are used, and others may be lost.
  WriteFile(store.database(), std::string(40960, 'x'));
  BOOST_TEST(store.Restore(backup).id_ranges_lost);
  store.Open();
  BOOST_TEST(Must(store->GetUserNamespace("gone")).length == kIdsPerBlock);
  ExpectLostUntilSaidOtherwise(store);
}

// The replaced store was made after a loss, and does not know these pods.
BOOST_FIXTURE_TEST_CASE(a_backup_over_a_store_that_lost_ranges_keeps_or_holds_its_mappings,
                        WithUserns) {
  std::map<std::string, std::uint32_t> listed;
  for (int i = 0; i < 9; ++i) {
    const std::string pod = "listed-" + std::to_string(i);
    listed[pod] = store.Get(pod);
  }
  const fs::path backup = store.Migrate(1).backup;
  WriteFile(store.database(), std::string(40960, 'x'));
  store.Open();
  BOOST_TEST(Must(store->ListUserNamespaces()).empty());
  // Meanwhile an operator gave two of the ranges away, one of them to the pod that had it.
  Must(store->AdoptUserNamespace("other", std::uint64_t{listed["listed-0"]} * kIdsPerBlock,
                                 kIdsPerBlock));
  Must(store->AdoptUserNamespace("listed-1", std::uint64_t{listed["listed-1"]} * kIdsPerBlock,
                                 kIdsPerBlock));
  const std::uint32_t moved = 40000;
  Must(store->AdoptUserNamespace("listed-2", std::uint64_t{moved} * kIdsPerBlock, kIdsPerBlock));

  const RestoreReport restored = store.Restore(backup);
  BOOST_TEST(restored.id_ranges_lost);
  BOOST_TEST(restored.id_mappings_kept == 7U);
  BOOST_TEST(restored.id_mappings_held == 1U);
  BOOST_TEST(restored.id_mappings_dropped == 1U);
  BOOST_TEST(restored.id_mappings == 9U);
  store.Open();
  BOOST_TEST(store.Get("other") == listed["listed-0"]);
  BOOST_TEST(IsHeld(store, "listed-0"));
  BOOST_TEST(store.Get("listed-2") == moved);
  for (int i = 3; i < 9; ++i) {
    const std::string pod = "listed-" + std::to_string(i);
    BOOST_TEST(store.Get(pod) == listed[pod]);
    const auto adopted = store->AdoptUserNamespace(
        "stranger", std::uint64_t{listed[pod]} * kIdsPerBlock, kIdsPerBlock);
    BOOST_TEST(!adopted.has_value());
  }
  BOOST_TEST(Refuses(store));
}

// Held pods, lost ranges and ranges of several lengths, too.
BOOST_AUTO_TEST_CASE(host_ids_go_down_and_up_whole) {
  UsernsStore store(SmallPool(1, 100));
  store.Get("a");
  Must(store->AdoptUserNamespace("longer", 50 * kIdsPerBlock, 2 * kIdsPerBlock));
  store.WriteFileOf("broken", "{");
  store.Reopen();
  const auto all = [&] {
    RawModel values = ValuesIn(store.directory());
    std::erase_if(values, [](const auto& table) { return table.first != "host-ids-------1"; });
    return values;
  };
  store.Close();
  const RawModel before = all();
  BOOST_TEST(before.at("host-ids-------1").size() == 3U);
  for (const std::string& loss : store.Migrate(1).losses) {
    BOOST_TEST(loss.starts_with("the runtime handler "), loss);
  }
  BOOST_TEST((all() == before));
  store.Migrate(kNewestSchema);
  BOOST_TEST((all() == before));
}

BOOST_AUTO_TEST_SUITE_END()

// Ways in which two pods could come to share host IDs, tried one by one.
BOOST_AUTO_TEST_SUITE(userns_review)

namespace {

namespace fs = std::filesystem;

// Every block that can be handed out to new pods.
std::set<std::uint32_t> AllThatIsHandedOut(NodeStore& store) {
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 100; ++i) {
    const std::string pod = "filler" + std::to_string(i);
    const auto got = store.GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false});
    if (!got) break;
    blocks.insert(static_cast<std::uint32_t>(got->uids.front().host_id / kIdsPerBlock));
  }
  return blocks;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(an_import_that_stopped_at_the_images, WithFourRanges) {
  store.WriteMapping("living", 5);
  WriteRecordFile(store.kubelet(), "pulling", "x", "{");
  NodeStoreOptions options = store.Options();
  options.kubelet_directory = store.kubelet();
  options.import_progress = [](auto, auto) { return false; };
  ExpectError(NodeStore::Open(options), ErrorCode::kInterrupted);
  options = store.Options();
  options.pods_directory.clear();
  const auto opened = Must(NodeStore::Open(options));
  BOOST_TEST(!AllThatIsHandedOut(*opened).contains(5U));
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
  BOOST_TEST(!AllThatIsHandedOut(*store).contains(5U));
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
  const auto migrated = store.Migrate(1);
  store.PutBack(older);
  store.Restore(migrated.backup);
  const auto is_elsewhere = [&](const std::string& pod, std::uint64_t block) {
    const auto got = store.Try(pod);
    return !got || got->uids.front().host_id != block * kIdsPerBlock;
  };
  BOOST_TEST(is_elsewhere("static", 4));
  BOOST_TEST(is_elsewhere("living", 5));
  BOOST_TEST(store.Get("steady") == 9U);
  const auto handed_out = AllThatIsHandedOut(*store);
  BOOST_TEST((!handed_out.contains(4U) && !handed_out.contains(5U)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
