// What ../../docs/limits.md names and no other test plays: here the limit itself is expected. Each
// of its lines is named by a test (../limits looks).

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "tests/support/streaming_scene.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(limits)

namespace {

ImageOnNode Entry(std::string_view id, std::vector<std::string> tags) {
  return {.id = std::string(id), .repo_tags = std::move(tags)};
}

void End(ScratchStore& store, PullFailure failure) {
  const PullId pull = Must(store->RecordPullIntent({.image = kImage}));
  Must(store->RecordImagePullFailed({.image = kImage}, failure, pull));
}

// For a pod without credentials.
bool IsOpen(ScratchStore& store, std::string_view image) { return !store.Check(image, kRef).pull; }

}  // namespace

// A limit: "The check at opening reads the whole file"
BOOST_AUTO_TEST_CASE(bytes_of_a_record) {
  constexpr std::size_t kRecords = 2000;
  ScratchStore store(Rules::kClosed);
  for (std::size_t i = 0; i < kRecords; ++i) {
    ImagePulledRecord record;
    record.image_ref = "sha256:" + std::string(64 - 4, 'a') + std::to_string(1000 + i);
    const std::string name = "registry.example.com/team-" + std::to_string(i % 50) + "/app";
    record.credential_mapping[name] = WithSecret(kSecretA);
    Must(store->PutRecord(record));
  }
  const std::uint64_t bytes = Must(store->GetStatistics()).used_bytes;
  BOOST_TEST(bytes / kRecords >= 300U);
  BOOST_TEST(bytes / kRecords <= 800U);
}

// A limit: "A pull that brings its image later than the window"
BOOST_AUTO_TEST_CASE(content_that_comes_after_the_window) {
  for (const bool later : {false, true}) {
    ScratchStore store(Rules::kClosed);
    Observe(*store, {Entry(kRef2, {"r.example/tool:1"})});
    End(store, PullFailure::kUnknown);
    store.clock().AdvanceSeconds(later ? 7201 : 7199);
    Observe(*store, {Entry(kRef2, {"r.example/tool:1"})});
    Observe(*store, {Entry(kRef2, {"r.example/tool:1"}), Entry(kRef, {std::string(kImage)})});
    BOOST_TEST(IsOpen(store, kImage) == later);
  }
}

// A limit: "A pull that the runtime reports as failed"
BOOST_AUTO_TEST_CASE(content_that_comes_after_the_runtime_denied_it) {
  for (const PullFailure failure : {PullFailure::kFailed, PullFailure::kNothingTransferred}) {
    ScratchStore store(Rules::kClosed);
    End(store, failure);
    store.clock().AdvanceSeconds(60);
    Observe(*store, {Entry(kRef, {std::string(kImage)})});
    BOOST_TEST(IsOpen(store, kImage) == (failure == PullFailure::kNothingTransferred));
  }
}

// A limit: "`start` sees that a kubelet ran alone"
BOOST_AUTO_TEST_CASE(a_kubelet_that_left_no_file) {
  for (const bool left_a_file : {true, false}) {
    const MemoryDir scratch;
    const std::filesystem::path kubelet = scratch / "kubelet";
    OpenOptions options = OptionsIn(scratch.path());
    options.kubelet_directory = kubelet;
    options.witness = Witness::At(kubelet / "image_manager" / "waybill");
    std::filesystem::create_directories(kubelet / "image_manager" / "pulling");
    const ImageOnNode tool = Entry(kRef2, {"r.example/tool:1"});
    options.images_on_node = {tool};
    options.gap = Gap::kNo;
    auto store = Must(NodeStore::Open(options));
    Must(store->Close());
    store.reset();
    WriteRecordFile(kubelet, "pulling", kImage, EncodePullIntent({.image = std::string(kImage)}));
    if (!left_a_file) std::filesystem::remove(kubelet / RecordFile("pulling", kImage));
    options.gap = Gap::kDetect;
    store = Must(NodeStore::Open(options));
    ImageList list{.images = {tool, Entry(kRef, {std::string(kImage)})}, .complete = true};
    list.token = Must(store->BeginList());
    Must(store->ObserveImages(list));
    BOOST_TEST(DecisionOf(*store, {.image = kImage, .image_ref = kRef}).pull == left_a_file);
  }
}

// A limit: "An operator who tags content that came late"
BOOST_AUTO_TEST_CASE(content_that_came_late_and_is_tagged) {
  for (const bool tagged : {false, true}) {
    ScratchStore store(Rules::kClosed);
    End(store, PullFailure::kUnknown);
    std::vector<std::string> tags{std::string(kImage)};
    if (tagged) tags.emplace_back("ops.example/keep/app:1");
    Observe(*store, {Entry(kRef, tags)});
    BOOST_TEST(IsOpen(store, kImage) == tagged);
  }
}

// A limit: "After a cancelled pull the import of the very same tag by hand"
BOOST_AUTO_TEST_CASE(an_import_that_a_pull_may_have_brought) {
  for (const std::string& pulled : {std::string(kImage), std::string("app")}) {
    for (const ShortNames short_names : {ShortNames::kAnywhere, ShortNames::kDockerHub}) {
      ScratchStore store(Rules::kClosed);
      store.Stop();
      OpenOptions options = store.Options({});
      options.evidence.short_names = short_names;
      auto opened = Must(NodeStore::Open(options));
      const PullId pull = Must(opened->RecordPullIntent({.image = pulled}));
      Must(opened->RecordImagePullFailed({.image = pulled}, PullFailure::kUnknown, pull));
      ImageList list{.images = {Entry(kRef, {std::string(kImage)})}, .complete = true};
      list.token = Must(opened->BeginList());
      Must(opened->ObserveImages(list));
      const auto must_pull = [&] {
        return DecisionOf(*opened, {.image = kImage, .image_ref = kRef}).pull;
      };
      const bool closed = pulled == kImage || short_names == ShortNames::kAnywhere;
      BOOST_TEST(must_pull() == closed);
      Must(opened->AddToLedger(list.images[0], "operator", "imported it"));
      BOOST_TEST(!must_pull());
    }
  }
}

// A limit: "Without a witness"
BOOST_AUTO_TEST_CASE(a_wiped_store_without_a_witness) {
  for (const bool has_witness : {false, true}) {
    ScratchStore store(Rules::kClosed, {}, {}, has_witness);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    std::filesystem::remove_all(store.directory());
    store.Start({Entry(kRef, {std::string(kImage)})});
    BOOST_TEST(Must(store->GetTrust()).distrustful == has_witness);
    BOOST_TEST(IsOpen(store, kImage) != has_witness);
  }
}

// A limit: "Streaming tokens that are kept over a restart"
BOOST_AUTO_TEST_CASE(an_older_copy_of_all_that_keeps_tokens) {
  for (const bool has_witness : {false, true}) {
    StreamingScene scene(true);
    StreamingOptions options = scene.Options();
    if (!has_witness) options.witness = Witness::None();
    scene.Start(options);
    const std::string token = scene.Prepare(1);
    scene.Stop();
    const std::filesystem::path copy = scene.scratch() / "copy";
    std::filesystem::copy(scene.directory(), copy, std::filesystem::copy_options::recursive);
    scene.Start(options);
    BOOST_TEST(!scene.Refused(token).has_value());
    scene.Stop();
    std::filesystem::remove_all(scene.directory());
    std::filesystem::copy(copy, scene.directory(), std::filesystem::copy_options::recursive);
    scene.Start(options);
    BOOST_TEST(scene.Refused(token).has_value() == has_witness);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
