// Judging the images of a list, where histories/evidence.jsonl does not reach: which pull gives
// which name, as a table; random lists and pulls against the rule said a second time; arguments
// that are refused; limits.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
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

// Everything that a list may change, in words.
std::string StateOf(const NodeStore& store) {
  std::string text = std::to_string(Must(store.GetStatistics()).commit_sequence);
  for (const auto& record : Must(store.ListRecords())) text += " " + record.image_ref;
  text += ";";
  for (const auto& entry : Must(store.ListLedger())) text += " " + entry.image_ref;
  return text + "; " + std::to_string(Must(store.ListOpenPulls()).size());
}

}  // namespace

// --- Rule 7

BOOST_FIXTURE_TEST_CASE(what_is_judged_is_told, ClosedStore) {
  Cancel(*store, kImage);
  const ObserveReport report =
      ObservePart(*store, {Entry(kRef, {std::string(kImage)}), Entry(kRef2, {"r.example/other:v1"}),
                           Entry(Digest('c'), {})});
  BOOST_TEST(report.listed == 3U);
  BOOST_TEST(report.preloaded == 1U);
  BOOST_TEST(report.closed == 2U);
  BOOST_TEST(report.not_judged_because.empty());
  BOOST_TEST_REQUIRE(report.judged.size() == 3U);
  std::map<std::string, JudgedImage> judged;
  for (const JudgedImage& one : report.judged) judged.emplace(one.image_ref, one);
  const JudgedImage& closed = judged.at(std::string(kRef));
  BOOST_TEST(!closed.preloaded);
  BOOST_TEST(closed.name == kImage);
  BOOST_TEST(closed.because.find(kImage) != std::string::npos, closed.because);
  BOOST_TEST(judged.at(std::string(kRef2)).preloaded);
  BOOST_TEST(judged.at(Digest('c')).name == Digest('c'));
  BOOST_TEST(Must(store->GetRecord({.image_ref = kRef})).closed_because == closed.because);
  const auto ledger = Must(store->ListLedger());
  BOOST_TEST_REQUIRE(ledger.size() == 1U);
  BOOST_TEST(ledger[0].source == "listed");
  BOOST_TEST(ledger[0].names == std::vector<std::string>{"r.example/other:v1"},
             boost::test_tools::per_element());
  BOOST_TEST((ledger[0].since == store.clock().Now()));
  BOOST_TEST(store->GetMetrics().preloaded_images == 1U);
  // Judged once.
  const ObserveReport again = ObservePart(*store, {Entry(kRef, {}), Entry(kRef2, {})});
  BOOST_TEST(again.known == 2U);
  BOOST_TEST(again.judged.empty());
}

BOOST_FIXTURE_TEST_CASE(a_record_of_a_closed_image_forgets_why_when_it_is_pulled, ClosedStore) {
  ObservePart(*store, {Entry(kRef, {})});
  BOOST_TEST(!Must(store->GetRecord({.image_ref = kRef})).closed_because.empty());
  store.Restart({Entry(kRef, {})});
  BOOST_TEST(!Must(store->GetRecord({.image_ref = kRef})).closed_because.empty());
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  BOOST_TEST(Must(store->GetRecord({.image_ref = kRef})).closed_because.empty());
  BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  BOOST_TEST(store.Check(kImage, kRef).pull);
}

// --- Rule 8

BOOST_AUTO_TEST_CASE(which_pull_gives_which_name) {
  const std::string a = "@" + Digest('a');
  const std::string b = "@" + Digest('b');
  const std::string c = "@" + Digest('c');
  struct Row {
    std::string pull;
    std::vector<std::string> gives;
    std::vector<std::string> not_these;
  };
  const std::vector<Row> rows = {
      {"r.example/x:1",
       {"r.example/x:1", "r.example/x" + a, "R.Example/x:1"},
       {"r.example/x:2", "r.example/x/y:1", "r.example/xx:1", "s.example/x:1", "x:1",
        "r.example:443/x:1", "r.example/y" + c}},
      {"r.example/x", {"r.example/x:latest", "r.example/x" + a}, {"r.example/x:1"}},
      {"r.example/x:1" + a, {"r.example/x" + a, "r.example/x" + b}, {"r.example/x:1"}},
      {"r.example/x" + a, {"r.example/x" + b}, {"r.example/x:latest", "r.example/y" + c}},
      {"docker.io/nginx:1",
       {"nginx:1", "docker.io/library/nginx:1", "index.docker.io/library/nginx:1", "nginx" + a},
       {"docker.io/nginx/nginx:1", "quay.io/nginx:1"}},
      {"localhost/x:1", {"localhost/x:1"}, {"docker.io/localhost/x:1", "localhost:5000/x:1"}},
  };
  for (const ShortNames short_names : {ShortNames::kAnywhere, ShortNames::kDockerHub}) {
    for (const Row& row : rows) {
      const MemoryDir scratch;
      OpenOptions options = OptionsIn(scratch.path());
      options.evidence.short_names = short_names;
      const auto store = Must(NodeStore::Open(options));
      Cancel(*store, row.pull);
      int i = 0;
      const auto is_preloaded = [&](const std::string& name) {
        const bool by_digest = name.find('@') != std::string::npos;
        const std::string id = "sha256:" + Sha256Hex(std::to_string(i++));
        const ObserveReport report =
            ObservePart(*store, {by_digest ? Entry(id, {}, {name}) : Entry(id, {name})});
        BOOST_TEST_REQUIRE(report.preloaded + report.closed == 1U);
        return report.preloaded == 1;
      };
      BOOST_TEST_CONTEXT(row.pull) {
        for (const std::string& name : row.gives) BOOST_TEST(!is_preloaded(name), name);
        for (const std::string& name : row.not_these) BOOST_TEST(is_preloaded(name), name);
      }
    }
  }
}

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

// --- Rule 7, pinned

BOOST_AUTO_TEST_CASE(a_pinned_image_is_closed_by_pulls_of_its_names_only) {
  for (const bool pinned : {true, false}) {
    ScratchStore store(Rules::kClosed);
    Cancel(*store, "pause:typo");
    Must(store->ClearDistrust("a pull of anything"));
    Cancel(*store, "registry.k8s.io/pause:3.9");
    Images images = {Entry(kRef, {"registry.k8s.io/pause:3.10"}),
                     Entry(kRef2, {"registry.k8s.io/pause:3.9"}), Entry(Digest('c'), {})};
    for (ImageOnNode& image : images) image.pinned = pinned;
    const ObserveReport report = ObservePart(*store, images);
    BOOST_TEST(report.preloaded == (pinned ? 1U : 0U));
    BOOST_TEST(!store.Check("registry.k8s.io/pause:3.10", kRef).pull == pinned);
    BOOST_TEST(store.Check("registry.k8s.io/pause:3.9", kRef2).pull);
    BOOST_TEST(store.Check("registry.k8s.io/pause:3.9", Digest('c')).pull);
  }
}

// --- Rule 9

// A limit: "A distrustful store"
BOOST_AUTO_TEST_CASE(clearing_distrust_by_a_list) {
  for (const bool adopt : {false, true}) {
    ScratchStore store(Rules::kClosed);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    std::filesystem::remove_all(store.directory());
    store.Start();
    BOOST_TEST_REQUIRE(store->recovery_report().distrustful);
    const Images images = {Entry(kRef, {std::string(kImage)}), Entry(kRef2, {"r.example/x:1"})};
    const ObserveReport left = Observe(*store, images);
    BOOST_TEST(left.left == 2U);
    BOOST_TEST(!left.not_judged_because.empty());
    BOOST_TEST(store.Check("r.example/x:1", kRef2).reason == Reason::kStoreDistrustful);

    ExpectError(store->ClearDistrust("seen", {.adopt = true}), ErrorCode::kInvalidArgument);
    // Nothing is known that an empty list could delete, but it would close nothing either.
    ClearOptions options{.images_on_node = images, .adopt = adopt};
    options.dry_run = true;
    BOOST_TEST(Must(store->ClearDistrust("seen", options)).judged.size() == 2U);
    BOOST_TEST(Must(store->GetTrust()).distrustful);
    options.dry_run = false;
    const ObserveReport report = Must(store->ClearDistrust("seen", options));
    BOOST_TEST(report.preloaded == (adopt ? 2U : 0U));
    BOOST_TEST(report.closed == (adopt ? 0U : 2U));
    BOOST_TEST(!Must(store->GetTrust()).distrustful);
    for (const std::string_view ref : {kRef, kRef2}) {
      Expect(store.Check(kImage, ref), !adopt,
             adopt ? CheckResult::kCredentialPolicyAllowed : CheckResult::kMustAuthenticate,
             adopt ? Reason::kPolicyKnownPreloaded : Reason::kEntryWithoutCredentials);
    }
    for (const LedgerEntry& entry : Must(store->ListLedger())) {
      BOOST_TEST(entry.source == "adopted");
      BOOST_TEST(entry.reason == "seen");
    }
    // What arrives afterwards may be of a pull that nobody knows of.
    BOOST_TEST(ObservePart(*store, {Entry(Digest('d'), {"r.example/late:1"})}).closed == 1U);
    const auto pulls = Must(store->ListOpenPulls());
    BOOST_TEST_REQUIRE(pulls.size() == 1U);
    BOOST_TEST(pulls[0].anything);
  }
}

// --- Rule 11

// A limit: "A list of images must be complete"
BOOST_FIXTURE_TEST_CASE(a_complete_list_removes_what_it_lacks_and_was_there_before, ClosedStore) {
  const ListToken early = Must(store->BeginList());
  store.Pull(kImage, Digest('c'), WithSecret(kSecretA));
  ObservePart(*store, {Entry(kRef, {"r.example/a:1"}), Entry(kRef2, {})});
  const ImageList old{.images = {Entry(Digest('d'), {})}, .token = early, .complete = true};
  ExpectError(store->ObserveImages(old), ErrorCode::kInvalidArgument);
  const ListToken token = Must(store->BeginList());
  Must(store->AddToLedger(Entry(Digest('e'), {}), "operator", "newer than the list"));
  const ObserveReport report = Must(
      store->ObserveImages({.images = {Entry(Digest('c'), {})}, .token = token, .complete = true}));
  BOOST_TEST(report.preloaded_removed == 1U);
  BOOST_TEST(report.records_removed == 1U);
  const auto ledger = Must(store->ListLedger());
  BOOST_TEST(std::count_if(ledger.begin(), ledger.end(),
                           [](const LedgerEntry& entry) { return !entry.absent_since; }) == 1);
  BOOST_TEST(!store.Check(kImage, Digest('c'), Pod(kSecretA)).pull);
  BOOST_TEST(store.Check("r.example/a:1", kRef).reason == Reason::kNoEvidence);
  BOOST_TEST(store.Check("r.example/a:1", kRef2).pull);
}

BOOST_FIXTURE_TEST_CASE(a_partial_list_removes_nothing, ClosedStore) {
  ObservePart(*store, {Entry(kRef, {"r.example/a:1"}), Entry(kRef2, {})});
  const ObserveReport report = ObservePart(*store, {Entry(Digest('c'), {"r.example/c:1"})});
  BOOST_TEST(report.preloaded_removed + report.records_removed == 0U);
  BOOST_TEST(!store.Check("r.example/a:1", kRef).pull);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
}

// --- Rule 12

BOOST_FIXTURE_TEST_CASE(lists_of_others_name_their_source_and_close_nothing, ClosedStore) {
  Cancel(*store, kImage);
  ImageList list{.images = {Entry(kRef, {std::string(kImage)}), Entry(kRef2, {"r.example/a:1"})},
                 .source = "prefetcher"};
  list.token = Must(store->BeginList());
  list.complete = true;
  ExpectError(store->ObserveImages(list), ErrorCode::kInvalidArgument);
  list.complete = false;
  const ObserveReport report = Must(store->ObserveImages(list));
  BOOST_TEST(report.preloaded == 1U);
  BOOST_TEST(report.closed == 0U);
  BOOST_TEST(report.left == 1U);
  BOOST_TEST(Must(store->ListLedger()).at(0).source == "prefetcher");
  BOOST_TEST(store.Check(kImage, kRef).reason == Reason::kNoEvidence);
  // One that can't be placed in time enters nothing.
  list.images = {Entry(Digest('c'), {"r.example/c:1"})};
  list.token.reset();
  BOOST_TEST(Must(store->ObserveImages(list)).left == 1U);
  list.source.assign(kMaxReasonBytes + 1, 's');
  ExpectError(store->ObserveImages(list), ErrorCode::kInvalidArgument);
}

BOOST_FIXTURE_TEST_CASE(an_operators_word_is_not_judged_but_must_be_whole, ClosedStore) {
  Cancel(*store, kImage);
  const ImageOnNode image = Entry(kRef, {std::string(kImage), "Not A Name"});
  ExpectError(store->AddToLedger({}, "operator", "why"), ErrorCode::kInvalidArgument);
  for (const std::string& wrong : {std::string(), std::string(kMaxReasonBytes + 1, 'r')}) {
    ExpectError(store->AddToLedger(image, wrong, "why"), ErrorCode::kInvalidArgument);
    ExpectError(store->AddToLedger(image, "operator", wrong), ErrorCode::kInvalidArgument);
    ExpectError(store->RemoveFromLedger({.image_ref = kRef}, wrong), ErrorCode::kInvalidArgument);
  }
  ExpectError(store->AddToLedger({.id = std::string(kMaxImageRefBytes + 1, 'a')}, "a", "b"),
              ErrorCode::kLimitExceeded);
  ExpectError(store->AddToLedger({.id = "a", .runtime_handler = "of-no-node"}, "operator", "why"),
              ErrorCode::kInvalidArgument);
  ExpectError(store->RemoveFromLedger({}, "why"), ErrorCode::kInvalidArgument);
  BOOST_TEST(Must(store->ListLedger()).empty());
  BOOST_TEST(!Must(store->RemoveFromLedger({.image_ref = kRef}, "there is none")));
  BOOST_TEST(Must(store->GetTrust()).journal.empty());

  Must(store->AddToLedger(image, "operator", "why", {.dry_run = true}));
  BOOST_TEST(Must(store->ListLedger()).empty());
  Must(store->AddToLedger(image, "operator", "why"));
  const auto ledger = Must(store->ListLedger());
  BOOST_TEST_REQUIRE(ledger.size() == 1U);
  BOOST_TEST(ledger[0].source == "operator");
  BOOST_TEST(ledger[0].reason == "why");
  BOOST_TEST(ledger[0].names == std::vector<std::string>{std::string(kImage)},
             boost::test_tools::per_element());
  BOOST_TEST(!store.Check(kImage, kRef).pull);

  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a mistake", {.dry_run = true})));
  BOOST_TEST(!store.Check(kImage, kRef).pull);
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a mistake")));
  BOOST_TEST(store.Check(kImage, kRef).reason == Reason::kEntryWithoutCredentials);
  BOOST_TEST((Must(store->GetTrust()).journal.at(0).action == TrustAction::kNote));
  // It is not judged anew.
  BOOST_TEST(ObservePart(*store, {Entry(kRef, {"r.example/never-pulled:v1"})}).known == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_bad_sector_in_observed_preloaded_is_no_evidence, ClosedStore) {
  ImagePreloadedRecord seen;
  seen.image_ref = kRef;
  seen.observed_images = {"r.example/a"};
  WriteRecordFile(store.kubelet_directory(), "observed-preloaded", kRef,
                  EncodePreloadedRecord(seen));
  WriteRecordFile(store.kubelet_directory(), "observed-preloaded", kRef2, "{");
  store.Stop();
  OpenOptions options = store.Options({});
  options.gap = Gap::kNo;
  const auto opened = Must(NodeStore::Open(options));
  const auto must_pull = [&](std::string_view ref) {
    return DecisionOf(*opened, {.image = "r.example/a:1", .image_ref = ref}).pull;
  };
  BOOST_TEST(!must_pull(kRef));
  BOOST_TEST(Must(opened->ListLedger()).at(0).source == "observed-preloaded");
  BOOST_TEST(must_pull(kRef2));
}

// --- Bad input

BOOST_AUTO_TEST_CASE(an_empty_list_is_refused_whatever_it_would_delete) {
  const std::vector<std::function<void(NodeStore&)>> contents = {
      [](NodeStore& store) { ObservePart(store, {Entry(kRef, {})}); },
      [](NodeStore& store) { ObservePart(store, {Entry(kRef, {"r.example/a:1"})}); },
      [](NodeStore& store) { Cancel(store, kImage); }};
  for (const auto& fill : contents) {
    ScratchStore store(Rules::kClosed);
    store.RememberNothing();
    fill(*store);
    const std::string before = StateOf(*store);
    ImageList list{.token = Must(store->BeginList()), .complete = true};
    const auto refused = store->ObserveImages(list);
    ExpectError(refused, ErrorCode::kInvalidArgument);
    BOOST_TEST((refused.error().hint_code == Hint::kAllowEmpty));
    BOOST_TEST(StateOf(*store) == before);
    ExpectError(store->ClearDistrust("seen", {.images_on_node = Images()}),
                ErrorCode::kInvalidArgument);
    BOOST_TEST(StateOf(*store) == before);
    list.complete = false;
    Must(store->ObserveImages(list));
    list.complete = true;
    Must(store->ObserveImages(list, {.allow_empty = true}));
    BOOST_TEST(Must(store->ListRecords()).empty());
    BOOST_TEST(Must(store->ListLedger()).empty());
  }
}

// A runtime that starts up lists nothing.
BOOST_FIXTURE_TEST_CASE(an_empty_list_prunes_no_ledger, ClosedStore) {
  ObservePart(*store, {Entry(kRef, {"r.example/a:1"})});
  const ListToken token = Must(store->BeginList());
  ExpectError(store->Prune({}, token), ErrorCode::kInvalidArgument);
  BOOST_TEST(!store.Check("r.example/a:1", kRef).pull);
  BOOST_TEST(Must(store->Prune({}, token, {.allow_empty = true})).preloaded_removed == 1U);
}

BOOST_FIXTURE_TEST_CASE(tokens_that_tell_nothing, ClosedStore) {
  const ListToken first = Must(store->BeginList());
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  const ListToken second = Must(store->BeginList());
  ImageList list{.images = {Entry(kRef2, {"r.example/a:1"})}, .token = second};
  Must(store->ObserveImages(list));
  const std::string before = StateOf(*store);
  list.images = {Entry(Digest('c'), {"r.example/c:1"})};
  for (const std::uint64_t commit : {first.commit, std::uint64_t{0}, ~std::uint64_t{0},
                                     Must(store->GetStatistics()).commit_sequence + 1}) {
    list.token->commit = commit;
    const auto refused = store->ObserveImages(list);
    ExpectError(refused, ErrorCode::kInvalidArgument);
    BOOST_TEST((refused.error().hint_code == Hint::kBeginList));
    BOOST_TEST(StateOf(*store) == before);
  }
  // It outlives a restart.
  store.Restart();
  list.token = first;
  ExpectError(store->ObserveImages(list), ErrorCode::kInvalidArgument);
}

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

BOOST_FIXTURE_TEST_CASE(a_digest_of_two_images_is_a_spelling_of_neither, ClosedStore) {
  const std::string index = "r.example/x@" + Digest('a');
  store.Pull("r.example/x:1", index, WithSecret(kSecretA));
  const ObserveReport report = ObservePart(
      *store, {Entry(kRef, {"r.example/x:1"}, {index}),
               Entry(kRef2, {"r.example/by-hand:1"}, {index, "r.example/x@" + Digest('b')})});
  BOOST_TEST(report.shared_digests == std::vector<std::string>{Digest('a')},
             boost::test_tools::per_element());
  // The record may be of either.
  BOOST_TEST(report.preloaded == 0U);
  for (const std::string_view ref : {kRef, kRef2}) {
    BOOST_TEST(store.Check("r.example/x:1", ref).pull);
    BOOST_TEST(store.Check("r.example/x:1", ref, Pod(kSecretA)).pull);
  }
  // A digest that one of them has alone spells that one.
  BOOST_TEST(store.Check("r.example/by-hand:1", "r.example/x@" + Digest('b')).reason ==
             store.Check("r.example/by-hand:1", kRef2).reason);
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_images_and_more_than_are_allowed) {
  const MemoryDir scratch;
  OpenOptions options = OptionsIn(scratch.path());
  options.map_bytes = kDefaultMapBytes;
  const auto store = Must(NodeStore::Open(options));
  constexpr std::size_t kImages = 100'000;
  Images images;
  for (std::size_t i = 0; i < kImages; ++i) {
    const std::string number = std::to_string(i);
    images.push_back(Entry("sha256:" + Sha256Hex(number), {"r.example/app" + number + ":1"}));
  }
  Cancel(*store, "r.example/app7:1");
  const ObserveReport report = Observe(*store, images);
  BOOST_TEST(report.preloaded == kImages - 1);
  BOOST_TEST(report.closed == 1U);
  // The first of each kind.
  BOOST_TEST(report.judged.size() == 1000U + 1);
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == kImages - 1);
  BOOST_TEST(Observe(*store, images).known == kImages);
  BOOST_TEST(!DecisionOf(*store, {.image = "r.example/app8:1", .image_ref = images[8].id}).pull);
  BOOST_TEST(DecisionOf(*store, {.image = "r.example/app7:1", .image_ref = images[7].id}).pull);
  images.resize(1);
  const ObserveReport gone = Observe(*store, images);
  BOOST_TEST(gone.preloaded_removed == kImages - 2);
  BOOST_TEST(gone.records_removed == 1U);
  BOOST_TEST(Must(store->Verify()).sound);

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

BOOST_FIXTURE_TEST_CASE(the_kubelet_rules_have_no_ledger, KubeletStore) {
  Must(store->RecordPullIntent({.image = kImage}));
  const std::string before = StateOf(*store);
  const ObserveReport report = Observe(*store, {Entry(kRef, {})});
  BOOST_TEST(!report.not_judged_because.empty());
  ExpectError(store->AddToLedger(Entry(kRef, {}), "a", "b"), ErrorCode::kInvalidArgument);
  ExpectError(store->RemoveFromLedger({.image_ref = kRef}, "a"), ErrorCode::kInvalidArgument);
  BOOST_TEST(Must(store->Explain({.image = kImage, .image_ref = kRef})).pulls.size() == 1U);
  BOOST_TEST(StateOf(*store) == before);
}

// The kubelet's replay closes it, too.
BOOST_AUTO_TEST_CASE(at_a_first_start_an_image_with_an_intent_is_not_presumed_preloaded) {
  const MemoryDir scratch;
  const std::string image = "docker.io/testing/test:something";
  WriteRecordFile(scratch / "kubelet", "pulling", image, EncodePullIntent({.image = image}));
  OpenOptions options = OptionsIn(scratch.path());
  options.kubelet_directory = scratch / "kubelet";
  options.images_on_node = Images{Entry(Digest('1'), {image, "docker.io/testing/test:second"}),
                                  Entry(Digest('2'), {"docker.io/testing/test:third"})};
  const auto store = Must(NodeStore::Open(options));
  BOOST_TEST(DecisionOf(*store, {.image = image, .image_ref = Digest('1')}).pull);
  BOOST_TEST(!DecisionOf(*store, {.image = image, .image_ref = Digest('2')}).pull);
}

// Entries that were made under the closed rules do not open under the kubelet's, and the time
// between is a gap.
BOOST_FIXTURE_TEST_CASE(a_ledger_does_not_count_under_kubelet_rules, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Must(store->AddToLedger(Entry(kRef, {}), "operator", "also"));
  BOOST_TEST(!store.Check(kImage, kRef).pull);
  store.Stop();
  OpenOptions options = store.Options({});
  options.rules = Rules::kKubelet;
  options.images_on_node.reset();
  {
    const auto kubelet = Must(NodeStore::Open(options));
    BOOST_TEST(DecisionOf(*kubelet, {.image = kImage, .image_ref = kRef}).pull);
  }
  options.rules = Rules::kClosed;
  const auto closed = Must(NodeStore::Open(options));
  BOOST_TEST(closed->recovery_report().after_gap);
  BOOST_TEST(DecisionOf(*closed, {.image = "a", .image_ref = kRef2}).pull);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
