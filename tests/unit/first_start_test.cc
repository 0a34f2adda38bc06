// What a kubelet that ran before a first start may still bring. What else a first start makes of
// images that nobody recorded: histories/gaps.jsonl.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

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
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  FakeClock clock;
  OpenOptions options = OptionsIn(scratch.path());
  std::unique_ptr<NodeStore> store;
};

}  // namespace

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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
