// Many threads on one store: made for ThreadSanitizer, and true without it.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/in_threads.h"
#include "tests/support/memory_dir.h"
#include "tests/support/metrics.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(concurrency)

namespace {

constexpr std::size_t kImages = 4;

std::string Image(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }
std::string Ref(std::size_t i) { return "ref-" + std::to_string(i); }

struct OpenStore {
  NodeStore* operator->() const { return store.get(); }
  NodeStore& operator*() const { return *store; }

  MemoryDir scratch;
  std::unique_ptr<NodeStore> store = Must(NodeStore::Open(OptionsIn(scratch.path())));
};

struct WithOpenStore {
  const OpenStore store;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(garbage_collection_beside_pulls, WithOpenStore) {
  std::atomic<std::uint64_t> wrong{0};
  InThreads(4, [&](std::size_t which) {
    for (std::size_t i = 0; i < 40; ++i) {
      if (which == 0) {
        const auto token = store->BeginList();
        if (!token || !store->Prune({}, *token, {.allow_empty = true})) ++wrong;
        continue;
      }
      const std::string ref = Ref(which * 100 + i);
      if (!store->RecordImagePulled({.image = Image(which), .image_ref = ref}, NodeWide())) ++wrong;
      if (which == 1 && !store->PutRecord({ref, std::nullopt, {}})) ++wrong;
      if (which == 2 && !store->DeleteRecord({.image_ref = ref})) ++wrong;
      if (which == 3 && !store->Verify()) ++wrong;
    }
  });
  BOOST_TEST(wrong == 0U);
  BOOST_TEST(Must(store->Verify()).sound);
  // What was written after the last token is still there to be counted.
  BOOST_TEST(Must(store->GetStatistics()).records == Must(store->ListRecords()).size());
}

// Lists are judged while pods ask, pulls begin and end, and an operator changes his mind. What is
// preloaded stays open to all, what a pull may have brought stays closed to strangers.
BOOST_FIXTURE_TEST_CASE(observing_beside_decisions, WithOpenStore) {
  const std::string preloaded = "registry.example/preloaded:v1";
  const std::string undecided = "registry.example/undecided:v1";
  const ImagePullSecret secret = MakeSecret("ns", "pull", "uid", "hash");
  std::vector<ListedImage> images = {
      {.id = "preloaded",
       .repo_tags = {preloaded},
       .repo_digests = {"registry.example/p@sha256:" + std::string(64, 'a')}}};
  Must(store->ObserveImages({.images = images, .token = Must(store->BeginList())}));
  images.push_back({.id = "undecided", .repo_tags = {undecided}});
  for (std::size_t i = 0; i < kImages; ++i) {
    images.push_back({.id = Ref(i), .repo_tags = {Image(i)}});
    Must(store->RecordPullIntent({.image = Image(i)}));
  }
  std::atomic<std::size_t> writing{4};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> judged{0};
  std::atomic<std::uint64_t> decided{0};
  const auto opens = [&](const std::string& image, const std::string& ref) {
    ++decided;
    return !DecisionOf(*store, {.image = image, .image_ref = ref},
                       Pod(MakeSecret("evil", "pull", "uid-2", "guess")))
                .pull;
  };
  InThreads(8, [&](std::size_t which) {
    for (std::size_t i = 0; which < 2 && i < 60; ++i) {
      // Lists by two threads: one may be older than the other's.
      const auto token = store->BeginList();
      if (!token) ++wrong;
      ImageList list{.images = images, .token = *token, .complete = i % 3 == 0};
      list.images.push_back({.id = "once-" + std::to_string(which * 100 + i),
                             .repo_tags = {"registry.example/once:v" + std::to_string(i)}});
      const auto observed = store->ObserveImages(list);
      if (!observed && observed.error().code != ErrorCode::kInvalidArgument) ++wrong;
      if (observed) judged += observed->preloaded + observed->closed;
    }
    for (std::size_t i = 0; which == 2 && i < 100; ++i) {
      const auto pull = store->RecordPullIntent({.image = Image(i % kImages)});
      if (!pull) ++wrong;
      const bool fails = i % 3 != 0;
      const auto ended = fails ? store->RecordImagePullFailed({.image = Image(i % kImages)},
                                                              PullOutcome::kUnknown, *pull)
                               : store->RecordImagePulled(
                                     {.image = Image(i % kImages), .image_ref = Ref(i % kImages)},
                                     WithSecret(secret), {.pull = *pull});
      if (!ended) ++wrong;
    }
    for (std::size_t i = 0; which == 3 && i < 40; ++i) {
      if (!store->AddToLedger({.id = "undecided", .repo_tags = {undecided}}, "a", "b")) ++wrong;
      if (!opens(undecided, "undecided")) ++wrong;
      if (!store->RemoveFromLedger({.image_ref = "undecided"}, "b")) ++wrong;
      if (opens(undecided, "undecided")) ++wrong;
    }
    if (which < 4) {
      --writing;
      return;
    }
    do {
      if (!opens(preloaded, "preloaded") || !opens(Image(0), std::string(64, 'a'))) ++wrong;
      for (std::size_t i = 0; i < kImages; ++i) {
        if (opens(Image(i), Ref(i))) ++wrong;
      }
      if (which == 5 && (!store->ListLedger() || !store->ListOpenPulls())) ++wrong;
      if (which == 5 && (!store->ListRecords() || !store->GetTrust())) ++wrong;
      if (which == 6 && !store->Explain({.image = Image(1), .image_ref = Ref(1)})) ++wrong;
      if (which == 7 && !store->GetStatistics()) ++wrong;
      if (which == 7) static_cast<void>(store->GetMetrics());
    } while (writing > 0);
  });
  BOOST_TEST(wrong == 0U);
  BOOST_TEST(judged > 0U);
  std::uint64_t counted = 0;
  for (const std::uint64_t n : CountedIn(store->GetMetrics()).mustpull_checks) counted += n;
  BOOST_TEST(counted == decided);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
