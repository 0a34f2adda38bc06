// A node that pulled images for a while without recording them (KEP-2535, "What happens if we
// reenable the feature"; OpenOptions::gap): what histories/gaps.jsonl can't say.

#include "store/node/upkeep/gap.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "migrations/kubelet/kubelet_file.h"
#include "store/engine/recovery/new_database.h"
#include "store/engine/trust/trust.h"
#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(gap)

namespace {

const std::string kUnrecorded = "sha256:never-recorded";

std::vector<ImageOnNode> OnNode() {
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
  Node() : ScratchStore(Rules::kClosed) {
    WriteRecordFile(kubelet_directory(), "pulled", kRef2, RecordFor(kRef2));
    Stop();
    Open(Gap::kNo, std::vector<ImageOnNode>());
    Must(opened->Close());
    opened.reset();
  }
  const RecoveryReport& Open(Gap gap, std::optional<std::vector<ImageOnNode>> images) {
    OpenOptions options = Options({});
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

// One directory under another spelling is the one that was taken over before.
struct Respelled : Node {
  OpenOptions In(const std::filesystem::path& spelt) const {
    OpenOptions options = Options({});
    options.directory = scratch() / "another";
    options.images_on_node.reset();
    options.kubelet_directory = spelt;
    options.witness = Witness::At(spelt / "image_manager" / "waybill");
    return options;
  }
  Respelled() {
    std::filesystem::create_directory(kubelet);
    Must(Must(NodeStore::Open(In(kubelet)))->Close());
  }
  const std::filesystem::path kubelet = scratch() / "the-kubelet";
  const std::filesystem::path respelled = scratch() / "kubelet" / ".." / "the-kubelet";
};

BOOST_FIXTURE_TEST_CASE(what_a_kubelet_wrote_in_a_respelled_directory, Respelled) {
  WriteRecordFile(kubelet, "pulled", kRef, RecordFor(kRef));
  auto store = Must(NodeStore::Open(In(respelled)));
  BOOST_TEST(store->recovery_report().after_gap);
}

BOOST_FIXTURE_TEST_CASE(a_respelled_directory_is_no_first_take_over, Respelled) {
  std::filesystem::create_directories(kubelet / "pods" / "one");
  auto store = Must(NodeStore::Open(In(respelled)));
  BOOST_TEST(!store->recovery_report().after_gap);
  BOOST_TEST(!store->recovery_report().distrustful);
}

BOOST_FIXTURE_TEST_CASE(an_import_that_was_stopped_ends_under_another_spelling, Respelled) {
  WriteRecordFile(kubelet, "pulled", kRef, RecordFor(kRef));
  OpenOptions options = In(kubelet);
  options.gap = Gap::kNo;
  options.import_progress = [](auto, auto) { return false; };
  ExpectError(NodeStore::Open(options), ErrorCode::kInterrupted);
  options = In(respelled);
  options.gap = Gap::kNo;
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!store->recovery_report().distrustful, store->recovery_report().distrust_reason);
}

BOOST_AUTO_TEST_CASE(an_exported_file_that_a_kubelet_wrote_again_is_a_gap) {
  const std::string cut_short = "registry.example.com/cut-short:v1";
  for (const bool same_content : {true, false}) {
    Node node;
    node.Open(Gap::kNo, std::nullopt);
    Must(node.opened->PutIntent({.image = cut_short}));
    Must(node.opened->Export(
        {.kubelet_directory = node.kubelet_directory(), .images_on_node = OnNode()}));
    node.opened.reset();
    if (same_content) {
      // The same intent for another pull.
      const auto intent = node.kubelet_directory() / RecordFile("pulling", cut_short);
      const auto time = std::filesystem::last_write_time(intent);
      std::filesystem::last_write_time(intent, time + std::chrono::seconds(1));
    } else {
      const auto list = node.kubelet_directory() / "image_manager" / "waybill-exported";
      const std::string exported = ReadFile(list);
      WriteFile(list, exported.substr(0, exported.size() - 2) + "\n");
    }
    BOOST_TEST_CONTEXT(same_content) {
      BOOST_TEST(node.Open(Gap::kDetect, std::nullopt).after_gap);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(closing_a_gap_does_not_finish_the_import_that_found_it, TakenOver) {
  for (int i = 0; i < 600; ++i) {
    const std::string ref = "sha256:of-" + std::to_string(i);
    WriteRecordFile(node.kubelet_directory(), "pulled", ref, RecordFor(ref));
  }
  WriteRecordFile(node.kubelet_directory(), "pulling", kImage,
                  EncodePullIntent({std::string(kImage)}));
  OpenOptions options = node.Options({});
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
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(Must(node.opened->HasIntent({.image = kImage})));
}

// Earlier versions noted the path as it was given.
BOOST_FIXTURE_TEST_CASE(an_import_that_an_earlier_version_left_unfinished_ends, Respelled) {
  internal::NewDatabase made;
  made.map_bytes = kDefaultMapBytes;
  made.identity = Must(internal::NewIdentity({1'767'000'000, 0}));
  made.fill = [&](internal::StoreTxn& txn) -> Result<void> {
    Must(internal::SetDistrust(
        txn, {TrustKind::kImportUnfinished,
              "the import of " + respelled.string() +
                  " is not finished; run `waybill start --kubelet-dir` on it again"}));
    BOOST_TEST(txn.state().distrustful);
    Must(internal::EndImport(txn, respelled));
    BOOST_TEST(!txn.state().distrustful);
    return {};
  };
  std::filesystem::create_directory(scratch() / "made");
  Must(internal::PrepareDatabase(scratch() / "made", made));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
