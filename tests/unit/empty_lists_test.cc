// Complete lists that are empty: of images, of pods, of runtime handlers. A runtime that is
// starting up lists nothing, too, so an empty list deletes nothing unless the caller means it. And
// dry runs.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/rows.h"
#include "tests/support/tree.h"
#include "tests/support/userns_store.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(empty_lists)

namespace {

constexpr waybill::ChangeOptions kMeant{.allow_empty = true};
constexpr waybill::ChangeOptions kDryRun{.allow_empty = true, .dry_run = true};
constexpr Timestamp kLater{4'000'000'000, 0};

template <typename T>
void CheckRefused(const Result<T>& result) {
  BOOST_REQUIRE(!result.has_value());
  BOOST_TEST((result.error().code == ErrorCode::kInvalidArgument));
  BOOST_TEST(result.error().message.find("empty") != std::string::npos);
  BOOST_TEST((result.error().hint_code == Hint::kAllowEmpty));
}

std::uint64_t Records(ScratchStore& store) { return Must(store->GetStatistics()).records; }
std::uint64_t Commits(NodeStore& store) { return Must(store.GetStatistics()).commit_sequence; }

// The runtime's list has none, although the store has a record.
OpenOptions WithoutImages(const ScratchStore& store, Gap gap) {
  OpenOptions options = store.Options({});
  options.allow_empty = false;
  options.gap = gap;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(prune_by_an_empty_list_removes_nothing_unless_it_is_meant) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const PruneToken before = Must(store->BeginPrune());
    // Nothing is there that it could remove.
    BOOST_TEST(Must(store->Prune({}, before)).examined == 0U);
    BOOST_TEST(Must(store->PruneBefore({}, kLater)).examined == 0U);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const PruneToken token = Must(store->BeginPrune());
    CheckRefused(store->Prune({}, token));
    CheckRefused(store->PruneBefore({}, kLater));
    CheckRefused(store->Prune({}, token, {.dry_run = true}));
    BOOST_TEST(Records(store) == 1U);
    BOOST_TEST(store.Check(kImage, kRef).pull);
    BOOST_TEST(Must(store->Prune({}, token, kMeant)).removed == 1U);
  });
}

BOOST_AUTO_TEST_CASE(cleanup_by_two_empty_lists_releases_nothing_unless_it_is_meant) {
  UsernsStore store;
  const PruneToken before = Must(store->BeginPrune());
  BOOST_TEST(Must(store->CleanUpUserNamespaces({}, {}, before)).examined == 0U);
  const std::uint32_t block = store.Get("pod");
  const PruneToken token = Must(store->BeginPrune());
  CheckRefused(store->CleanUpUserNamespaces({}, {}, token));
  BOOST_TEST(store.Get("pod") == block);
  BOOST_TEST(
      Must(store->CleanUpUserNamespaces({}, {}, Must(store->BeginPrune()), kMeant)).released == 1U);
}

BOOST_AUTO_TEST_CASE(a_held_pod_is_not_released_by_two_empty_lists) {
  UsernsStore store(SmallPool(1, 12));
  store.WriteFileOf("broken", "{");
  store.Open();
  const PruneToken token = Must(store->BeginPrune());
  CheckRefused(store->CleanUpUserNamespaces({}, {}, token));
  BOOST_TEST(Must(store->ListHeldPods()).size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_empty_list_of_runtime_handlers_replaces_none_unless_it_is_meant) {
  ScratchStore store(Rules::kClosed);
  Must(store->ReplaceRuntimeHandlers({}));
  Must(store->ReplaceRuntimeHandlers({{"runc", true, true}}));
  CheckRefused(store->ReplaceRuntimeHandlers({}));
  BOOST_TEST(Must(store->ListRuntimeHandlers()).size() == 1U);
  store.Stop();
  OpenOptions options = store.Options({});
  options.runtime_handlers.emplace();
  options.allow_empty = false;
  CheckRefused(NodeStore::Open(options));
  options.allow_empty = true;
  BOOST_TEST(Must(Must(NodeStore::Open(options))->ListRuntimeHandlers()).empty());
}

BOOST_AUTO_TEST_CASE(opening_with_an_empty_list_of_images_is_refused_where_records_are) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Stop();
    // Nothing was pulled yet.
    Must(Must(NodeStore::Open(WithoutImages(store, Gap::kDetect)))->Close());
    store.Start();
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    CheckRefused(NodeStore::Open(WithoutImages(store, Gap::kDetect)));
    // The error left the store free, and as it was.
    store.Start();
    BOOST_TEST(Records(store) == 1U);
  });
}

BOOST_AUTO_TEST_CASE(opening_with_an_empty_list_of_images_is_refused_where_an_intent_is) {
  ScratchStore store(Rules::kClosed);
  Must(store->PutIntent({.image = kImage}));
  store.Stop();
  CheckRefused(NodeStore::Open(WithoutImages(store, Gap::kNo)));
}

BOOST_AUTO_TEST_CASE(a_gap_is_not_closed_by_an_empty_list_of_images) {
  ScratchStore store(Rules::kClosed);
  store.Stop();
  // Said at an opening with nothing recorded, and then in force.
  CheckRefused(NodeStore::Open(WithoutImages(store, Gap::kYes)));
  OpenOptions unlisted = WithoutImages(store, Gap::kYes);
  unlisted.images_on_node.reset();
  BOOST_TEST(Must(NodeStore::Open(unlisted))->recovery_report().distrustful);
  CheckRefused(NodeStore::Open(WithoutImages(store, Gap::kDetect)));
  unlisted.gap = Gap::kDetect;
  BOOST_TEST(Must(NodeStore::Open(unlisted))->recovery_report().distrustful);
  OpenOptions meant = WithoutImages(store, Gap::kDetect);
  meant.allow_empty = true;
  BOOST_TEST(!Must(NodeStore::Open(meant))->recovery_report().distrustful);
}

BOOST_AUTO_TEST_CASE(a_distrustful_store_is_not_exported_by_an_empty_list_of_images) {
  ScratchStore store(Rules::kClosed);
  store.Stop();
  OpenOptions options = WithoutImages(store, Gap::kYes);
  options.images_on_node.reset();
  const auto opened = Must(NodeStore::Open(options));
  ExportOptions to{.kubelet_directory = store.kubelet_directory()};
  to.images_on_node.emplace();
  CheckRefused(opened->Export(to));
  BOOST_TEST(!std::filesystem::exists(store.kubelet_directory() / "image_manager" / "pulled"));
  to.allow_empty = true;
  BOOST_TEST(Must(opened->Export(to)).made == 0U);
}

BOOST_AUTO_TEST_CASE(dry_runs_report_the_change_and_make_none) {
  ScratchStore store(Rules::kClosed);
  Must(store->ReplaceRuntimeHandlers({{"runc", true, true}, {"kata", false, true}}));
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef2, .runtime_handler = "kata"},
                                WithSecret(kSecretB)));
  Must(store->PutIntent({.image = "registry.example.com/other:v1", .runtime_handler = "kata"}));
  Must(store->GetOrCreateUserNamespace({.pod_uid = "pod", .host_users = false}));
  const PruneToken token = Must(store->BeginPrune());
  const std::uint64_t commits = Commits(*store);

  BOOST_TEST(Must(store->Prune({}, token, kDryRun)).removed == 2U);
  BOOST_TEST(Must(store->PruneBefore({}, kLater, kDryRun)).removed == 2U);
  const auto cleaned = Must(store->CleanUpUserNamespaces({}, {}, token, kDryRun));
  BOOST_TEST((cleaned.released_pods == std::vector<std::string>{"pod"}));
  BOOST_TEST(Must(store->ReleaseUserNamespace("pod", kDryRun)));
  BOOST_TEST(!Must(store->ReleaseUserNamespace("none", kDryRun)));
  BOOST_TEST(!Must(store->ReleaseLostUserNamespaces(kDryRun)));
  BOOST_TEST(Must(store->ReplaceRuntimeHandlers({{"runc", true, true}}, kDryRun)).vanished ==
             std::vector<std::string>{"kata"});
  BOOST_TEST(Must(store->CollapseRuntimeHandlers(kDryRun)).records == 1U);
  CheckRefused(store->Prune({}, token, {.dry_run = true}));
  BOOST_TEST(!store->Prune({"x"}, {commits + 9}, kDryRun).has_value());

  BOOST_TEST(Commits(*store) == commits);
  BOOST_TEST(Must(store->ListRecords()).size() == 2U);
  BOOST_TEST(Must(store->ListIntents()).size() == 1U);
  BOOST_TEST(Must(store->ListRuntimeHandlers()).size() == 2U);
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == 1U);
  BOOST_TEST(Must(store->Verify()).sound);
  // Writing goes on, and what was promised happens.
  BOOST_TEST(Must(store->Prune({}, token, kMeant)).removed == 2U);
  BOOST_TEST(Commits(*store) == commits + 1);
}

BOOST_AUTO_TEST_CASE(a_dry_run_gives_no_range_to_another_pod) {
  UsernsStore store(SmallPool(4, 1));
  const std::uint32_t block = store.Get("living");
  const PruneToken token = Must(store->BeginPrune());
  Must(store->CleanUpUserNamespaces({}, {}, token, kDryRun));
  Must(store->ReleaseUserNamespace("living", kDryRun));
  BOOST_TEST(!store.Try("other").has_value());
  BOOST_TEST(store.Get("living") == block);
}

BOOST_AUTO_TEST_CASE(an_observer_makes_no_dry_run) {
  ScratchStore store(Rules::kClosed);
  store.Stop();
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  BOOST_TEST((observer->CollapseRuntimeHandlers(kDryRun).error().code == ErrorCode::kNotOwner));
}

BOOST_AUTO_TEST_CASE(a_dry_run_of_a_restore_reports_it_and_changes_nothing) {
  VersionedStore store;
  store.Open([](NodeStore& opened) {
    Must(opened.RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
  });
  RestoreOptions options{.directory = store.directory(), .backup = store.Migrate(1).backup};
  store.Open([](NodeStore& opened) {
    Must(opened.RecordImagePulled({.image = kImage, .image_ref = kRef2}, WithSecret(kSecretA)));
  });
  // But for the line that says who owns it.
  const auto tree = [&] {
    Tree all = TreeOf(store.directory());
    all.erase("owner.lock");
    return all;
  };
  const Tree before = tree();
  options.dry_run = true;
  const RestoreReport dry = Must(Restore(options));
  BOOST_TEST(dry.replaced_path.empty());
  BOOST_TEST((tree() == before));
  store.Open([](NodeStore& opened) {
    BOOST_TEST(!opened.recovery_report().distrustful);
    BOOST_TEST(Must(opened.ListRecords()).size() == 2U);
  });
  options.dry_run = false;
  const RestoreReport done = Must(Restore(options));
  BOOST_TEST(!done.replaced_path.empty());
  BOOST_TEST(dry.records == done.records);
  BOOST_TEST(dry.records_without_credentials == done.records_without_credentials);
  BOOST_TEST(dry.distrust_reason == done.distrust_reason);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
