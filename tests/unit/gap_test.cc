// A node that ran for a while without anybody recording its pulls (KEP-2535, "What happens if we
// reenable the feature"; OpenOptions::gap).

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

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

// A node whose kubelet directory was taken over, and where a kubelet without waybill then pulled.
struct Node : ScratchStore {
  explicit Node(Rules rules = Rules::kClosed) : ScratchStore(rules) {
    WriteRecordFile(kubelet_directory(), "pulled", kRef2, RecordFor(kRef2));
    Restart();
    Stop();
  }
  void PullWithoutWaybill() {
    WriteRecordFile(kubelet_directory(), "pulled", kRef, RecordFor(kRef));
  }
  const RecoveryReport& Open(Gap gap, std::optional<std::vector<ImageOnNode>> images) {
    OpenOptions options = Options({});
    options.gap = gap;
    options.images_on_node = std::move(images);
    opened = Must(NodeStore::Open(std::move(options)));
    return opened->recovery_report();
  }
  Decision Ask() {
    Pod nobody;
    return opened->MustAttemptPull(
        {.image = "registry.example.com/private:v1", .image_ref = kUnrecorded}, nobody);
  }
  std::unique_ptr<NodeStore> opened;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_kubelet_wrote_since_tells_of_a_gap) {
  Node node;
  node.PullWithoutWaybill();
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(report.after_gap);
  BOOST_TEST(report.gap_reason.find("pulled/sha256-") != std::string::npos);
  BOOST_TEST(report.gap_closed == 1U);
  BOOST_TEST((report.gap_images == std::vector<std::string>{"registry.example.com/private:v1"}));
  BOOST_TEST(!report.distrustful);
  BOOST_TEST((node.Ask().reason == Reason::kEntryWithoutCredentials));
  // What the kubelet did record has its credentials.
  Pod pod(kSecretA);
  BOOST_TEST(!node.opened->MustAttemptPull({.image = kImage, .image_ref = kRef}, pod).pull);
}

BOOST_AUTO_TEST_CASE(without_a_list_of_images_the_store_turns_distrustful_until_there_is_one) {
  Node node;
  node.PullWithoutWaybill();
  BOOST_TEST(node.Open(Gap::kDetect, std::nullopt).distrustful);
  BOOST_TEST((node.Ask().reason == Reason::kStoreDistrustful));
  BOOST_TEST(node.opened->recovery_report().distrust_reason.find("--after-gap") !=
             std::string::npos);
  node.opened.reset();
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(report.after_gap);
  BOOST_TEST(report.gap_closed == 1U);
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(node.Ask().pull);
  node.opened.reset();
  // And that was that.
  BOOST_TEST(!node.Open(Gap::kDetect, OnNode()).after_gap);
}

BOOST_AUTO_TEST_CASE(a_backup_put_back_forgets_no_gap) {
  Node node;
  const auto backup = Must(Migrate({.directory = node.directory(), .to = 3})).backup;
  node.Open(Gap::kYes, std::nullopt);
  node.opened.reset();
  Must(Restore({.directory = node.directory(), .backup = backup}));
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(report.after_gap);
  BOOST_TEST(report.gap_closed == 2U);
  Must(node.opened->ClearDistrust("seen"));
  BOOST_TEST(node.Ask().pull);
}

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
  BOOST_TEST((NodeStore::Open(options).error().code == ErrorCode::kInterrupted));
  options = In(respelled);
  options.gap = Gap::kNo;
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!store->recovery_report().distrustful, store->recovery_report().distrust_reason);
}

BOOST_AUTO_TEST_CASE(a_start_without_new_files_has_no_gap) {
  Node node;
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(!report.after_gap);
  BOOST_TEST(report.gap_closed == 0U);
  BOOST_TEST(!node.Ask().pull);
}

BOOST_AUTO_TEST_CASE(exported_files_that_nobody_touched_are_no_gap) {
  for (const auto version : {KubeletApiVersion::kV1Beta1, KubeletApiVersion::kV1Alpha1}) {
    Node node;
    WriteRecordFile(node.kubelet_directory(), "pulled", "sha256:closed", "{");
    node.Open(Gap::kNo, std::nullopt);
    Must(node.opened->RecordPullIntent({.image = kImage}));
    Must(
        node.opened->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretB)));
    Must(node.opened->PutIntent({.image = "registry.example.com/cut-short:v1"}));
    Must(node.opened->Export(
        {.kubelet_directory = node.kubelet_directory(), .api_version = version}));
    // The store may live on before it meets the directory again.
    Must(node.opened->RecordPullIntent({.image = kImage}));
    Must(
        node.opened->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    for (int i = 0; i < 2; ++i) {
      node.opened.reset();
      const RecoveryReport& report = node.Open(Gap::kDetect, std::nullopt);
      BOOST_TEST(!report.after_gap, report.gap_reason);
      BOOST_TEST(!report.distrustful, report.distrust_reason);
    }
    BOOST_TEST(!node.Ask().pull);
  }
}

BOOST_AUTO_TEST_CASE(an_exported_file_that_a_kubelet_wrote_again_is_a_gap) {
  const std::string cut_short = "registry.example.com/cut-short:v1";
  for (int touched = 0; touched < 4; ++touched) {
    Node node;
    node.Open(Gap::kNo, std::nullopt);
    Must(node.opened->PutIntent({.image = cut_short}));
    Must(node.opened->Export({.kubelet_directory = node.kubelet_directory()}));
    node.opened.reset();
    const auto image_manager = node.kubelet_directory() / "image_manager";
    const auto intent = node.kubelet_directory() / RecordFile("pulling", cut_short);
    if (touched == 0) node.PullWithoutWaybill();
    if (touched == 1) {
      // The same intent for another pull.
      const auto time = std::filesystem::last_write_time(intent);
      std::filesystem::last_write_time(intent, time + std::chrono::seconds(1));
    }
    if (touched == 2) std::filesystem::remove(image_manager / "waybill-exported");
    if (touched == 3) {
      const std::string manifest = ReadFile(image_manager / "waybill-exported");
      WriteFile(image_manager / "waybill-exported", manifest.substr(0, manifest.size() - 2) + "\n");
    }
    BOOST_TEST_CONTEXT(touched) { BOOST_TEST(node.Open(Gap::kDetect, std::nullopt).after_gap); }
  }
}

BOOST_AUTO_TEST_CASE(an_intent_written_since_tells_too) {
  Node node;
  WriteRecordFile(node.kubelet_directory(), "pulling", kImage,
                  EncodePullIntent({std::string(kImage)}));
  BOOST_TEST(node.Open(Gap::kDetect, OnNode()).after_gap);
}

// Whoever clears the distrust of a loss has the gap before his eyes, or it was closed.
BOOST_AUTO_TEST_CASE(a_gap_and_a_loss_do_not_hide_each_other) {
  for (const bool gap_first : {false, true}) {
    Node node;
    const auto gap = [&] { BOOST_TEST(node.Open(Gap::kYes, std::nullopt).distrustful); };
    const auto loss = [&] {
      WriteFile(node.witness(), "no witness");
      BOOST_TEST(node.Open(Gap::kDetect, std::nullopt).distrustful);
    };
    gap_first ? gap() : loss();
    node.opened.reset();
    gap_first ? loss() : gap();
    int in_force = 0;
    for (const TrustEvent& event : Must(node.opened->GetTrust()).journal) {
      in_force += event.action == TrustAction::kDistrust ? 1 : -1;
    }
    BOOST_TEST(in_force == 2);
    node.opened.reset();
    const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
    BOOST_TEST(report.after_gap);
    BOOST_TEST(report.gap_closed == 2U);
    BOOST_TEST(report.distrust_reason.find("witness") != std::string::npos);
    Must(node.opened->ClearDistrust("the witness was written over by hand"));
    BOOST_TEST((node.Ask().reason == Reason::kEntryWithoutCredentials));
  }
}

BOOST_AUTO_TEST_CASE(closing_a_gap_does_not_finish_the_import_that_found_it) {
  Node node;
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
    Pod nobody;
    BOOST_TEST(store->MustAttemptPull({.image = kImage, .image_ref = kRef}, nobody).pull);
  }
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(Must(node.opened->HasIntent({.image = kImage})));
}

BOOST_AUTO_TEST_CASE(an_operator_can_say_so) {
  Node node;
  const RecoveryReport& report = node.Open(Gap::kYes, OnNode());
  BOOST_TEST(report.after_gap);
  BOOST_TEST(report.gap_closed == 2U);
  BOOST_TEST(node.Ask().pull);
  node.opened.reset();
  BOOST_TEST(node.Open(Gap::kYes, OnNode()).gap_closed == 0U);
}

BOOST_AUTO_TEST_CASE(an_operator_can_say_so_without_a_list) {
  Node node;
  BOOST_TEST(node.Open(Gap::kYes, std::nullopt).distrustful);
  BOOST_TEST(node.Ask().pull);
}

BOOST_AUTO_TEST_CASE(an_operator_can_say_that_there_was_none) {
  Node node;
  node.PullWithoutWaybill();
  const RecoveryReport& report = node.Open(Gap::kNo, OnNode());
  BOOST_TEST(!report.after_gap);
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(!node.Ask().pull);
}

BOOST_AUTO_TEST_CASE(kubelet_rules_look_for_none_but_take_an_operator_s_word) {
  Node node(Rules::kKubelet);
  node.PullWithoutWaybill();
  BOOST_TEST(!node.Open(Gap::kDetect, OnNode()).after_gap);
  BOOST_TEST(!node.Ask().pull);
  node.opened.reset();
  BOOST_TEST(node.Open(Gap::kYes, OnNode()).gap_closed == 1U);
  BOOST_TEST(node.Ask().pull);
}

BOOST_AUTO_TEST_CASE(the_first_start_of_a_node_whose_kubelet_recorded_nothing) {
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  std::filesystem::create_directories(kubelet / "pods" / "5d3d9a5e-0000-4000-8000-000000000001");
  OpenOptions options{.directory = scratch / "store",
                      .witness = Witness::At(kubelet / "image_manager" / "waybill")};
  options.kubelet_directory = kubelet;
  options.images_on_node = OnNode();
  {
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().after_gap);
    BOOST_TEST(store->recovery_report().gap_closed == 2U);
    BOOST_TEST(!store->recovery_report().distrustful);
  }
  // Later the folders are not there either: waybill keeps the records now.
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!store->recovery_report().after_gap);
}

// An image_manager/ without records, as the witness of a store that was wiped leaves it, is none of
// a kubelet that recorded.
BOOST_AUTO_TEST_CASE(an_image_manager_without_records_hides_no_gap) {
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  std::filesystem::create_directories(kubelet / "pods" / "a-pod");
  std::filesystem::create_directories(kubelet / "image_manager");
  OpenOptions options{.directory = scratch / "store",
                      .witness = Witness::At(kubelet / "image_manager" / "waybill")};
  options.kubelet_directory = kubelet;
  auto store = Must(NodeStore::Open(std::move(options)));
  BOOST_TEST(store->recovery_report().after_gap);
  Pod nobody;
  BOOST_TEST((store->MustAttemptPull({.image = kImage, .image_ref = kUnrecorded}, nobody).reason ==
              Reason::kStoreDistrustful));
}

BOOST_AUTO_TEST_CASE(a_store_that_was_there_before_finds_it_when_it_takes_over) {
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  std::filesystem::create_directories(kubelet / "pods" / "a-pod");
  OpenOptions options{.directory = scratch / "store", .witness = Witness::None()};
  static_cast<void>(Must(NodeStore::Open(options)));
  options.kubelet_directory = kubelet;
  options.witness = Witness::At(kubelet / "image_manager" / "waybill");
  {
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().after_gap);
    BOOST_TEST(store->recovery_report().distrustful);
  }
  options.images_on_node = OnNode();
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().gap_closed == 2U);
  const auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!store->recovery_report().after_gap);
  BOOST_TEST(!store->recovery_report().distrustful);
}

BOOST_AUTO_TEST_CASE(it_takes_over_under_another_spelling_too) {
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  std::filesystem::create_directories(kubelet / "pods" / "a-pod");
  OpenOptions options{.directory = scratch / "store", .witness = Witness::None()};
  static_cast<void>(Must(NodeStore::Open(options)));
  options.kubelet_directory = kubelet;
  options.witness =
      Witness::At(scratch / "kubelet" / ".." / "kubelet" / "image_manager" / "waybill");
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().after_gap);
}

BOOST_AUTO_TEST_CASE(the_first_start_of_a_new_node_has_no_gap) {
  for (const bool has_records : {false, true}) {
    const TempDir scratch;
    const std::filesystem::path kubelet = scratch / "kubelet";
    std::filesystem::create_directories(kubelet / "pods");
    if (has_records) {
      std::filesystem::create_directories(kubelet / "pods" / "a-pod");
      WriteRecordFile(kubelet, "pulled", kRef, RecordFor(kRef));
    }
    OpenOptions options{.directory = scratch / "store", .witness = Witness::None()};
    options.kubelet_directory = kubelet;
    options.images_on_node = OnNode();
    auto store = Must(NodeStore::Open(std::move(options)));
    BOOST_TEST(!store->recovery_report().after_gap);
    BOOST_TEST(!store->recovery_report().distrustful);
  }
}

BOOST_AUTO_TEST_CASE(a_store_that_lost_records_stays_distrustful) {
  Node node;
  node.PullWithoutWaybill();
  std::filesystem::remove(node.directory() / "data.mdb");
  const RecoveryReport& report = node.Open(Gap::kDetect, OnNode());
  BOOST_TEST(report.distrustful);
  BOOST_TEST(report.distrust_reason.find("gone") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
