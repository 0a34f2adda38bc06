// What a first start makes of images that nobody recorded (OpenOptions::first_start), what an
// operator says of them, and what a kubelet that ran before may still bring.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(first_start)

namespace {

ImageOnNode Image(char digit, std::string tag, bool pinned = false) {
  return {.id = Digest(digit), .repo_tags = {std::move(tag)}, .pinned = pinned};
}

const ImageOnNode kPause = Image('a', "registry.k8s.io/pause:3.10", true);
const ImageOnNode kBaked = Image('b', "r.example/baked:1");
const ImageOnNode kUnknown = Image('c', "r.example/unknown:1");
const std::vector<ImageOnNode> kOnNode = {kPause, kBaked, kUnknown};

// A node whose kubelet directory waybill has not seen yet.
struct NewNode {
  NewNode() {
    std::filesystem::create_directory(kubelet);
    options.kubelet_directory = kubelet;
    options.witness = Witness::At(kubelet / "image_manager" / "waybill");
    options.clock = clock.AsClock();
    options.boot_clock = clock.AsBootClock();
    options.allow_empty = true;
  }
  void Open() { store = Must(NodeStore::Open(options)); }
  void Close() {
    Must(store->Close());
    store.reset();
  }
  ObserveReport Observe(std::vector<ImageOnNode> images) {
    ImageList list{.images = std::move(images), .complete = true};
    list.token = Must(store->BeginList());
    return Must(store->ObserveImages(list));
  }
  bool IsOpen(const ImageOnNode& image) const {
    const ImageCopy copy{.image = image.repo_tags.front(), .image_ref = image.id};
    return !DecisionOf(*store, copy).pull;
  }
  std::map<std::string, std::string> Sources() const {
    std::map<std::string, std::string> sources;
    for (const LedgerEntry& entry : Must(store->ListLedger())) {
      sources[entry.names.front()] = entry.source;
    }
    return sources;
  }

  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  FakeClock clock;
  OpenOptions options = OptionsIn(scratch.path());
  std::unique_ptr<NodeStore> store;
};

using Sources = std::map<std::string, std::string>;

}  // namespace

// A limit: "What a first start presumes preloaded is open"
BOOST_AUTO_TEST_CASE(what_nobody_recorded_is_presumed_and_said_to_be) {
  for (const bool lists_at_opening : {true, false}) {
    // A kubelet of 1.32 left pods and no records; one of 1.33 a record of another image.
    for (const bool has_record : {true, false}) {
      NewNode node;
      std::filesystem::create_directories(node.kubelet / "pods" / "uid");
      if (has_record) {
        ImagePulledRecord record{.image_ref = std::string(kRef)};
        record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
        WriteRecordFile(node.kubelet, "pulled", kRef, EncodePulledRecord(record));
      }
      node.options.preloaded = {ImageOnNode{.repo_tags = kBaked.repo_tags}};
      if (lists_at_opening) node.options.images_on_node = kOnNode;
      node.Open();
      if (!lists_at_opening) node.Observe(kOnNode);
      BOOST_TEST(!node.store->recovery_report().after_gap);
      for (const ImageOnNode& image : kOnNode) BOOST_TEST(node.IsOpen(image));
      BOOST_TEST((node.Sources() == Sources{{kPause.repo_tags.front(), "pinned"},
                                            {kBaked.repo_tags.front(), "preloaded-list"},
                                            {kUnknown.repo_tags.front(), "presumed"}}));
      BOOST_TEST(node.store->GetMetrics().preloaded_images == 3U);
      BOOST_TEST(node.store->GetMetrics().presumed_images == 1U);
    }
  }
}

BOOST_AUTO_TEST_CASE(or_closed_if_an_operator_wants_that) {
  for (const bool lists_at_opening : {true, false}) {
    NewNode node;
    node.options.first_start = FirstStart::kClose;
    node.options.preloaded = {ImageOnNode{.repo_tags = kBaked.repo_tags}};
    if (lists_at_opening) node.options.images_on_node = kOnNode;
    node.Open();
    BOOST_TEST(node.store->recovery_report().after_gap);
    if (!lists_at_opening) {
      for (const ImageOnNode& image : kOnNode) BOOST_TEST(!node.IsOpen(image));
      // Also if the process ends before the runtime answers.
      node.Close();
      node.options.first_start = FirstStart::kPresume;
      node.Open();
      node.Observe(kOnNode);
    }
    BOOST_TEST((node.Sources() == Sources{{kPause.repo_tags.front(), "pinned"},
                                          {kBaked.repo_tags.front(), "preloaded-list"}}));
    BOOST_TEST(!node.IsOpen(kUnknown));
    BOOST_TEST(Must(node.store->ListOpenPulls()).size() == 1U);
    BOOST_TEST(!Must(node.store->GetTrust()).distrustful);
    // Only a first start: what an operator imports when nothing is open is open.
    node.Close();
    node.options.first_start = FirstStart::kClose;
    node.options.images_on_node = kOnNode;
    node.clock.Reboot();
    node.Open();
    BOOST_TEST(!node.store->recovery_report().after_gap);
    node.Observe(kOnNode);
    const ImageOnNode imported = Image('d', "r.example/imported:1");
    std::vector<ImageOnNode> images = kOnNode;
    images.push_back(imported);
    node.Observe(images);
    BOOST_TEST(node.IsOpen(imported));
  }
}

BOOST_AUTO_TEST_CASE(a_pinned_image_that_a_pull_of_its_name_may_have_brought_is_closed) {
  NewNode node;
  node.options.first_start = FirstStart::kClose;
  WriteRecordFile(node.kubelet, "pulling", kPause.repo_tags.front(),
                  EncodePullIntent({kPause.repo_tags.front()}));
  node.options.images_on_node = kOnNode;
  node.Open();
  BOOST_TEST(!node.IsOpen(kPause));
  BOOST_TEST(node.Sources().empty());
}

// The kubelet cancelled a pull, which deletes its intent, and what it brings comes later.
BOOST_AUTO_TEST_CASE(what_a_kubelet_cut_short_before_the_first_take_over_stays_closed) {
  enum class Before { kNothing, kPods, kRecords, kFolders };
  enum class Take { kNewStore, kWitness, kFiles };
  const ImageOnNode late = Image('d', "r.example/private:1");
  for (const Take take : {Take::kNewStore, Take::kWitness, Take::kFiles}) {
    for (const Before before :
         {Before::kNothing, Before::kPods, Before::kRecords, Before::kFolders}) {
      // An existing store that keeps its witness elsewhere sees the files only.
      if (take == Take::kFiles && before != Before::kRecords) continue;
      for (const bool reboots : {false, true}) {
        NewNode node;
        const OpenOptions takes_over = node.options;
        if (take != Take::kNewStore) {
          node.options.kubelet_directory.clear();
          node.options.witness = Witness::At(node.scratch / "witness");
          node.options.images_on_node = kOnNode;
          node.Open();
          node.Close();
          node.options.kubelet_directory = takes_over.kubelet_directory;
          if (take == Take::kWitness) node.options.witness = takes_over.witness;
        }
        if (before == Before::kPods) {
          std::filesystem::create_directories(node.kubelet / "pods" / "uid");
        } else if (before == Before::kFolders) {
          std::filesystem::create_directories(node.kubelet / "image_manager" / "pulling");
        } else if (before == Before::kRecords) {
          ImagePulledRecord record{.image_ref = std::string(kRef)};
          record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
          WriteRecordFile(node.kubelet, "pulled", kRef, EncodePulledRecord(record));
        }
        node.options.images_on_node = kOnNode;
        node.Open();
        BOOST_TEST_CONTEXT(static_cast<int>(take) << " " << static_cast<int>(before)) {
          BOOST_TEST(node.IsOpen(kUnknown));
          const bool in_use = before != Before::kNothing;
          BOOST_TEST(Must(node.store->ListOpenPulls()).size() == (in_use ? 1U : 0U));
          // Another opening does not begin the window anew.
          node.clock.AdvanceSeconds(3600);
          node.options.images_on_node.reset();
          node.Close();
          node.Open();
          std::vector<ImageOnNode> images = kOnNode;
          images.push_back(late);
          node.Observe(images);
          BOOST_TEST(node.IsOpen(late) == !in_use);
          node.clock.AdvanceSeconds(3601);
          if (reboots) node.clock.Reboot();
          node.Observe(images);
          BOOST_TEST(node.IsOpen(late) == !in_use);
          images.push_back(Image('e', "r.example/imported:1"));
          node.Observe(images);
          BOOST_TEST(node.IsOpen(images.back()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_operator_settles_what_is_presumed) {
  NewNode node;
  node.options.images_on_node = kOnNode;
  node.Open();
  const ImageCopy unknown{.image_ref = kUnknown.id};
  const ImageCopy baked{.image_ref = kBaked.id};
  const auto settle = [&](const ImageCopy& copy, Settled as, bool dry_run = false) {
    return Must(node.store->SettlePresumed(copy, as, "seen", {.dry_run = dry_run}));
  };
  for (const Settled as : {Settled::kPreloaded, Settled::kClosed}) {
    BOOST_TEST(settle(unknown, as, true));
    BOOST_TEST(node.Sources().at(kUnknown.repo_tags.front()) == "presumed");
    // What the runtime pins is known, and what is not there can't be settled.
    BOOST_TEST(!settle({.image_ref = kPause.id}, as));
    BOOST_TEST(!settle({.image_ref = Digest('f')}, as));
    ExpectError(node.store->SettlePresumed(unknown, as, ""), ErrorCode::kInvalidArgument);
    ExpectError(node.store->SettlePresumed({}, as, "seen"), ErrorCode::kInvalidArgument);
  }
  BOOST_TEST(settle(baked, Settled::kPreloaded));
  BOOST_TEST(settle(unknown, Settled::kClosed));
  BOOST_TEST((node.Sources() == Sources{{kPause.repo_tags.front(), "pinned"},
                                        {kBaked.repo_tags.front(), "operator"}}));
  BOOST_TEST(node.IsOpen(kBaked));
  BOOST_TEST(!node.IsOpen(kUnknown));
  for (const Settled as : {Settled::kPreloaded, Settled::kClosed}) {
    BOOST_TEST(!settle(baked, as));
    BOOST_TEST(!settle(unknown, as));
  }
  // Lists do not open it again.
  node.Observe(kOnNode);
  node.clock.Reboot();
  node.Observe(kOnNode);
  BOOST_TEST(!node.IsOpen(kUnknown));
  BOOST_TEST(node.store->GetMetrics().presumed_images == 0U);
}

// Its proofs count afterwards.
BOOST_AUTO_TEST_CASE(what_is_closed_and_has_a_record_keeps_it) {
  NewNode node;
  node.options.images_on_node = kOnNode;
  node.Open();
  const std::string& image = kUnknown.repo_tags.front();
  const PullId pull = Must(node.store->RecordPullIntent({.image = image}));
  Must(node.store->RecordImagePulled({.image = image, .image_ref = kUnknown.id},
                                     WithSecret(kSecretA), {.pull = pull}));
  BOOST_TEST(node.IsOpen(kUnknown));
  BOOST_TEST(
      Must(node.store->SettlePresumed({.image_ref = kUnknown.id}, Settled::kClosed, "seen")));
  BOOST_TEST(!node.IsOpen(kUnknown));
  BOOST_TEST(
      !DecisionOf(*node.store, {.image = image, .image_ref = kUnknown.id}, Pod(kSecretA)).pull);
}

BOOST_FIXTURE_TEST_CASE(the_kubelets_rules_keep_no_ledger, KubeletStore) {
  ExpectError(store->SettlePresumed({.image_ref = kUnknown.id}, Settled::kPreloaded, "seen"),
              ErrorCode::kInvalidArgument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
