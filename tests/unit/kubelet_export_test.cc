// Going back to a kubelet.

#include "migrations/kubelet_files/kubelet_export.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "tests/support/expect_error.h"
#include "tests/support/kubelet_content.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/rows.h"
#include "tests/support/tree.h"
#include "waybill/values.h"

namespace waybill::testing {

// What an export writes into each file. That importing it gives the same again: node_store_export.
BOOST_AUTO_TEST_SUITE(kubelet_export)

namespace {

using namespace std::string_literals;
using internal::ExportKubeletDirectory;

constexpr Timestamp kNow{1767323045, 0};  // 2026-01-02T03:04:05Z
const std::filesystem::path kFixtures = WAYBILL_FIXTURES;

// An export into a directory of its own.
class Exported {
 public:
  explicit Exported(const KubeletContent& content, ExportKubeletFiles options = {}) {
    options.kubelet_directory = dir_.path();
    report = Must(ExportKubeletDirectory(content, options));
  }
  // The kubelet's own files.
  Tree tree() const { return WithoutMark(TreeOf(dir_ / "image_manager")); }
  std::string File(std::string_view folder, std::string_view key) const {
    return tree().at(RecordFile(folder, key).lexically_relative("image_manager").string());
  }
  bool Has(std::string_view folder, std::string_view key) const {
    return std::filesystem::exists(dir_.path() / RecordFile(folder, key));
  }

  ExportReport report;

 private:
  TempDir dir_;
};

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

ImagePulledRecord Record(std::string_view ref, std::string handler = {}, std::int64_t seconds = 0) {
  ImagePulledRecord record;
  record.image_ref = ref;
  record.last_updated = Timestamp{kNow.seconds + seconds, 0};
  record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
  record.runtime_handler = std::move(handler);
  return record;
}

std::vector<ListedImage> ImagesOnNode(const std::vector<std::string>& ids) {
  std::vector<ListedImage> images;
  for (const std::string& id : ids) images.push_back({id, {}, {}});
  return images;
}

// Refused by strict readers and by those that ignore unknown fields.
void CheckClosed(const Exported& exported, std::string_view folder, std::string_view key,
                 std::string_view why) {
  const bool of_ref = folder == "pulled";
  const std::string file = exported.File(folder, key);
  BOOST_TEST(file.ends_with("}\n"));
  const auto json = nlohmann::json::parse(file);
  BOOST_TEST(json["kind"] == (of_ref ? "ImagePulledRecord" : "ImagePullIntent"));
  BOOST_TEST(json["closedByWaybill"].get<std::string>().find(why) != std::string::npos);
  BOOST_TEST(json[of_ref ? "imageRef" : "image"].is_boolean());
  if (of_ref) {
    BOOST_TEST(!DecodePulledRecord(file).has_value());
  } else {
    BOOST_TEST(!DecodePullIntent(file).has_value());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_v1_33_come_back_as_either_version) {
  const KubeletContent content = ContentOf(kFixtures / "kubelet-v1.33");
  Tree tree = TreeOf(kFixtures / "kubelet-v1.33" / "image_manager");
  const Exported old(content,
                     {.kubelet_directory = {}, .api_version = KubeletApiVersion::kV1Alpha1});
  BOOST_TEST((old.tree() == tree));
  for (auto& [path, file] : tree) {
    ReplaceAll(file, "k8s.io/v1alpha1", "k8s.io/v1beta1");
    ReplaceAll(file, R"("kubernetesSecrets":null,)", "");
  }
  BOOST_TEST((Exported(content).tree() == tree));
}

BOOST_AUTO_TEST_CASE(a_quarantine_entry_without_a_hash_is_refused) {
  KubeletContent content;
  content.quarantine = {{QuarantineKind::kImageRef, "../../etc", "", "", kNow}};
  const TempDir dir;
  ExpectError(ExportKubeletDirectory(content, {.kubelet_directory = dir.path()}),
              ErrorCode::kInvalidArgument);
  BOOST_TEST((TreeOf(dir.path()) == Tree{{"image_manager", "directory"}}));
}

BOOST_AUTO_TEST_CASE(what_json_cannot_hold_is_closed) {
  const std::string image = "registry.example/\xc3\x28:v1";
  const std::string ref = "sha256:\xff";
  KubeletContent content;
  content.intents = {{image}};
  content.records = {Record(ref), Record("name"), Record("secret"), Record("account")};
  content.records[1].credential_mapping["\x80"] = NodeWide();
  content.records[2].credential_mapping["x"] =
      WithSecret(MakeSecret("\xed\xa0\x80", "p", "u", "h"));
  content.records[3].credential_mapping["x"].kubernetes_service_accounts = {{"u\xf8", "n", "s"}};
  content.preloaded = {{"\xfe", kNow, {}}, {"fine", kNow, {"\xfe"}}, {"kept", kNow, {"x"}}};
  const Exported exported(content);
  BOOST_TEST(exported.report.closed == 5U);
  BOOST_TEST(exported.report.records == 0U);
  BOOST_TEST(exported.report.preloaded == 1U);
  CheckClosed(exported, "pulling", image, "not UTF-8");
  for (const std::string& key : {ref, "name"s, "secret"s, "account"s}) {
    CheckClosed(exported, "pulled", key, "not UTF-8");
  }
  BOOST_TEST(!exported.Has("observed-preloaded", "fine"));
}

BOOST_AUTO_TEST_CASE(a_distrustful_store_needs_to_know_what_is_on_the_node) {
  KubeletContent content;
  content.records = {Record(kRef), Record("pinned", "kata")};
  content.quarantine = {{QuarantineKind::kImageRef, Sha256Hex("broken"), "", "", kNow}};
  content.preloaded = {{"old", kNow, {"x"}}};
  content.distrustful = true;
  content.distrust_reason = "it was wiped";
  content.now = {kNow.seconds, 5};
  const TempDir dir;
  const Error refused =
      ExpectError(ExportKubeletDirectory(content, {.kubelet_directory = dir.path()}),
                  ErrorCode::kInvalidArgument, "it was wiped");
  BOOST_TEST(!refused.hint.empty());
  BOOST_TEST(std::filesystem::is_empty(dir.path()));

  ExportKubeletFiles options;
  options.images = ImagesOnNode({std::string(kRef), "pinned", "broken", "new", "new", ""});
  const Exported exported(content, options);
  BOOST_TEST(exported.report.records == 3U);
  BOOST_TEST(exported.report.made == 1U);
  BOOST_TEST(exported.report.without_credentials == 1U);
  BOOST_TEST(exported.report.closed == 1U);
  BOOST_TEST(exported.report.preloaded == 0U);
  BOOST_TEST(exported.File("pulled", kRef) == EncodePulledRecord(Record(kRef)));
  ImagePulledRecord made = Record("new");
  made.credential_mapping.clear();
  BOOST_TEST(exported.File("pulled", "new") == EncodePulledRecord(made));
  BOOST_TEST(!exported.tree().contains("observed-preloaded"));
}

BOOST_AUTO_TEST_CASE(a_trusted_store_makes_nothing_of_the_list) {
  ExportKubeletFiles options;
  options.images = ImagesOnNode({"new"});
  const Exported exported({}, options);
  BOOST_TEST((exported.tree() == Tree{{"pulled", "directory"}, {"pulling", "directory"}}));
}

BOOST_AUTO_TEST_SUITE_END()

// Going back through a whole store: a kubelet directory is taken over, exported, taken over again.
BOOST_AUTO_TEST_SUITE(node_store_export)

namespace {

const std::filesystem::path kFixtures = WAYBILL_FIXTURES;
constexpr auto kCopyAll = std::filesystem::copy_options::recursive;

// Everything that an export can restore. A file's ref is one of its image's spellings.
struct Content {
  std::vector<ImagePulledRecord> records;
  std::vector<ImagePullIntent> intents;
  std::vector<QuarantinedFile> quarantine;
  std::vector<ImagePreloadedRecord> preloaded;
  std::vector<PodMapping> id_mappings;
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
  for (QuarantinedFile& entry : content.quarantine) {
    entry.since = {};
    entry.reason.clear();
  }
  std::sort(content.quarantine.begin(), content.quarantine.end(),
            [](const auto& a, const auto& b) { return a.sha256 < b.sha256; });
  for (PodMapping& mapping : content.id_mappings) mapping.created = {};
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
ExportReport ExportTo(NodeStore& store, const std::filesystem::path& directory,
                      std::optional<std::vector<ListedImage>> images = std::nullopt,
                      KubeletApiVersion version = KubeletApiVersion::kV1Beta1) {
  std::filesystem::create_directory(directory);
  if (!images) {
    images.emplace();
    for (const ImagePulledRecord& record : Must(store.ListRecords())) {
      images->push_back({.id = record.image_ref});
    }
  }
  return Must(store.Export(
      {.kubelet_directory = directory, .api_version = version, .images = std::move(images)}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(importing_what_was_exported_is_the_identity) {
  UnderBothRules([](Mode rules) {
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
      const auto version =
          fixture == "kubelet-v1.33" ? KubeletApiVersion::kV1Alpha1 : KubeletApiVersion::kV1Beta1;
      const ExportReport report =
          ExportTo(*first, second.kubelet_directory(), std::nullopt, version);
      BOOST_TEST(report.records == before.records.size());
      BOOST_TEST((report.spellings != 0) == (rules == Mode::kStrict));
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
    if (folder == "image_manager") tree = WithoutMark(std::move(tree));
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
    ScratchStore store(Mode::kStrict);
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
