// Random images with several spellings, random operations under any of them: no spelling of an
// image is answered weaker than another, and nothing is open without a reason.
// WAYBILL_SPELLING_STEPS: steps in all. WAYBILL_SEED: play one history again.

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "tests/support/draw.h"
#include "tests/support/drawn_random.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(spellings_property)

namespace {

constexpr std::uint64_t kDefaultSteps = 20'000;
constexpr std::uint64_t kStepsPerHistory = 400;

std::string Hex(Draw& draw) {
  std::string hex;
  for (int i = 0; i < 64; ++i) hex += "0123456789abcdef"[draw.Below(16)];
  return hex;
}

// Why an image may be open: the model.
struct ModelImage {
  std::string hex;  // of its ID
  std::string repository;
  std::vector<std::string> digests;  // "sha256:…"; those of an index are shared
  bool on_node = false;
  bool by_hand = false;      // preloaded, as far as any list can tell
  bool quarantined = false;  // until it is pulled
  // Names to Secrets' UIDs, "" for all pods. Images of one index have them in common: who may pull
  // the index may pull each of its images, and its digest does not tell which one a pull brought.
  std::shared_ptr<std::map<std::string, std::set<std::string>>> proven;

  std::vector<std::string> OwnSpellings(const std::set<std::string>& shared) const {
    std::vector<std::string> spellings = {hex, "sha256:" + hex};
    for (const std::string& digest : digests) {
      if (!shared.contains(digest)) spellings.push_back(repository + "@" + digest);
    }
    return spellings;
  }
  ListedImage Entry(bool id_with_prefix) const {
    ListedImage entry{.id = id_with_prefix ? "sha256:" + hex : hex,
                      .repo_tags = {repository + ":1"}};
    for (const std::string& digest : digests) {
      entry.repo_digests.push_back(repository + "@" + digest);
    }
    return entry;
  }
};

class SpellingsHistory {
 public:
  explicit SpellingsHistory(std::uint64_t seed) : draw_(seed) {
    Say("WAYBILL_SEED=" + std::to_string(seed));
    std::filesystem::create_directory(scratch_ / "kubelet");
    // One index has the manifests of images 0 to 2, which are of one repository.
    const std::string index = "sha256:" + Hex(draw_);
    shared_.insert(index);
    for (int i = 0; i < 6; ++i) {
      ModelImage image;
      image.hex = Hex(draw_);
      const bool is_of_index = i < 3;
      image.repository = fmt::format("r.example/p{}", is_of_index ? 0 : i);
      image.digests.push_back("sha256:" + Hex(draw_));
      if (draw_.OneIn(2)) image.digests.push_back("sha256:" + Hex(draw_));
      if (is_of_index) image.digests.push_back(index);
      image.proven = is_of_index && i > 0
                         ? images_[0].proven
                         : std::make_shared<std::map<std::string, std::set<std::string>>>();
      image.on_node = i < 4;
      image.by_hand = image.on_node;
      Say(fmt::format("{} of {}, digests {}", image.hex.substr(0, 6), image.repository,
                      fmt::join(image.digests, " ")));
      images_.push_back(std::move(image));
    }
    Open();
  }

  void Step() {
    ModelImage& image = images_[draw_.Below(images_.size())];
    switch (draw_.Below(13)) {
      case 0:
      case 1:
        return List(true);
      case 12:
        return drawn_ ? TakeDrawn() : DrawList();
      case 2:
        return List(false);
      case 3:
      case 4:
        return PullSucceeds(image);
      case 5:
        return PullIsCut(image);
      case 6:
        return ImportByHand(image);
      case 7:
        return Add(image);
      case 8:
        return Remove(image);
      case 9:
        return PruneOne(image);
      case 10:
        return draw_.OneIn(3) ? Quarantine(image) : Restart();
      default:
        return Leave(image);
    }
  }

  void Check() {
    // After a complete list every spelling is known.
    List(true);
    for (const ModelImage& image : images_) {
      if (image.on_node) CheckImage(image, true);
    }
  }

 private:
  void Say(std::string text) { said_.push_back(std::move(text)); }
  std::string Said() const {
    std::string text;
    for (const std::string& line : said_) text += "\n  " + line;
    return text;
  }

  void Open() {
    NodeStoreOptions options = OptionsIn(scratch_.path());
    if (!remembers_) options.evidence.remember = std::chrono::seconds(0);
    options.gap = Gap::kNo;
    options.images_on_node = Listed();
    options.allow_empty = true;
    if (std::filesystem::exists(scratch_ / "kubelet" / "image_manager")) {
      options.kubelet_directory = scratch_ / "kubelet";
    }
    store_ = Must(NodeStore::Open(options));
  }
  void Restart() {
    Say("restart");
    Must(store_->Close());
    store_.reset();
    Open();
  }

  std::vector<ListedImage> Listed() {
    std::vector<ListedImage> list;
    for (const ModelImage& image : images_) {
      if (image.on_node) list.push_back(image.Entry(draw_.OneIn(2)));
    }
    return list;
  }
  void List(bool complete) {
    Say(complete ? "complete list" : "partial list");
    const ListToken token = Must(store_->BeginList());
    std::vector<ListedImage> list = Listed();
    if (!complete) std::erase_if(list, [&](const ListedImage&) { return draw_.OneIn(2); });
    Must(store_->ObserveImages({.images = list, .token = token, .complete = complete},
                               {.allow_empty = true}));
    if (complete) ForgetGone();
  }
  // A complete list that other things happen before it is taken.
  void DrawList() {
    Say("a complete list is drawn");
    const ListToken token = Must(store_->BeginList());
    drawn_ = ImageList{.images = Listed(), .token = token, .complete = true};
  }
  void TakeDrawn() {
    Say("the list that was drawn is taken");
    // It may be older than one that was taken meanwhile.
    static_cast<void>(store_->ObserveImages(*drawn_, {.allow_empty = true}));
    drawn_.reset();
  }
  void ForgetGone() {
    for (ModelImage& image : images_) {
      if (image.on_node) continue;
      image.by_hand = false;
      const bool other_is_there = std::any_of(images_.begin(), images_.end(), [&](const auto& one) {
        return one.on_node && one.proven == image.proven;
      });
      if (!other_is_there && !remembers_) image.proven->clear();
    }
  }
  // Only garbage collection: judges nothing.
  void PruneOne(ModelImage& gone) {
    Say("prune");
    gone.on_node = false;
    const ListToken token = Must(store_->BeginList());
    Must(store_->Prune(Listed(), token, {.allow_empty = true}));
    ForgetGone();
  }
  void Leave(ModelImage& image) {
    Say(image.hex.substr(0, 6) + " leaves");
    image.on_node = false;
  }

  std::string SomeName(const ModelImage& image) {
    return draw_.OneIn(4) ? "mirror.example/copy" : image.repository;
  }
  // As a runtime returns it. A digest of the index that two images share is one of these.
  std::string SomeRef(const ModelImage& image) {
    if (draw_.OneIn(2)) return draw_.OneIn(2) ? image.hex : "sha256:" + image.hex;
    return image.repository + "@" + draw_.From(image.digests);
  }

  void PullSucceeds(ModelImage& image) {
    const std::string name = SomeName(image);
    const std::string string = name + ":1";
    const std::string ref = SomeRef(image);
    const PullId pull = Must(store_->RecordPullIntent({.image = string}));
    image.on_node = true;
    PullResult result{.pull = pull};
    if (draw_.OneIn(2)) result.image = image.Entry(draw_.OneIn(2));
    const std::string uid = draw_.OneIn(5) ? "" : "uid-" + std::to_string(draw_.Below(2));
    const ImagePullCredentials credentials =
        uid.empty() ? NodeWide() : WithSecret(MakeSecret("ns", "pull", uid, "hash-" + uid));
    Must(store_->RecordImagePulled({.image = string, .image_ref = ref}, credentials, result));
    (*image.proven)[name].insert(uid);
    for (ModelImage& one : images_) {
      const bool may_be_it = &one == &image || (IsShared(ref) && one.proven == image.proven);
      if (may_be_it) one.quarantined = false;
    }
    Say(fmt::format("{} is pulled as {}, ref {}{}, by {}", image.hex.substr(0, 6), string, ref,
                    result.image ? ", with its entry" : "", uid.empty() ? "anybody" : uid));
  }
  bool IsShared(const std::string& ref) const {
    const std::size_t at = ref.find('@');
    return at != std::string::npos && shared_.contains(ref.substr(at + 1));
  }

  // Nobody records what it brings.
  void PullIsCut(ModelImage& image) {
    if (image.on_node) return;
    Say(image.hex.substr(0, 6) + " arrives by the cut pull of " + image.repository + ":1");
    const PullId pull = Must(store_->RecordPullIntent({.image = image.repository + ":1"}));
    Must(store_->RecordImagePullFailed({.image = image.repository + ":1"}, PullFailure::kUnknown,
                                       pull));
    image.on_node = true;
  }
  void ImportByHand(ModelImage& image) {
    if (image.on_node) return;
    Say(image.hex.substr(0, 6) + " is imported by hand");
    image.on_node = true;
    image.by_hand = true;
  }
  // Operators use any spelling that the store has seen.
  void Add(ModelImage& image) {
    List(true);
    if (!image.on_node) return;
    ListedImage entry = image.Entry(true);
    entry.id = draw_.From(image.OwnSpellings(shared_));
    Say(fmt::format("{} is added to the ledger as {}", image.hex.substr(0, 6), entry.id));
    Must(store_->AddToLedger(entry, "operator", "ours"));
    image.by_hand = true;
  }
  void Remove(ModelImage& image) {
    List(true);
    if (!image.on_node) return;
    const std::string ref = draw_.From(image.OwnSpellings(shared_));
    Say(fmt::format("{} is removed from the ledger as {}", image.hex.substr(0, 6), ref));
    Must(store_->RemoveFromLedger({.image_ref = ref}, "not ours"));
    image.by_hand = false;
  }
  // A kubelet's file that can't be read. Its name is a hash of one spelling.
  void Quarantine(ModelImage& image) {
    const std::string ref = draw_.From(image.OwnSpellings(shared_));
    Say(fmt::format("{} is in quarantine as {}", image.hex.substr(0, 6), ref));
    WriteRecordFile(scratch_ / "kubelet", "pulled", ref, fmt::format("broken {}", said_.size()));
    Restart();
    image.quarantined = true;
  }

  bool MayOpen(const ModelImage& image, const std::string& name, const std::string& uid) const {
    if (image.quarantined) return false;
    if (image.by_hand) return true;
    const auto proven = image.proven->find(name);
    return proven != image.proven->end() &&
           (proven->second.contains(uid) || proven->second.contains(""));
  }

  void CheckImage(const ModelImage& image, bool spellings_are_known) {
    for (const std::string& string :
         {image.repository + ":1", image.repository + "@" + image.digests.front(),
          std::string("mirror.example/copy:1"), "sha256:" + image.hex, std::string("other:1")}) {
      const std::string name(*ImageName(string));
      for (const std::string& uid :
           {std::string("uid-0"), std::string("uid-1"), std::string("no")}) {
        std::optional<bool> first;
        for (const std::string& ref : image.OwnSpellings(shared_)) {
          const Decision decision = DecisionOf(*store_, {.image = string, .image_ref = ref},
                                               Pod(MakeSecret("ns", "pull", uid, "hash-" + uid)));
          if (!decision.pull && !MayOpen(image, name, uid)) {
            BOOST_FAIL(fmt::format("{} asked as {} by {} with the ref {} is open: {}{}",
                                   image.hex.substr(0, 6), string, uid, ref,
                                   ReasonName(decision.reason), Said()));
          }
          if (spellings_are_known && first && *first != decision.pull) {
            BOOST_FAIL(fmt::format("{} asked as {} by {}: the ref {} is answered {} ({}){}",
                                   image.hex.substr(0, 6), string, uid, ref,
                                   decision.pull ? "stricter" : "weaker",
                                   ReasonName(decision.reason), Said()));
          }
          if (!first) first = decision.pull;
        }
      }
    }
  }

 public:
  // Not all spellings are known yet: nothing must be open without a reason all the same.
  void CheckNow() {
    for (const ModelImage& image : images_) {
      if (image.on_node) CheckImage(image, false);
    }
  }

 private:
  Draw draw_;
  // What was proven for an image that is gone counts when it comes back.
  const bool remembers_ = draw_.OneIn(2);
  MemoryDir scratch_;
  std::set<std::string> shared_;  // digests of two images
  std::vector<ModelImage> images_;
  std::optional<ImageList> drawn_;
  std::unique_ptr<NodeStore> store_;
  std::vector<std::string> said_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_spelling_is_answered_weaker) {
  const std::uint64_t seed = SeedOfThisRun();
  const std::uint64_t steps = NumberFromEnv("WAYBILL_SPELLING_STEPS", kDefaultSteps);
  for (std::uint64_t done = 0, i = 0; done < steps; done += kStepsPerHistory, ++i) {
    BOOST_TEST_CHECKPOINT("seed " << seed + i);
    const DrawnRandom random(seed + i);
    SpellingsHistory history(seed + i);
    for (std::uint64_t step = 0; step < kStepsPerHistory; ++step) {
      history.Step();
      history.CheckNow();
      if (step % 4 == 0) history.Check();
    }
  }
  BOOST_TEST(steps > 0U);
}

// Two images of one index, of which the first is in the ledger.
struct TwoOfOneIndex {
  static constexpr const char* kPulled = "r.example/p:1";
  TwoOfOneIndex() {
    const ListToken token = Must(store->BeginList());
    Must(store->ObserveImages({.images = {left}, .token = token, .complete = true}));
    BOOST_TEST(!store.Check(kPulled, left.id).pull);
  }
  // It took its place in the ledger with it.
  void ExpectLeft() {
    BOOST_TEST(IsGone(*store, left.id));
    store.Pull(kPulled, left.id, WithSecret(MakeSecret("ns", "pull", "uid", "hash")));
    BOOST_TEST(store.Check(kPulled, left.id).pull);
  }

  const std::string index = "r.example/p@sha256:" + std::string(64, 'c');
  const ListedImage left{
      .id = "sha256:" + std::string(64, 'a'), .repo_tags = {kPulled}, .repo_digests = {index}};
  ListedImage came{
      .id = "sha256:" + std::string(64, 'b'), .repo_tags = {kPulled}, .repo_digests = {index}};
  ScratchStore store{Mode::kStrict};
};

// Although the list has a digest by which only that one was known.
BOOST_FIXTURE_TEST_CASE(a_digest_of_another_image_keeps_nothing, TwoOfOneIndex) {
  came.repo_tags = {"r.example/p:2"};
  Must(store->Prune({came}, Must(store->BeginList())));
  ExpectLeft();
}

// An image is left for a later list to judge, and shares a digest with the one that left.
BOOST_FIXTURE_TEST_CASE(an_image_to_be_judged_keeps_no_other_in_the_ledger, TwoOfOneIndex) {
  const ListToken before = Must(store->BeginList());
  const PullId pull = Must(store->RecordPullIntent({.image = kPulled}));
  Must(store->RecordImagePullFailed({.image = kPulled}, PullFailure::kUnknown, pull));
  const auto report =
      Must(store->ObserveImages({.images = {came}, .token = before, .complete = true}));
  BOOST_TEST(report.left == 1U);
  ExpectLeft();
}

// A pull by the digest of an index is recorded as one of the only image that had it. That image is
// pulled again by a digest of its own, so that the record has that one; then a list shows both.
// Meanwhile something else may show that the digest is not that image's alone.
BOOST_AUTO_TEST_CASE(a_pull_by_a_digest_that_turns_out_to_be_of_two_images) {
  const std::string index = "r.example/p@sha256:" + std::string(64, 'c');
  const std::string own = "r.example/p@sha256:" + std::string(64, 'd');
  const ListedImage first{.id = "sha256:" + std::string(64, 'a'),
                          .repo_tags = {"r.example/p:1"},
                          .repo_digests = {own, index}};
  const ListedImage second{.id = "sha256:" + std::string(64, 'b'),
                           .repo_tags = {"r.example/p:1"},
                           .repo_digests = {index}};
  const ListedImage third{.id = "sha256:" + std::string(64, 'e'),
                          .repo_tags = {"r.example/p:1"},
                          .repo_digests = {index}};
  const ImagePullSecret secret = MakeSecret("ns", "pull", "uid", "hash");
  enum class Shown { kByThisList, kByAPull, kByAPartialList, kBefore };
  for (int i = 0; i < 8; ++i) {
    const auto shown = static_cast<Shown>(i % 4);
    const bool was_preloaded = i >= 4;
    ScratchStore store(Mode::kStrict);
    const auto observe = [&](const std::vector<ListedImage>& images, bool complete = true) {
      const ListToken token = Must(store->BeginList());
      Must(store->ObserveImages({.images = images, .token = token, .complete = complete}));
    };
    const auto pull_third = [&](const std::optional<ListedImage>& entry) {
      const PullId pull = Must(store->RecordPullIntent({.image = "r.example/p:1"}));
      Must(store->RecordImagePulled({.image = "r.example/p:1", .image_ref = third.id},
                                    WithSecret(secret), {.pull = pull, .image = entry}));
    };
    if (was_preloaded) {
      observe({second});
      BOOST_TEST(!store.Check("r.example/p:1", second.id).pull);
    }
    store.Pull("r.example/p:1", first.id, WithSecret(secret));
    if (shown == Shown::kBefore) {
      pull_third(third);
      observe({first, third});
    } else {
      observe({first});
    }
    const ListToken token = Must(store->BeginList());
    store.Pull("r.example/p:1", index, WithSecret(secret));  // it brings the second
    store.Pull("r.example/p:1", own, WithSecret(secret));
    if (shown == Shown::kBefore) {
      // A list that was made before.
      Must(store->ObserveImages({.images = {first}, .token = token, .complete = true}));
    }
    if (shown == Shown::kByAPull) pull_third(third);
    if (shown == Shown::kByAPartialList) {
      pull_third(std::nullopt);
      observe({first, third}, false);
    }
    observe({first, second});
    BOOST_TEST(store.Check("r.example/p:1", second.id).pull, "variant " << i);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
