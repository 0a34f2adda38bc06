// Judging the images of a list, where histories/evidence.jsonl does not reach: random lists and
// pulls against the rule said a second time; what is too long or too many; an observer.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/known_images.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(judging)

namespace {

using Images = std::vector<ImageOnNode>;

ImageOnNode Entry(std::string_view id, std::vector<std::string> tags,
                  std::vector<std::string> digests = {}) {
  return {.id = std::string(id), .repo_tags = std::move(tags), .repo_digests = std::move(digests)};
}

}  // namespace

// Random images and pulls. The rule, said a second time, by the names that NamesGivenBy tells.
BOOST_AUTO_TEST_CASE(an_image_is_preloaded_exactly_if_a_name_of_it_has_no_giver) {
  enum class Verdict { kPreloaded, kClosed, kLeft };
  Draw draw(SeedOfThisRun());
  const std::vector<std::string> pulled = {"r.example/a:1",
                                           "r.example/a:2",
                                           "r.example/b:1",
                                           "r.example/b@" + Digest('b'),
                                           "r.example/a:1@" + Digest('a'),
                                           "short:1",
                                           "Not A Name"};
  const std::vector<std::string> tags = {"r.example/a:1", "r.example/a:2", "r.example/a:3",
                                         "r.example/b:1", "s.example/a:1"};
  const std::vector<std::string> repositories = {"r.example/a", "r.example/b", "s.example/a"};
  std::map<Verdict, std::size_t> verdicts;
  for (int round = 0; round < 150; ++round) {
    const MemoryDir scratch;
    const auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
    const auto cancel_some = [&](std::size_t most) {
      for (std::size_t i = draw.Below(most + 1); i > 0; --i) {
        // The last two give anything.
        Cancel(*store, pulled[draw.Below(draw.OneIn(6) ? pulled.size() : 5)]);
      }
    };
    const auto names_given = [&] {
      std::set<std::string> given;
      for (const OpenPull& one : Must(store->ListOpenPulls())) {
        for (const std::string& name : NamesGivenBy(one, ShortNames::kAnywhere)) given.insert(name);
      }
      return given;
    };
    cancel_some(2);
    const std::set<std::string> given = names_given();
    ImageList list;
    list.token = Must(store->BeginList());
    cancel_some(1);  // younger than the token: what they may have given is for a later list to tell
    const std::set<std::string> given_later = names_given();
    std::map<std::string, Verdict> expected;
    for (int i = 0; i < 3; ++i) {
      ImageOnNode image{.id = "sha256:" + Sha256Hex(std::to_string(i))};
      Verdict verdict = Verdict::kClosed;
      for (std::size_t names = draw.Below(3); names > 0; --names) {
        const bool by_digest = draw.OneIn(2);
        const std::string repository = draw.From(repositories);
        const std::string name =
            by_digest ? repository + "@sha256:" + Sha256Hex(repository + std::to_string(i))
                      : draw.From(tags);
        (by_digest ? image.repo_digests : image.repo_tags).push_back(name);
        const auto gives = [&](const std::set<std::string>& names_of) {
          return names_of.contains("anything") ||
                 names_of.contains(by_digest ? repository + "@…" : name);
        };
        if (gives(given) || verdict == Verdict::kPreloaded) continue;
        verdict = gives(given_later) ? Verdict::kLeft : Verdict::kPreloaded;
      }
      expected[image.id] = verdict;
      ++verdicts[verdict];
      list.images.push_back(std::move(image));
    }
    const ObserveReport report = Must(store->ObserveImages(list));
    for (const JudgedImage& one : report.judged) {
      const Verdict verdict = expected.at(one.image_ref);
      BOOST_TEST(one.preloaded == (verdict == Verdict::kPreloaded), one.because);
      BOOST_TEST((verdict != Verdict::kLeft), one.because);
    }
    BOOST_TEST(report.judged.size() + report.left == expected.size());
    for (const auto& [ref, verdict] : expected) {
      const Decision decision = DecisionOf(*store, {.image = "r.example/a:1", .image_ref = ref});
      BOOST_TEST(decision.pull == (verdict != Verdict::kPreloaded));
    }
  }
  BOOST_TEST(verdicts.size() == 3U);
}

// --- Rule 12

BOOST_FIXTURE_TEST_CASE(an_operators_word_must_be_whole, ClosedStore) {
  const ImageOnNode image = Entry(kRef, {std::string(kImage)});
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
  const ObserveReport report = ObservePart(
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
  ImageOnNode image = Entry(kRef, {});
  for (std::size_t i = 0; i < kMaxNamesPerImage + 100; ++i) {
    image.repo_tags.push_back(std::string(kImage));
  }
  BOOST_TEST(ObservePart(*store, {image}).closed == 1U);
  image = Entry(kRef2, {});
  for (std::size_t i = 0; i < kMaxNamesPerImage + 100; ++i) {
    image.repo_tags.push_back("r.example/a:" + std::to_string(i));
  }
  // One name says it all, be it the last one.
  ImageOnNode last =
      Entry(Digest('c'), std::vector<std::string>(kMaxNamesPerImage + 1, std::string(kImage)));
  last.repo_tags.push_back("r.example/unexplained:1");
  BOOST_TEST(ObservePart(*store, {image, last}).preloaded == 2U);
  for (const LedgerEntry& entry : Must(store->ListLedger())) {
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
  const ObserveReport report = Observe(*store, images);
  BOOST_TEST(report.preloaded == images.size() - 1);
  BOOST_TEST(report.closed == 1U);
  BOOST_TEST(report.judged.size() == 1000U + 1);
  images.assign(kMaxListedImages + 1, Entry("a", {}));
  ImageList list{.images = std::move(images)};
  list.token = Must(store->BeginList());
  ExpectError(store->ObserveImages(list), ErrorCode::kLimitExceeded);
}

// --- Who may

BOOST_FIXTURE_TEST_CASE(an_observer_reads_and_changes_nothing, ClosedStore) {
  Cancel(*store, kImage);
  ObservePart(*store, {Entry(kRef, {"r.example/a:1"}), Entry(kRef2, {})});
  store.Stop();
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  ExpectError(observer->BeginList(), ErrorCode::kNotOwner);
  ExpectError(observer->ObserveImages({.images = {Entry(kRef, {})}}), ErrorCode::kNotOwner);
  ExpectError(observer->AddToLedger(Entry(kRef, {}), "a", "b"), ErrorCode::kNotOwner);
  ExpectError(observer->RemoveFromLedger({.image_ref = kRef}, "a"), ErrorCode::kNotOwner);
  const PullId pull = Must(observer->ListOpenPulls()).at(0).id;
  ExpectError(observer->DropOpenPull(pull, "a"), ErrorCode::kNotOwner);
  BOOST_TEST(Must(observer->ListLedger()).size() == 1U);
  BOOST_TEST(DecisionOf(*observer, {.image = "a", .image_ref = kRef}).reason ==
             Reason::kPolicyKnownPreloaded);
  BOOST_TEST(Must(observer->Explain({.image = kImage, .image_ref = kRef2})).pulls.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
