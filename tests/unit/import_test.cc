// Taking over a kubelet directory.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/rows.h"
#include "waybill/values.h"

namespace waybill::testing {

// Taking over a kubelet directory: what is closed while it is not finished, and what
// histories/imports.jsonl can't say.
BOOST_AUTO_TEST_SUITE(import)

namespace {

constexpr std::string_view kKindOfRecord =
    R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)";

std::string RecordJson(std::string_view ref, const ImagePullSecret& secret) {
  return std::string(kKindOfRecord) + R"("lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":")" +
         std::string(ref) + R"(","credentialMapping":{")" + std::string(kName) +
         R"(":{"kubernetesSecrets":[{"uid":")" + secret.uid + R"(","namespace":")" +
         secret.namespace_name + R"(","name":")" + secret.name + R"(","credentialHash":")" +
         secret.credential_hash + R"("}]}}})";
}

std::string IntentJson(std::string_view image) {
  return R"({"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":")" +
         std::string(image) + R"("})";
}

std::string RefOf(int i) { return "sha256:" + Sha256Hex(std::to_string(i)); }

}  // namespace

BOOST_AUTO_TEST_CASE(an_unfinished_import_presumes_nothing_preloaded) {
  UnderBothRules([](Mode rules) {
    constexpr int kFiles = 1500;  // several transactions
    ScratchStore store(rules);
    store.Vanish();
    for (int i = 0; i < kFiles; ++i) {
      WriteRecordFile(store.kubelet_directory(), "pulled", RefOf(i),
                      RecordJson(RefOf(i), kSecretA));
    }
    NodeStoreOptions options = store.Options({});
    options.import_progress = [](std::uint64_t done, std::uint64_t) { return done == 0; };
    ExpectError(NodeStore::Open(options), ErrorCode::kInterrupted);

    // Opened without the directory, as writing commands do; and observed.
    options.kubelet_directory.clear();
    options.import_progress = {};
    {
      auto between = Must(NodeStore::Open(options));
      BOOST_TEST(between->recovery_report().distrustful);
      BOOST_TEST(Must(between->ListRecords()).size() < std::size_t{kFiles});
      for (int i = 0; i < kFiles; ++i) {
        BOOST_TEST_REQUIRE(DecisionOf(*between, {.image = kImage, .image_ref = RefOf(i)}).pull);
      }
    }
    {
      auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
      for (int i = 0; i < kFiles; i += 100) {
        BOOST_TEST(DecisionOf(*observer, {.image = kImage, .image_ref = RefOf(i)}).pull);
      }
    }

    // Nothing was judged before, so this is still a first start.
    store.Start({{.id = "sha256:never-pulled", .repo_tags = {"preloaded.example.com/app:v1"}}});
    BOOST_TEST(!store->recovery_report().distrustful);
    const auto journal = Must(store->GetTrust()).journal;
    BOOST_TEST_REQUIRE(!journal.empty());
    BOOST_TEST((journal.back().kind == DegradedKind::kImportUnfinished));
    BOOST_TEST((journal.back().action == DegradedAction::kTakenBack));
    BOOST_TEST(Must(store->ListRecords()).size() == std::size_t{kFiles});
    for (int i = 0; i < kFiles; i += 50) {
      BOOST_TEST(!store.Check(kImage, RefOf(i), Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, RefOf(i)).pull);
    }
    BOOST_TEST(!store.Check("preloaded.example.com/app:v1", "sha256:never-pulled").pull);
  });
}

// Whether the files are read before or after it: by the hash in their names.
BOOST_AUTO_TEST_CASE(a_misfiled_record_closes_its_place_and_no_sound_record) {
  UnderBothRules([](Mode rules) {
    int before = 0;
    for (int i = 0; i < 8; ++i) {
      const std::string sound = RefOf(2 * i);
      const std::string place = RefOf(2 * i + 1);
      before += RecordFile("pulled", place) < RecordFile("pulled", sound) ? 1 : 0;
      ScratchStore store(rules);
      WriteRecordFile(store.kubelet_directory(), "pulled", sound, RecordJson(sound, kSecretA));
      WriteRecordFile(store.kubelet_directory(), "pulled", place, RecordJson(sound, kSecretB));
      store.Restart();
      const auto entries = Must(store->ListQuarantine());
      BOOST_TEST_REQUIRE(entries.size() == 1U);
      BOOST_TEST(entries[0].sha256 == Sha256Hex(place));
      BOOST_TEST(!store.Check(kImage, sound, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, sound, Pod(kSecretB)).pull);
      BOOST_TEST(store.Check(kImage, place, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, place, Pod(kSecretB)).pull);
      // Nor later, and nor when it is written again.
      WriteRecordFile(store.kubelet_directory(), "pulled", place,
                      RecordJson(sound, kSecretB) + "\n");
      store.Restart();
      BOOST_TEST(!store.Check(kImage, sound, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, place, Pod(kSecretB)).pull);
    }
    BOOST_TEST((before > 0 && before < 8));
  });
}

// Every pull of an image writes the same intent, byte for byte.
BOOST_AUTO_TEST_CASE(an_intent_that_was_written_anew_is_a_new_intent) {
  UnderBothRules([](ScratchStore& store) {
    WriteRecordFile(store.kubelet_directory(), "pulling", kImage, IntentJson(kImage));
    store.Restart();
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    BOOST_TEST(Must(store->Prune({}, Must(store->BeginList()), {.allow_empty = true})).removed ==
               1U);
    store.Restart();
    BOOST_TEST(!Must(store->HasIntent({.image = kImage})));

    const auto path = store.kubelet_directory() / RecordFile("pulling", kImage);
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
    store.Restart();
    BOOST_TEST(Must(store->HasIntent({.image = kImage})));
    BOOST_TEST(store.Check(kImage, kRef).pull);
  });
}

namespace {

constexpr uid_t kNobody = 65534;
constexpr std::string_view kOther = "registry.example.com/other:v1";

using Path = std::filesystem::path;
void Chmod(const Path& path, mode_t mode) { BOOST_REQUIRE(::chmod(path.c_str(), mode) == 0); }
void ToNobody(const Path& path) { BOOST_REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0); }

// Ways in which somebody else may have written a record, with the words that say so.
struct Planting {
  std::string why;
  std::function<void(const Path& file)> plant;
  bool needs_root = false;
};
const std::vector<Planting>& Plantings() {
  static const std::vector<Planting> all = {
      {"belongs to user 65534", ToNobody, true},
      {"others may write it", [](const Path& file) { Chmod(file, 0622); }},
      {"others may write it", [](const Path& file) { Chmod(file, 0660); }},
      {"2 links",
       [](const Path& file) { std::filesystem::create_hard_link(file, file.string() + ".x"); }},
      {"symlink",
       [](const Path& file) {
         std::filesystem::rename(file, file.string() + ".x");
         std::filesystem::create_symlink(file.string() + ".x", file);
       }},
      {"others may write in", [](const Path& file) { Chmod(file.parent_path(), 0777); }},
      {"others may write in", [](const Path& file) { Chmod(file.parent_path(), 0770); }},
      {"others may write in",
       [](const Path& file) { Chmod(file.parent_path().parent_path(), 0777); }},
      {"belongs to user 65534", [](const Path& file) { ToNobody(file.parent_path()); }, true},
      {"belongs to user 65534",
       [](const Path& file) { ToNobody(file.parent_path().parent_path()); }, true},
  };
  return all;
}

bool Tells(const std::vector<std::string>& problems, const std::string& part) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_somebody_else_may_have_written_opens_nothing) {
  for (const Mode rules : {Mode::kKubelet, Mode::kStrict}) {
    for (const bool first_start : {true, false}) {
      for (const Planting& planting : Plantings()) {
        if (planting.needs_root && geteuid() != 0) continue;
        ScratchStore store(rules);
        if (first_start) store.Vanish();
        WriteRecordFile(store.kubelet_directory(), "pulled", kRef, RecordJson(kRef, kSecretA));
        planting.plant(store.kubelet_directory() / RecordFile("pulled", kRef));
        const ListedImage image{.id = std::string(kRef), .repo_tags = {std::string(kImage)}};
        store.Restart({image});
        BOOST_TEST_CONTEXT(planting.why << ", rules " << static_cast<int>(rules) << ", first "
                                        << first_start) {
          BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretA)).pull);
          BOOST_TEST(store.Check(kImage, kRef).pull);
          BOOST_TEST(Tells(store->recovery_report().import.problems, planting.why));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_intent_of_somebody_else_closes_and_a_preloaded_record_opens_nothing) {
  for (const bool fifo : {false, true}) {
    ScratchStore store(Mode::kStrict);
    WriteRecordFile(store.kubelet_directory(), "pulling", kImage, IntentJson(kImage));
    WriteRecordFile(
        store.kubelet_directory(), "observed-preloaded", kRef,
        R"({"kind":"ImagePreloadedRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
        R"("imageRef":")" +
            std::string(kRef) + R"(","observedImages":{")" + std::string(kName) + R"(":{}}})");
    for (const Path& file : {store.kubelet_directory() / RecordFile("pulling", kImage),
                             store.kubelet_directory() / RecordFile("observed-preloaded", kRef)}) {
      if (fifo) std::filesystem::remove(file);
      if (fifo) BOOST_REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
      if (!fifo) Chmod(file, 0666);
    }
    store.Restart();
    BOOST_TEST(Must(store->ListQuarantine()).size() == 1U);
    BOOST_TEST(store->recovery_report().import.preloaded == 0U);
    BOOST_TEST(store.Check(kImage, kRef).pull);
  }
}

// As a kubelet finds them.
BOOST_AUTO_TEST_CASE(folders_behind_symlinks_are_taken_over) {
  for (const bool relative : {false, true}) {
    for (const std::string name : {"", "pulled", "pulling"}) {
      ScratchStore store(Mode::kStrict);
      const Path kubelet = store.kubelet_directory();
      Chmod(kubelet, 0755);
      WriteRecordFile(kubelet, "pulled", kRef, RecordJson(kRef, kSecretA));
      WriteRecordFile(kubelet, "pulling", kOther, IntentJson(kOther));
      const Path folder = kubelet / "image_manager" / name;
      const Path place = name.empty() ? kubelet / "image_manager" : folder;
      const Path target = store.scratch() / "elsewhere";
      std::filesystem::rename(place, target);
      const Path up = name.empty() ? "../elsewhere" : "../../elsewhere";
      std::filesystem::create_directory_symlink(relative ? up : target, place);
      store.Restart({{.id = std::string(kRef), .repo_tags = {std::string(kImage)}}});
      BOOST_TEST_CONTEXT(name) {
        BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
        BOOST_TEST(Must(store->HasIntent({.image = kOther})));
        BOOST_TEST(store->recovery_report().import.problems.empty());
      }
    }
  }
}

// Whoever can change the link, or what it leads through, decides what is found. The node starts.
BOOST_AUTO_TEST_CASE(a_symlink_that_others_can_change_leads_to_nothing_that_counts) {
  const std::vector<std::pair<std::string, std::function<void(const Path& link, const Path& way)>>>
      ways = {
          {"others may write in", [](const Path&, const Path& way) { Chmod(way, 0777); }},
          {"belongs to user 65534", [](const Path&, const Path& way) { ToNobody(way); }},
          {"belongs to user 65534",
           [](const Path& link, const Path&) {
             BOOST_REQUIRE(::lchown(link.c_str(), kNobody, kNobody) == 0);
           }},
          {"others may write in",
           [](const Path& link, const Path&) { Chmod(link.parent_path(), 0777); }},
          {"there is no", [](const Path&, const Path& way) { std::filesystem::remove_all(way); }}};
  for (const auto& [why, spoil] : ways) {
    if (geteuid() != 0 && why == "belongs to user 65534") continue;
    for (const std::string name : {"", "pulled"}) {
      ScratchStore store(Mode::kStrict);
      store.Vanish();
      const Path kubelet = store.kubelet_directory();
      WriteRecordFile(kubelet, "pulled", kRef, RecordJson(kRef, kSecretA));
      const Path place = kubelet / "image_manager" / name;
      const Path link = name.empty() ? kubelet / "image_manager" : place;
      const Path way = store.scratch() / "way";
      std::filesystem::create_directory(way);
      std::filesystem::rename(link, way / "target");
      std::filesystem::create_directory_symlink(way / "target", link);
      spoil(link, way);
      NodeStoreOptions options =
          store.Options({{.id = std::string(kRef), .repo_tags = {"r.example/x"}}});
      options.kubelet_directory = kubelet;
      auto opened = Must(NodeStore::Open(options));
      BOOST_TEST_CONTEXT(why << ", " << name) {
        BOOST_TEST(DecisionOf(*opened, {.image = kImage, .image_ref = kRef}).pull);
        BOOST_TEST(opened->recovery_report().after_gap);
        BOOST_TEST(Tells(opened->recovery_report().import.problems, why));
      }
    }
  }
}

// Nobody writes that by chance; a missing line end anybody does.
BOOST_AUTO_TEST_CASE(an_intent_without_a_line_end_is_a_kubelets) {
  for (const std::string_view end : {"", "\n", " ", "\n\t", "\n \t\t \t  \t ", " \t\t \t  \t"}) {
    ScratchStore store(Mode::kStrict);
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, RecordJson(kRef, kSecretA));
    store.Restart();
    WriteRecordFile(store.kubelet_directory(), "pulling", kImage,
                    IntentJson(kImage) + std::string(end));
    store.Restart();
    BOOST_TEST_CONTEXT("'" << end << "'") {
      // It shows that a kubelet ran.
      BOOST_TEST(store->recovery_report().after_gap);
      BOOST_TEST(Must(store->HasIntent({.image = kImage})));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Kubelet files within the limits of a file, but above those of the store.
BOOST_AUTO_TEST_SUITE(import_bounds)

// Empty secrets take three bytes each in JSON, and more in the store.
BOOST_AUTO_TEST_CASE(a_record_too_large_to_store_closes_its_image_and_stops_no_other) {
  UnderBothRules([](ScratchStore& store) {
    std::string secrets = "{}";
    for (std::size_t i = 1; i < kMaxCredentialsPerName; ++i) secrets += ",{}";
    std::string mapping;
    for (int name = 0; name < 16; ++name) {
      if (name != 0) mapping += ',';
      mapping += "\"registry.example/" + std::to_string(name) + "\":{\"kubernetesSecrets\":[" +
                 secrets + "]}";
    }
    const auto record = [](std::string_view ref, std::string_view credentials) {
      return R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","imageRef":")" +
             std::string(ref) + R"(","credentialMapping":{)" + std::string(credentials) + "}}\n";
    };
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, record(kRef, mapping));
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef2, record(kRef2, ""));
    store.Restart();
    BOOST_TEST(store->recovery_report().import.records == 1U);
    BOOST_TEST(store->recovery_report().import.quarantined == 1U);
    Expect(store.Check(kImage, kRef), true, CheckResult::kError, Reason::kQuarantined);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_SUITE_END()

// A node that pulled images for a while without recording them (KEP-2535, "What happens if we
// reenable the feature"; NodeStoreOptions::gap): what histories/gaps.jsonl can't say.
BOOST_AUTO_TEST_SUITE(gap)

namespace {

const std::string kUnrecorded = "sha256:never-recorded";

std::vector<ListedImage> OnNode() {
  return {{std::string(kRef), {std::string(kImage)}, {}},
          {kUnrecorded, {"registry.example.com/private:v1"}, {}}};
}

std::string RecordFor(std::string_view ref) {
  ImagePulledRecord record;
  record.image_ref = ref;
  record.last_updated = Timestamp{1'767'000'000, 0};
  record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
  return EncodePulledRecord(record);
}

// A node whose kubelet directory was taken over.
struct Node : ScratchStore {
  Node() : ScratchStore(Mode::kStrict) {
    WriteRecordFile(kubelet_directory(), "pulled", kRef2, RecordFor(kRef2));
    Stop();
    Open(Gap::kNo, std::vector<ListedImage>());
    Must(opened->Close());
    opened.reset();
  }
  const OpeningReport& Open(Gap gap, std::optional<std::vector<ListedImage>> images) {
    NodeStoreOptions options = Options({});
    options.gap = gap;
    options.images_on_node = std::move(images);
    opened = Must(NodeStore::Open(std::move(options)));
    return opened->recovery_report();
  }
  std::unique_ptr<NodeStore> opened;
};

struct TakenOver {
  Node node;
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_exported_file_that_a_kubelet_wrote_again_is_a_gap) {
  const std::string cut_short = "registry.example.com/cut-short:v1";
  for (const bool is_written : {true, false}) {
    Node node;
    node.Open(Gap::kNo, std::nullopt);
    Must(node.opened->PutIntent({.image = cut_short}));
    Must(node.opened->Export({.kubelet_directory = node.kubelet_directory(), .images = OnNode()}));
    node.opened.reset();
    // The same intent for another pull.
    const std::string again = EncodePullIntent({.image = cut_short});
    if (is_written) WriteRecordFile(node.kubelet_directory(), "pulling", cut_short, again);
    BOOST_TEST(node.Open(Gap::kDetect, std::nullopt).after_gap == is_written);
  }
}

BOOST_FIXTURE_TEST_CASE(closing_a_gap_does_not_finish_the_import_that_found_it, TakenOver) {
  for (int i = 0; i < 600; ++i) {
    const std::string ref = "sha256:of-" + std::to_string(i);
    WriteRecordFile(node.kubelet_directory(), "pulled", ref, RecordFor(ref));
  }
  WriteRecordFile(node.kubelet_directory(), "pulling", kImage,
                  EncodePullIntent({std::string(kImage)}));
  NodeStoreOptions options = node.Options({});
  options.import_progress = [](std::uint64_t done, std::uint64_t) { return done == 0; };
  const auto stopped = NodeStore::Open(options);
  BOOST_TEST((!stopped && stopped.error().code == ErrorCode::kInterrupted));
  options.kubelet_directory.clear();
  options.import_progress = {};
  {
    const auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().after_gap);
    BOOST_TEST(store->recovery_report().distrustful);
    BOOST_TEST(DecisionOf(*store, {.image = kImage, .image_ref = kRef}).pull);
  }
  const OpeningReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(Must(node.opened->HasIntent({.image = kImage})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
