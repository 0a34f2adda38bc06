// Going back through a whole store: a kubelet directory is taken over, exported, taken over again.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/base/image_spellings.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/tree.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(node_store_export)

namespace {

const std::filesystem::path kFixtures = WAYBILL_FIXTURES;
constexpr auto kCopyAll = std::filesystem::copy_options::recursive;

// Everything that an export can restore. A file's ref is one of its image's spellings.
struct Content {
  std::vector<ImagePulledRecord> records;
  std::vector<ImagePullIntent> intents;
  std::vector<QuarantineEntry> quarantine;
  std::vector<ImagePreloadedRecord> preloaded;
  std::vector<UserNamespaceAllocation> id_mappings;
};

Content ContentOf(const NodeStore& store) {
  Content content{Must(store.ListRecords()), Must(store.ListIntents()),
                  Must(store.ListQuarantine()), Must(store.ListPreloaded()),
                  Must(store.ListUserNamespaces())};
  const auto by_ref = [](const auto& a, const auto& b) { return a.image_ref < b.image_ref; };
  std::sort(content.preloaded.begin(), content.preloaded.end(), by_ref);
  for (ImagePulledRecord& record : content.records) {
    record.stamp = 0;
    record.image_ref = internal::SpellingOf(record.image_ref);
  }
  std::sort(content.records.begin(), content.records.end(), by_ref);
  for (QuarantineEntry& entry : content.quarantine) {
    entry.since = {};
    entry.reason.clear();
  }
  std::sort(content.quarantine.begin(), content.quarantine.end(),
            [](const auto& a, const auto& b) { return a.sha256 < b.sha256; });
  for (UserNamespaceAllocation& mapping : content.id_mappings) mapping.created = {};
  return content;
}

void CheckSame(const Content& a, const Content& b) {
  BOOST_TEST((a.records == b.records));
  BOOST_TEST((a.intents == b.intents));
  BOOST_TEST((a.quarantine == b.quarantine));
  BOOST_TEST((a.preloaded == b.preloaded));
  BOOST_TEST((a.id_mappings == b.id_mappings));
}

// Without `images`: those that have records are on the node, and no others.
ExportReport ExportTo(const NodeStore& store, const std::filesystem::path& directory,
                      std::optional<std::vector<ImageOnNode>> images = std::nullopt) {
  std::filesystem::create_directory(directory);
  if (!images) {
    images.emplace();
    for (const ImagePulledRecord& record : Must(store.ListRecords())) {
      images->push_back({.id = record.image_ref});
    }
  }
  return Must(store.Export({.kubelet_directory = directory, .images_on_node = std::move(images)}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(importing_what_was_exported_is_the_identity) {
  UnderBothRules([](Rules rules) {
    for (const std::string fixture : {"kubelet-v1.33", "kubelet-v1.36"}) {
      ScratchStore first(rules);
      std::filesystem::copy(kFixtures / fixture, first.kubelet_directory(), kCopyAll);
      WriteRecordFile(first.kubelet_directory(), "pulled", "broken", "{");
      WriteRecordFile(first.kubelet_directory(), "pulling", "half", "[]");
      WriteRecordFile(first.kubelet_directory(), "observed-preloaded", kRef,
                      EncodePreloadedRecord({std::string(kRef), Timestamp{1767323045, 0}, {"x"}}));
      first.Restart();
      const Content before = ContentOf(*first);
      BOOST_TEST(!before.records.empty());
      BOOST_TEST(before.quarantine.size() == 2U);
      BOOST_TEST(before.id_mappings.size() == (fixture == "kubelet-v1.36" ? 9U : 0U));

      ScratchStore second(rules);
      const ExportReport report = ExportTo(*first, second.kubelet_directory());
      BOOST_TEST(report.records == before.records.size());
      BOOST_TEST((report.spellings != 0) == (rules == Rules::kClosed));
      BOOST_TEST(report.intents == before.intents.size());
      BOOST_TEST(report.preloaded == 1U);
      BOOST_TEST(report.closed == 2U);
      BOOST_TEST(report.id_mappings == before.id_mappings.size());
      second.Restart();
      CheckSame(before, ContentOf(*second));

      // Exported to the directory that it came from, nothing changes.
      BOOST_TEST(ExportTo(*first, first.kubelet_directory()).closed == 2U);
      ScratchStore third(rules);
      for (const std::string folder : {"image_manager", "pods"}) {
        if (!std::filesystem::exists(first.kubelet_directory() / folder)) continue;
        std::filesystem::copy(first.kubelet_directory() / folder,
                              third.kubelet_directory() / folder, kCopyAll);
      }
      third.Restart();
      CheckSame(before, ContentOf(*third));
    }
  });
}

BOOST_FIXTURE_TEST_CASE(a_directory_of_v1_36_comes_back_byte_for_byte, ClosedStore) {
  std::filesystem::copy(kFixtures / "kubelet-v1.36", store.kubelet_directory(), kCopyAll);
  store.Restart();
  const std::filesystem::path fresh = store.scratch() / "fresh";
  const ExportReport report = ExportTo(*store, fresh);
  const auto records = Must(store->ListRecords());
  for (const std::string folder : {"image_manager", "pods"}) {
    Tree tree = TreeOf(fresh / folder);
    tree.erase("waybill-exported");
    const Tree theirs = TreeOf(kFixtures / "kubelet-v1.36" / folder);
    for (const auto& [path, content] : theirs) {
      BOOST_TEST((tree.contains(path) && tree.at(path) == content), path);
      tree.erase(path);
    }
    // The rest are records under other spellings.
    BOOST_TEST(tree.size() == (folder == "pods" ? 0U : report.spellings));
    for (const auto& [path, content] : tree) {
      const auto record = Must(DecodePulledRecord(content));
      const auto own = std::find_if(records.begin(), records.end(), [&](const auto& one) {
        return internal::SpellingOf(one.image_ref) == internal::SpellingOf(record.image_ref);
      });
      BOOST_TEST_REQUIRE((own != records.end()), path);
      BOOST_TEST((record.credential_mapping == own->credential_mapping), path);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(what_was_pruned_is_not_exported, ClosedStore) {
  std::filesystem::copy(kFixtures / "kubelet-v1.36", store.kubelet_directory(), kCopyAll);
  store.Restart();
  const auto records = Must(store->ListRecords());
  Must(store->DeleteRecord({.image_ref = records.front().image_ref}));
  const ExportReport report = ExportTo(*store, store.kubelet_directory());
  BOOST_TEST(report.records == records.size() - 1);
  BOOST_TEST(report.without_credentials == 0U);
  BOOST_TEST(!std::filesystem::exists(store.kubelet_directory() /
                                      RecordFile("pulled", records.front().image_ref)));
}

BOOST_FIXTURE_TEST_CASE(an_observer_exports_too, ClosedStore) {
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
  store.Stop();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  const std::filesystem::path fresh = store.scratch() / "fresh";
  BOOST_TEST(ExportTo(*observer, fresh).spellings == 1U);
  BOOST_TEST(std::filesystem::exists(fresh / RecordFile("pulled", kRef)));
}

// Each export keeps the folders that it replaced.
std::vector<std::string> Aside(const std::filesystem::path& kubelet_directory) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(kubelet_directory / "image_manager")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("before-export-")) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

BOOST_AUTO_TEST_CASE(what_exports_replaced_goes_but_for_what_nobody_else_has) {
  for (const bool is_known : {true, false}) {
    ScratchStore store(Rules::kClosed);
    const std::filesystem::path& kubelet = store.kubelet_directory();
    std::filesystem::copy(kFixtures / "kubelet-v1.36", kubelet, kCopyAll);
    WriteRecordFile(kubelet, "pulling", "half", "[]");
    if (is_known) store.Restart();
    // The first one replaces the kubelet's own files.
    std::vector<std::string> removed;
    std::string first;
    for (int i = 0; i < 14; ++i) {
      const std::string image = "registry.example.com/new:v" + std::to_string(i);
      store.Pull(image, "sha256:of-" + std::to_string(i), WithSecret(kSecretA));
      Must(store->PutIntent({.image = image}));
      const ExportReport report = ExportTo(*store, kubelet);
      if (i == 0) first = report.replaced_path;
      BOOST_TEST(std::filesystem::exists(report.replaced_path));
      removed.insert(removed.end(), report.removed_paths.begin(), report.removed_paths.end());
    }
    const std::vector<std::string> kept = Aside(kubelet);
    BOOST_TEST(kept.size() == kMaxKeptAside + (is_known ? 0 : 1));
    BOOST_TEST(std::filesystem::exists(first) == !is_known);
    BOOST_TEST(removed.size() + kept.size() == 14U);
    for (const std::string& path : removed) BOOST_TEST(!std::filesystem::exists(path));
    BOOST_TEST(std::is_sorted(removed.begin(), removed.end(), [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
