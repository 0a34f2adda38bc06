// Taking over a kubelet directory: what is closed while it is not finished, and what
// histories/imports.jsonl can't say.

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

#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

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
  UnderBothRules([](Rules rules) {
    constexpr int kFiles = 1500;  // several transactions
    ScratchStore store(rules);
    store.Stop();
    std::filesystem::remove_all(store.directory());
    std::filesystem::remove(store.witness());
    for (int i = 0; i < kFiles; ++i) {
      WriteRecordFile(store.kubelet_directory(), "pulled", RefOf(i),
                      RecordJson(RefOf(i), kSecretA));
    }
    OpenOptions options = store.Options({});
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
      auto observer = Must(NodeStore::Observe({.directory = store.directory(), .rules = rules}));
      for (int i = 0; i < kFiles; i += 100) {
        BOOST_TEST(DecisionOf(*observer, {.image = kImage, .image_ref = RefOf(i)}).pull);
      }
    }

    // Nothing was judged before, so this is still a first start.
    store.Start({{.id = "sha256:never-pulled", .repo_tags = {"preloaded.example.com/app:v1"}}});
    BOOST_TEST(!store->recovery_report().distrustful);
    const auto journal = Must(store->GetTrust()).journal;
    BOOST_TEST_REQUIRE(!journal.empty());
    BOOST_TEST((journal.back().kind == TrustKind::kImportUnfinished));
    BOOST_TEST((journal.back().action == TrustAction::kTakenBack));
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
  UnderBothRules([](Rules rules) {
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

BOOST_AUTO_TEST_CASE(a_misfiled_intent_is_an_intent_of_what_it_is_about) {
  UnderBothRules([](Rules rules) {
    const std::string other = "registry.example.com/other/app:v1";
    ScratchStore store(rules);
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    WriteRecordFile(store.kubelet_directory(), "pulling", other, IntentJson(kImage));
    store.Restart();
    BOOST_TEST(Must(store->HasIntent({.image = kImage})));
    const auto entries = Must(store->ListQuarantine());
    BOOST_TEST_REQUIRE(entries.size() == 1U);
    BOOST_TEST((entries[0].kind == QuarantineKind::kImage));
    BOOST_TEST(entries[0].sha256 == Sha256Hex(other));
    // As beside an intent in its own place.
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    BOOST_TEST(store.Check(kImage, RefOf(1), Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(other, RefOf(1), Pod(kSecretA)).pull);
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
  for (const Rules rules : {Rules::kKubelet, Rules::kClosed}) {
    for (const bool first_start : {true, false}) {
      for (const Planting& planting : Plantings()) {
        if (planting.needs_root && geteuid() != 0) continue;
        ScratchStore store(rules);
        if (first_start) {
          store.Stop();
          std::filesystem::remove_all(store.directory());
          std::filesystem::remove(store.witness());
        }
        WriteRecordFile(store.kubelet_directory(), "pulled", kRef, RecordJson(kRef, kSecretA));
        planting.plant(store.kubelet_directory() / RecordFile("pulled", kRef));
        const ImageOnNode image{.id = std::string(kRef), .repo_tags = {std::string(kImage)}};
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

// It may be a copy that was made with links; and the store knows what it took.
BOOST_AUTO_TEST_CASE(what_was_taken_before_stays_whoever_may_write_it_now) {
  for (const Planting& planting : Plantings()) {
    if (planting.needs_root && geteuid() != 0) continue;
    if (planting.why == "symlink") continue;
    ScratchStore store(Rules::kClosed);
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, RecordJson(kRef, kSecretA));
    const ImageOnNode image{.id = std::string(kRef), .repo_tags = {std::string(kImage)}};
    store.Restart({image});
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
    planting.plant(store.kubelet_directory() / RecordFile("pulled", kRef));
    store.Restart({image});
    BOOST_TEST_CONTEXT(planting.why) {
      BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
      BOOST_TEST(store.Check(kImage, kRef).pull);
      BOOST_TEST(Tells(store->recovery_report().import.problems, planting.why));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_intent_of_somebody_else_closes_and_a_preloaded_record_opens_nothing) {
  for (const bool fifo : {false, true}) {
    ScratchStore store(Rules::kClosed);
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
      ScratchStore store(Rules::kClosed);
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
      ScratchStore store(Rules::kClosed);
      store.Stop();
      std::filesystem::remove_all(store.directory());
      std::filesystem::remove(store.witness());
      const Path kubelet = store.kubelet_directory();
      WriteRecordFile(kubelet, "pulled", kRef, RecordJson(kRef, kSecretA));
      const Path place = kubelet / "image_manager" / name;
      const Path link = name.empty() ? kubelet / "image_manager" : place;
      const Path way = store.scratch() / "way";
      std::filesystem::create_directory(way);
      std::filesystem::rename(link, way / "target");
      std::filesystem::create_directory_symlink(way / "target", link);
      spoil(link, way);
      OpenOptions options =
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
    ScratchStore store(Rules::kClosed);
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

BOOST_FIXTURE_TEST_CASE(a_store_of_which_only_the_owner_lock_is_left_was_lost, ClosedStore) {
  store.Stop();
  std::filesystem::remove(store.directory() / "data.mdb");
  std::filesystem::remove(store.directory() / "lock.mdb");
  OpenOptions options = store.Options({});
  options.witness = Witness::None();
  auto opened = Must(NodeStore::Open(options));
  BOOST_TEST(opened->recovery_report().distrustful);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
