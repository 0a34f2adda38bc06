// Open pulls where histories/evidence.jsonl does not reach: IDs, the table's bound, lost stores,
// tokens that somebody made up, pulls that end in any order.

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(open_pulls)

namespace {

using Names = std::vector<std::string>;

constexpr std::int64_t kWindow = 7200;
constexpr std::string_view kOther = "registry.example.com/team/other:v1";

std::vector<OpenPull> Pulls(ScratchStore& store) { return Must(store->ListOpenPulls()); }

PullId Begin(ScratchStore& store, std::string_view image = kImage) {
  return Must(store->RecordPullIntent({.image = image}));
}
void Fail(ScratchStore& store, PullFailure failure, PullId pull = {},
          std::string_view image = kImage) {
  Must(store->RecordImagePullFailed({.image = image}, failure, pull));
}
void Succeed(ScratchStore& store, PullId pull = {}, std::string_view image = kImage) {
  Must(store->RecordImagePulled({.image = image, .image_ref = kRef}, WithSecret(kSecretA),
                                {.pull = pull}));
}

// A complete list with the images that have records, and what it settled.
std::uint64_t Settle(NodeStore& store) {
  ImageList list{.token = Must(store.BeginList()), .complete = true};
  for (const ImagePulledRecord& record : Must(store.ListRecords())) {
    list.images.push_back({.id = record.image_ref});
  }
  return Must(store.ObserveImages(list, {.allow_empty = true})).pulls_settled;
}

// As the image of a list that arrived just now.
bool IsPreloaded(ScratchStore& store, std::string_view name) {
  const std::string ref = "sha256:of-" + std::string(name);
  ImageList list{.images = {{.id = ref, .repo_tags = {std::string(name)}}}};
  list.token = Must(store->BeginList());
  const ObserveReport report = Must(store->ObserveImages(list, {.dry_run = true}));
  BOOST_TEST_REQUIRE(report.preloaded + report.closed == 1U);
  return report.preloaded == 1;
}

}  // namespace

// --- IDs

BOOST_FIXTURE_TEST_CASE(each_pull_has_an_id_and_none_is_used_twice, ClosedStore) {
  std::set<PullId> used;
  PullId last;
  for (int i = 0; i < 40; ++i) {
    const PullId id = Begin(store);
    BOOST_TEST((id > last));
    BOOST_TEST(used.insert(id).second);
    last = id;
    switch (i % 5) {
      case 0:
        Succeed(store, id);
        break;
      case 1:
        Fail(store, PullFailure::kNothingTransferred, id);
        break;
      case 2:
        Fail(store, PullFailure::kUnknown, id);
        break;
      case 3:
        store.Restart();
        break;
      default:
        break;
    }
  }
}

BOOST_FIXTURE_TEST_CASE(ids_of_a_lost_store_are_not_used_again, ClosedStore) {
  const PullId before = Begin(store);
  store.Stop();
  std::filesystem::remove_all(store.directory());
  store.Start();
  BOOST_TEST((Begin(store) > before));
}

// An older copy put back knows the pulls before it only.
BOOST_FIXTURE_TEST_CASE(ids_of_a_store_that_is_newer_than_this_copy_are_not_used_again,
                        ClosedStore) {
  Begin(store);
  store.Stop();
  const std::string older = ReadFile(store.directory() / "data.mdb");
  store.Start();
  PullId before;
  for (int i = 0; i < 5; ++i) before = Begin(store);
  store.Stop();
  WriteFile(store.directory() / "data.mdb", older);
  std::filesystem::remove(store.directory() / "lock.mdb");
  store.Start();
  BOOST_TEST(store->recovery_report().distrustful);
  BOOST_TEST((Begin(store) > before));
}

BOOST_FIXTURE_TEST_CASE(under_kubelet_rules_an_image_has_one_intent_with_one_id, KubeletStore) {
  const PullId first = Begin(store);
  BOOST_TEST((first.value != 0));
  BOOST_TEST((Begin(store) == first));
  BOOST_TEST((Begin(store, kOther) != first));
  BOOST_TEST(Pulls(store).size() == 2U);
  Fail(store, PullFailure::kUnknown, first);
  BOOST_TEST(Pulls(store).size() == 2U);
  Succeed(store, first);
  BOOST_TEST_REQUIRE(Pulls(store).size() == 1U);
  BOOST_TEST(Pulls(store)[0].image == kOther);
}

// It may have been dropped or settled since, and its image have come all the same.
BOOST_FIXTURE_TEST_CASE(an_id_of_a_pull_that_is_over_ends_nothing, ClosedStore) {
  Begin(store);
  const PullId other = Begin(store, kOther);
  const PullId over{other.value + 1};
  Begin(store);
  const std::vector<OpenPull> before = Pulls(store);
  Fail(store, PullFailure::kNothingTransferred, over);
  Begin(store);
  Fail(store, PullFailure::kUnknown, over);
  Begin(store);
  Succeed(store, over);
  const std::vector<OpenPull> after = Pulls(store);
  BOOST_TEST(std::includes(after.begin(), after.end(), before.begin(), before.end(),
                           [](const OpenPull& a, const OpenPull& b) { return a.id < b.id; }));
  BOOST_TEST(after.size() == before.size() + 2);
}

BOOST_AUTO_TEST_CASE(an_id_that_never_was_or_is_of_another_string_is_refused) {
  for (const Rules rules : kBothRules) {
    ScratchStore store(rules);
    const PullId own = Begin(store);
    const PullId other = Begin(store, kOther);
    const std::vector<OpenPull> before = Pulls(store);
    const PullId last{~std::uint64_t{0}};
    const PullId next{other.value + (std::uint64_t{1} << 20U)};
    const PullId after{other.value + 1};
    for (const PullId wrong : {other, PullId{1}, PullId{4242}, after, next, last}) {
      const ImageCopy copy = {.image = kImage, .image_ref = kRef};
      const auto pulled = store->RecordImagePulled(copy, NodeWide(), {.pull = wrong});
      const auto failed = store->RecordImagePullFailed(copy, PullFailure::kFailed, wrong);
      ExpectError(pulled, ErrorCode::kNotFound);
      ExpectError(failed, ErrorCode::kNotFound);
      BOOST_TEST(pulled.error().message.find("nothing was changed") != std::string::npos);
    }
    BOOST_TEST(Must(store->ListRecords()).empty());
    BOOST_TEST(Pulls(store).size() == before.size());
    // Nor was it counted as an end.
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, NodeWide(), {.pull = own}));
    BOOST_TEST(Pulls(store).size() == before.size() - 1);
  }
}

// --- How they end

// Pulls of one string at the same time end in any order: the ones that are left are those that did
// not end, and what did not succeed closes.
BOOST_AUTO_TEST_CASE(pulls_of_one_string_end_in_any_order) {
  Draw draw(SeedOfThisRun());
  for (int round = 0; round < 30; ++round) {
    ScratchStore store(Rules::kClosed);
    std::vector<PullId> running;
    std::size_t failed = 0;
    std::size_t unknown = 0;
    for (int i = 0; i < 6; ++i) running.push_back(Begin(store));
    while (running.size() > 2) {
      const auto at = running.begin() + static_cast<std::ptrdiff_t>(draw.Below(running.size()));
      switch (draw.Below(4)) {
        case 0:
          Succeed(store, *at);
          break;
        case 1:
          Fail(store, PullFailure::kNothingTransferred, *at);
          break;
        case 2:
          Fail(store, PullFailure::kFailed, *at);
          ++failed;
          break;
        default:
          Fail(store, PullFailure::kUnknown, *at);
          ++unknown;
      }
      running.erase(at);
      if (draw.OneIn(4)) {
        store.Restart();
        unknown += running.size();
        running.clear();
      }
    }
    std::size_t still_run = 0;
    for (const OpenPull& pull : Pulls(store)) {
      const bool runs = pull.state == PullState::kRunning;
      still_run += runs ? 1 : 0;
      BOOST_TEST(runs != pull.ended.has_value());
      if (pull.state == PullState::kFailed) BOOST_TEST(pull.several == (failed > 1));
      if (pull.state == PullState::kUnknown) BOOST_TEST(pull.several == (unknown > 1));
    }
    BOOST_TEST(still_run == running.size());
    const std::size_t kept = std::min<std::size_t>(failed, 1) + std::min<std::size_t>(unknown, 1);
    BOOST_TEST(Pulls(store).size() == running.size() + kept);
    BOOST_TEST(IsPreloaded(store, kImage) == (running.size() + kept == 0));
  }
}

// --- How they are settled

// A caller that mixes tokens up can't make a pull older than it is.
BOOST_FIXTURE_TEST_CASE(a_token_that_was_drawn_later_than_now, ClosedStore) {
  Begin(store);
  Fail(store, PullFailure::kUnknown);
  ListToken token = Must(store->BeginList());
  token.drawn.nanoseconds += std::int64_t{2} * kWindow * 1'000'000'000;
  ImageList list{.token = token, .complete = true};
  static_cast<void>(store->ObserveImages(list, {.allow_empty = true}));
  list.token->drawn.nanoseconds = std::numeric_limits<std::int64_t>::min();
  static_cast<void>(store->ObserveImages(list, {.allow_empty = true}));
  BOOST_TEST(Pulls(store).size() == 1U);
}

// A script draws a token, the store is lost and made anew: the number would pass for one of its
// own.
BOOST_AUTO_TEST_CASE(a_token_of_another_store) {
  ScratchStore lost(Rules::kClosed);
  ScratchStore store(Rules::kClosed);
  Begin(store);
  Fail(store, PullFailure::kUnknown);
  const ListToken foreign = Must(lost->BeginList());
  const ChangeOptions empty{.allow_empty = true};
  const auto refused = [](const auto& result) {
    return !result && result.error().code == ErrorCode::kInvalidArgument;
  };
  BOOST_TEST(refused(store->ObserveImages({.token = foreign, .complete = true}, empty)));
  BOOST_TEST(refused(store->Prune({}, foreign, empty)));
  BOOST_TEST(refused(store->CleanUpUserNamespaces({}, {}, foreign, empty)));
  BOOST_TEST(Pulls(store).size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(options_and_reasons_have_bounds, ClosedStore) {
  const PullId pull = Begin(store);
  Fail(store, PullFailure::kUnknown);
  ExpectError(store->DropOpenPull(pull, std::string(kMaxReasonBytes + 1, 'r')),
              ErrorCode::kInvalidArgument);
  Must(store->DropOpenPull(pull, std::string(kMaxReasonBytes, 'r')));
  store.Stop();
  OpenOptions options = store.Options({});
  for (const std::chrono::seconds wrong :
       {std::chrono::seconds(-1), std::chrono::seconds::min(), std::chrono::seconds::max()}) {
    options.evidence = {.grace = wrong};
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
    options.evidence = {.window = wrong};
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  }
  options.evidence = {.short_names = static_cast<ShortNames>(7)};
  ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
}

// --- Too many

// A tenant asks for ever new images, and deletes his pods; some are not in the registry at all.
void OpenTooMany(std::size_t one_in_brings_nothing) {
  const MemoryDir scratch;
  FakeClock clock;
  OpenOptions options = OptionsIn(scratch.path());
  options.clock = clock.AsClock();
  options.boot_clock = clock.AsBootClock();
  const auto image = [](std::size_t i) {
    return "registry.example/app" + std::to_string(i) + ":v1";
  };
  const auto store = Must(NodeStore::Open(options));
  std::size_t most = 0;
  const std::size_t asked =
      (kMaxEndedPulls + 200) * one_in_brings_nothing / (one_in_brings_nothing - 1);
  for (std::size_t i = 0; i < asked; ++i) {
    const PullId pull = Must(store->RecordPullIntent({.image = image(i)}));
    const bool nothing = i % one_in_brings_nothing == one_in_brings_nothing - 1;
    Must(store->RecordImagePullFailed(
        {.image = image(i)}, nothing ? PullFailure::kNothingTransferred : PullFailure::kUnknown,
        pull));
    clock.AdvanceSeconds(1);
    if (i % 100 == 0) most = std::max(most, Must(store->ListOpenPulls()).size());
  }
  const std::vector<OpenPull> pulls = Must(store->ListOpenPulls());
  BOOST_TEST(std::max(most, pulls.size()) <= kMaxEndedPulls + 1);
  BOOST_TEST(std::count_if(pulls.begin(), pulls.end(),
                           [](const OpenPull& pull) { return pull.anything; }) == 1);
  const OpenPull& anything =
      *std::find_if(pulls.begin(), pulls.end(), [](const OpenPull& pull) { return pull.anything; });
  BOOST_TEST(anything.several);
  BOOST_TEST((anything.state == PullState::kUnknown));
  std::set<std::string> named;
  for (const OpenPull& pull : pulls) named.insert(pull.image);
  BOOST_TEST(!named.contains(image(0)));
  BOOST_TEST(named.contains(image(kMaxEndedPulls + 198)));
  // What the oldest brings is closed, by whatever name it comes. It waits for the last of them.
  const auto closes = [&](const std::string& name) {
    ImageList list{.images = {{.id = "sha256:late", .repo_tags = {name}}}};
    list.token = Must(store->BeginList());
    return Must(store->ObserveImages(list, {.dry_run = true})).closed == 1;
  };
  BOOST_TEST(closes(image(0)));
  BOOST_TEST(closes("registry.example/never-asked-for:v1"));
  const std::int64_t ended_s = anything.ended_at.nanoseconds / 1'000'000'000;
  clock.AdvanceSeconds(kWindow - 1 - (clock.Boot().nanoseconds / 1'000'000'000 - ended_s));
  Settle(*store);
  BOOST_TEST(closes(image(0)));
  clock.AdvanceSeconds(1);
  Settle(*store);
  BOOST_TEST(!closes(image(0)));
  clock.AdvanceSeconds(kWindow);
  Settle(*store);
  BOOST_TEST(Must(store->ListOpenPulls()).empty());
}

BOOST_AUTO_TEST_CASE(the_oldest_of_too_many_become_one_of_anything) {
  for (const std::size_t one_in_brings_nothing : {kMaxEndedPulls * 2, std::size_t{16}}) {
    BOOST_TEST_CONTEXT(one_in_brings_nothing) { OpenTooMany(one_in_brings_nothing); }
  }
}

// --- What a pull gives

BOOST_AUTO_TEST_CASE(the_names_that_a_pull_gives) {
  struct Row {
    std::string image;
    Names anywhere;
    Names docker_hub;
  };
  const std::string digest = "sha256:" + std::string(64, 'a');
  const std::string hex(64, 'b');
  const Names anything = {"anything"};
  const Names of_id = {"docker.io/library/" + digest, "docker.io/library/sha256@…"};
  const std::vector<Row> rows = {
      {"r.example/x:1", {"r.example/x:1", "r.example/x@…"}, {"r.example/x:1", "r.example/x@…"}},
      {"r.example/x",
       {"r.example/x:latest", "r.example/x@…"},
       {"r.example/x:latest", "r.example/x@…"}},
      {"r.example/x@" + digest, {"r.example/x@…"}, {"r.example/x@…"}},
      {"r.example/x:1@" + digest, {"r.example/x@…"}, {"r.example/x@…"}},
      {"nginx", anything, {"docker.io/library/nginx:latest", "docker.io/library/nginx@…"}},
      {"org/app:1", anything, {"docker.io/org/app:1", "docker.io/org/app@…"}},
      {"localhost/x:1", {"localhost/x:1", "localhost/x@…"}, {"localhost/x:1", "localhost/x@…"}},
      // No runtime pulls by ID. containerd takes the first for a name.
      {digest, of_id, of_id},
      {hex, {}, {}},
      {"Not A Name", anything, anything},
      {"", anything, anything},
  };
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT('"' << row.image << '"') {
      const OpenPull pull{.image = row.image};
      BOOST_TEST(NamesGivenBy(pull, ShortNames::kAnywhere) == row.anywhere,
                 boost::test_tools::per_element());
      BOOST_TEST(NamesGivenBy(pull, ShortNames::kDockerHub) == row.docker_hub,
                 boost::test_tools::per_element());
    }
  }
  BOOST_TEST(NamesGivenBy({.anything = true}, ShortNames::kDockerHub) == anything,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(states_and_short_names_have_names) {
  BOOST_TEST(PullStateName(PullState::kRunning) == "running");
  BOOST_TEST(PullStateName(PullState::kFailed) == "failed");
  BOOST_TEST(PullStateName(PullState::kUnknown) == "unknown");
  BOOST_TEST(PullStateName(static_cast<PullState>(9)) == "");
  for (const ShortNames short_names : {ShortNames::kAnywhere, ShortNames::kDockerHub}) {
    BOOST_TEST((Must(ParseShortNames(ShortNamesName(short_names))) == short_names));
  }
  ExpectError(ParseShortNames("quay.io"), ErrorCode::kInvalidArgument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
