// What is known of an image, and for how long.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/image_spellings.h"
#include "store/maintenance.h"
#include "tests/support/expect_error.h"
#include "tests/support/known_images.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "tests/support/versions.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// Judging the images of a list, where histories/evidence.jsonl does not reach: random lists and
// pulls against the rule said a second time; what is too long or too many; an observer.
BOOST_AUTO_TEST_SUITE(judging)

namespace {

using Images = std::vector<ListedImage>;

ListedImage Entry(std::string_view id, std::vector<std::string> tags,
                  std::vector<std::string> digests = {}) {
  return {.id = std::string(id), .repo_tags = std::move(tags), .repo_digests = std::move(digests)};
}

}  // namespace

// --- Rule 12

BOOST_FIXTURE_TEST_CASE(an_operators_word_must_be_whole, ClosedStore) {
  const ListedImage image = Entry(kRef, {std::string(kImage)});
  const std::string too_long(kMaxReasonBytes + 1, 'r');
  ExpectError(store->AddToLedger(image, too_long, "why"), ErrorCode::kInvalidArgument);
  ExpectError(store->AddToLedger(image, "operator", too_long), ErrorCode::kInvalidArgument);
  ExpectError(store->RemoveFromLedger({.image_ref = kRef}, too_long), ErrorCode::kInvalidArgument);
  ExpectError(store->AddToLedger({.id = std::string(kMaxImageRefBytes + 1, 'a')}, "a", "b"),
              ErrorCode::kLimitExceeded);
  ExpectError(store->AddToLedger({.id = "a", .runtime_handler = "of-no-node"}, "operator", "why"),
              ErrorCode::kInvalidArgument);
  ExpectError(store->RemoveFromLedger({}, "why"), ErrorCode::kInvalidArgument);
  ImageList list{.images = {image}, .token = Must(store->BeginList()), .source = too_long};
  ExpectError(store->ObserveImages(list), ErrorCode::kInvalidArgument);
  BOOST_TEST(Must(store->ListLedger()).empty());
  BOOST_TEST(Must(store->GetTrust()).journal.empty());
}

// --- Bad input

BOOST_FIXTURE_TEST_CASE(entries_that_say_little_or_too_much, ClosedStore) {
  const std::string long_name = "r.example/" + std::string(kMaxImageBytes, 'a') + ":1";
  const ClassifyReport report = ObservePart(
      *store, {Entry("", {"r.example/without-an-id:1"}),
               Entry(std::string(kMaxImageRefBytes + 1, 'a'), {"r.example/long-ref:1"}),
               Entry(kRef, {"Not A Name", "<none>:<none>", long_name}, {"<none>@<none>"}),
               Entry(kRef, {"r.example/repeated:1"}), Entry(std::string(kRef).substr(7), {}),
               Entry(kRef2, {}, {"r.example/x@sha256:too-short"})});
  BOOST_TEST(report.listed == 6U);
  BOOST_TEST(report.repeated == 2U);
  BOOST_TEST(report.not_names == 5U);
  BOOST_TEST(report.preloaded == 1U);
  BOOST_TEST(report.closed == 1U);
  BOOST_TEST(!store.Check(kImage, kRef).pull);
  BOOST_TEST(store.Check(kImage, kRef2).pull);
}

BOOST_FIXTURE_TEST_CASE(each_name_counts_and_so_many_are_kept, ClosedStore) {
  Cancel(*store, kImage);
  ListedImage image = Entry(kRef, {});
  for (std::size_t i = 0; i < kMaxNamesPerImage + 100; ++i) {
    image.repo_tags.push_back(std::string(kImage));
  }
  BOOST_TEST(ObservePart(*store, {image}).closed == 1U);
  image = Entry(kRef2, {});
  for (std::size_t i = 0; i < kMaxNamesPerImage + 100; ++i) {
    image.repo_tags.push_back("r.example/a:" + std::to_string(i));
  }
  // One name says it all, be it the last one.
  ListedImage last =
      Entry(Digest('c'), std::vector<std::string>(kMaxNamesPerImage + 1, std::string(kImage)));
  last.repo_tags.push_back("r.example/unexplained:1");
  BOOST_TEST(ObservePart(*store, {image, last}).preloaded == 2U);
  for (const PreloadedImage& entry : Must(store->ListLedger())) {
    BOOST_TEST(entry.names.size() == (entry.image_ref == kRef2 ? kMaxNamesPerImage : 2U));
  }
  BOOST_TEST(Must(store->Verify()).sound);
}

// A hundred thousand of them: histories/evidence.jsonl.
BOOST_FIXTURE_TEST_CASE(of_many_images_the_first_of_each_kind_are_told_and_too_many_are_refused,
                        ClosedStore) {
  Cancel(*store, "r.example/app7:1");
  Images images;
  for (std::size_t i = 0; i < 2000; ++i) {
    const std::string number = std::to_string(i);
    images.push_back(Entry("sha256:" + Sha256Hex(number), {"r.example/app" + number + ":1"}));
  }
  const ClassifyReport report = Observe(*store, images);
  BOOST_TEST(report.preloaded == images.size() - 1);
  BOOST_TEST(report.closed == 1U);
  BOOST_TEST(report.judged.size() == 1000U + 1);
  images.assign(kMaxListedImages + 1, Entry("a", {}));
  ImageList list{.images = std::move(images)};
  list.token = Must(store->BeginList());
  ExpectError(store->ObserveImages(list), ErrorCode::kLimitExceeded);
}

// --- Who may

BOOST_AUTO_TEST_SUITE_END()

// One image under several refs, where histories/evidence.jsonl does not reach:
// how a digest is spelt, ways back, more refs than an image may have.
BOOST_AUTO_TEST_SUITE(spellings)

namespace {

const std::string kHex(64, '1');  // of kRef
const std::string kByDigest = std::string(kName) + "@sha256:" + std::string(64, 'd');

// As the runtime lists it.
ListedImage Entry() {
  return {.id = std::string(kRef), .repo_tags = {std::string(kImage)}, .repo_digests = {kByDigest}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(going_back_opens_nothing_that_is_in_quarantine) {
  for (const bool has_record : {false, true}) {
    ScratchStore store(Mode::kStrict);
    if (has_record) store.Pull(kImage, kByDigest, WithSecret(kSecretA));
    Must(store->AddToLedger(Entry(), "operator", "preloaded"));
    ObservePart(*store, {Entry()});
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "{");
    store.Restart();
    BOOST_TEST_REQUIRE(store.Check(kImage, kHex, Pod(kSecretA)).pull);

    const auto exported = store.scratch() / "exported";
    std::filesystem::create_directory(exported);
    Must(store->Export(
        {.kubelet_directory = exported, .images = std::vector<ListedImage>{Entry()}}));
    for (const std::string& ref : {std::string(kRef), kHex, kByDigest}) {
      const auto file = exported / RecordFile("pulled", ref);
      BOOST_TEST_REQUIRE(std::filesystem::exists(file), ref << " would pass for preloaded");
      const auto record = DecodePulledRecord(ReadFile(file));
      BOOST_TEST((!record || record->credential_mapping.empty()), ref);
    }
  }
}

// One content in as many repositories as a tenant likes, pulled between two lists: one record.
BOOST_FIXTURE_TEST_CASE(more_refs_of_one_image_than_are_kept, ClosedStore) {
  constexpr std::size_t kRefs = kMaxSpellingsPerImage + 3;
  const std::string digest = "@sha256:" + std::string(64, 'd');
  const auto repository = [](std::size_t i) { return "evil.example/x" + std::to_string(i); };
  for (std::size_t i = 0; i < kRefs; ++i) {
    const std::string image = repository(i) + ":v1";
    const std::string ref = repository(i) + digest;
    Must(store->RecordPullIntent({.image = image}));
    Must(store->RecordImagePulled({.image = image, .image_ref = ref}, WithSecret(kSecretA)));
  }
  ListedImage listed = Entry();
  listed.repo_digests = {repository(0) + digest};
  const ClassifyReport report = ObservePart(*store, {listed});
  BOOST_TEST(report.united == 0U);
  BOOST_TEST(report.known == 1U);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  // Each name that was proven is, under every spelling.
  for (const std::size_t i : {std::size_t{0}, kRefs - 1}) {
    BOOST_TEST(!store.Check(repository(i) + ":v1", kRef, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(repository(i) + ":v1", kRef).pull);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// What histories/remembered.jsonl does not reach: how much is remembered of images that are gone
// and of an operator's closings, and made-up times until which no pull ran.
BOOST_AUTO_TEST_SUITE(remembered)

namespace {

const std::string kTool = "r.example/tool:1";

ListedImage Named(std::string_view id, const std::string& tag) {
  return {.id = std::string(id), .repo_tags = {tag}};
}
std::string RefOf(std::size_t i) {
  const std::string number = std::to_string(100'000 + i);
  return "sha256:" + std::string(64 - number.size(), 'a') + number;
}
// On the node throughout.
const ListedImage kOther = Named(Digest('f'), "r.example/other:1");

}  // namespace

// A limit: "What is remembered of images that are gone"
BOOST_AUTO_TEST_CASE(the_oldest_go_first) {
  constexpr std::size_t kMore = 50;
  const TempDir scratch;
  FakeClock clock;
  NodeStoreOptions options = OptionsIn(scratch.path());
  options.clock = clock.AsClock();
  options.boot_clock = clock.AsBootClock();
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  std::vector<ListedImage> images{kOther};
  for (std::size_t i = 0; i < kMaxRemembered + kMore; ++i) {
    images.push_back({.id = RefOf(i)});
  }
  const auto observe = [&](std::vector<ListedImage> list) {
    const ListToken token = Must(store->BeginList());
    Must(store->ObserveImages({.images = std::move(list), .token = token, .complete = true}));
  };
  observe(images);  // without a name: closed
  observe({images.begin(), images.end() - kMore});
  clock.AdvanceSeconds(60);
  observe({kOther});
  const auto records = Must(store->ListRecords());
  BOOST_TEST(records.size() == kMaxRemembered);
  for (const ImagePulledRecord& record : records) {
    BOOST_TEST_REQUIRE((record.absent_since == Timestamp{clock.Now().seconds, 0}));
  }
}

// A limit: "Operators can close 10,000 copies of images"
BOOST_AUTO_TEST_CASE(one_closing_too_many_is_refused) {
  const MemoryDir scratch;
  NodeStoreOptions options = OptionsIn(scratch.path());
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  std::size_t closed = 0;
  // The first so many are listed, and closed.
  const auto close = [&](std::size_t listed, std::size_t until) {
    ImageList list{.token = Must(store->BeginList()), .complete = true};
    for (std::size_t i = 0; i < listed; ++i) {
      list.images.push_back(Named(RefOf(i), "r.example/" + std::to_string(i) + ":1"));
    }
    Must(store->ObserveImages(list));
    for (; closed < until; ++closed) {
      BOOST_TEST_REQUIRE(Must(store->RemoveFromLedger({.image_ref = RefOf(closed)}, "a tenant's")));
    }
  };
  // They are counted if there are as many rows, which takes long.
  close(kMaxClosings - 10, kMaxClosings - 10);
  close(kMaxClosings + 1, kMaxClosings);
  const std::string ref = RefOf(kMaxClosings);
  const ImageCopy last{.image_ref = ref};
  ExpectError(store->RemoveFromLedger(last, "a tenant's"), ErrorCode::kLimitExceeded);
  // An image that has a record needs no other row.
  Must(store->RecordImagePulled({.image = kTool, .image_ref = kRef}, NodeWide()));
  Must(store->AddToLedger({.id = std::string(kRef)}, "an operator", "once more"));
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a tenant's")));
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 1U);
  for (const std::string& back : {std::string(kRef), RefOf(0)}) {
    Must(store->AddToLedger({.id = back}, "an operator", "it comes no more"));
  }
  BOOST_TEST(Must(store->RemoveFromLedger(last, "a tenant's")));
}

// --- The runtime shows that pulls are over

BOOST_FIXTURE_TEST_CASE(quiet_of_another_boot_tells_nothing, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  BootTime quiet = store.clock().Boot();
  quiet.boot_id[0] = static_cast<std::uint8_t>(quiet.boot_id[0] + 1);
  ImageList list{.images = {kOther}, .token = Must(store->BeginList()), .complete = true};
  list.quiet_until = quiet;
  BOOST_TEST(Must(store->ObserveImages(list)).pulls_settled == 0U);
  // Nor one that is newer than the list.
  list.token = Must(store->BeginList());
  list.quiet_until = store.clock().Boot();
  list.quiet_until->nanoseconds += 1;
  BOOST_TEST(Must(store->ObserveImages(list)).pulls_settled == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

// What a kubelet that ran before a first start may still bring. What else a first start makes of
// images that nobody recorded: histories/gaps.jsonl.
BOOST_AUTO_TEST_SUITE(first_start)

namespace {

ListedImage Image(char digit, std::string tag, bool pinned = false) {
  return {.id = Digest(digit), .repo_tags = {std::move(tag)}, .pinned = pinned};
}

const ListedImage kPause = Image('a', "registry.k8s.io/pause:3.10", true);
const ListedImage kBaked = Image('b', "r.example/baked:1");
const ListedImage kUnknown = Image('c', "r.example/unknown:1");
const std::vector<ListedImage> kOnNode = {kPause, kBaked, kUnknown};

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
  ClassifyReport Observe(std::vector<ListedImage> images) {
    ImageList list{.images = std::move(images), .complete = true};
    list.token = Must(store->BeginList());
    return Must(store->ObserveImages(list));
  }
  bool IsOpen(const ListedImage& image) const {
    const ImageCopy copy{.image = image.repo_tags.front(), .image_ref = image.id};
    return !DecisionOf(*store, copy).pull;
  }
  const TempDir scratch;
  const std::filesystem::path kubelet = scratch / "kubelet";
  FakeClock clock;
  NodeStoreOptions options = OptionsIn(scratch.path());
  std::unique_ptr<NodeStore> store;
};

}  // namespace

// The kubelet cancelled a pull, which deletes its intent, and what it brings comes later.
BOOST_AUTO_TEST_CASE(what_a_kubelet_cut_short_before_the_first_take_over_stays_closed) {
  enum class Before { kNothing, kPods, kRecords, kFolders };
  enum class Take { kNewStore, kWitness, kFiles };
  const ListedImage late = Image('d', "r.example/private:1");
  for (const Take take : {Take::kNewStore, Take::kWitness, Take::kFiles}) {
    for (const Before before :
         {Before::kNothing, Before::kPods, Before::kRecords, Before::kFolders}) {
      // An existing store that keeps its witness elsewhere sees the files only.
      if (take == Take::kFiles && before != Before::kRecords) continue;
      for (const bool reboots : {false, true}) {
        NewNode node;
        const NodeStoreOptions takes_over = node.options;
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
          std::vector<ListedImage> images = kOnNode;
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
