// What is remembered of images that are gone, what the runtime says of images that nobody pulled,
// and of pulls that are over (NodeStore::ObserveImages).

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(remembered)

namespace {

constexpr std::int64_t kDay = 86400;
const std::string kTool = "r.example/tool:1";

ImageOnNode Named(std::string_view id, const std::string& tag) {
  return {.id = std::string(id), .repo_tags = {tag}};
}
ImageOnNode Imported(std::string_view id, const std::string& tag) {
  ImageOnNode image = Named(id, tag);
  image.imported = true;
  return image;
}
std::string RefOf(std::size_t i) {
  const std::string number = std::to_string(100'000 + i);
  return "sha256:" + std::string(64 - number.size(), 'a') + number;
}
// On the node throughout.
const ImageOnNode kOther = Named(Digest('f'), "r.example/other:1");

bool IsOpen(ScratchStore& store, std::string_view image, std::string_view ref) {
  return !store.Check(image, ref).pull;
}
bool IsOpenTo(ScratchStore& store, const ImagePullSecret& secret) {
  return !store.Check(kImage, kRef, Pod(secret)).pull;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_proven_counts_when_the_image_comes_back) {
  for (const bool is_empty : {false, true}) {
    ScratchStore store(Rules::kClosed);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const auto all = std::vector{kOther, Named(kRef, std::string(kImage))};
    Observe(*store, all);
    const ObserveReport gone =
        Observe(*store, is_empty ? std::vector<ImageOnNode>() : std::vector{kOther});
    BOOST_TEST(gone.records_removed == 1U);
    BOOST_TEST(Must(store->GetRecord({.image_ref = kRef})).absent_since.has_value());
    BOOST_TEST(Observe(*store, all).known == 2U);
    BOOST_TEST(!Must(store->GetRecord({.image_ref = kRef})).absent_since.has_value());
    BOOST_TEST(IsOpenTo(store, kSecretA));
    BOOST_TEST(!IsOpenTo(store, kSecretB));
  }
}

// An operator imports it again by hand. Without the runtime's word it is what it was.
BOOST_AUTO_TEST_CASE(an_import_opens_what_was_gone) {
  for (const bool imported : {false, true}) {
    for (const bool was_gone : {false, true}) {
      ScratchStore store(Rules::kClosed);
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      Observe(*store, {kOther, Named(kRef, std::string(kImage))});
      if (was_gone) Observe(*store, {kOther});
      ImageOnNode image = Named(kRef, std::string(kImage));
      image.imported = imported;
      Observe(*store, {kOther, image});
      BOOST_TEST(IsOpenTo(store, kSecretA));
      BOOST_TEST(IsOpenTo(store, kSecretB) == (imported && was_gone));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_pull_begins_anew, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  Observe(*store, {kOther});
  store.Pull(kImage, kRef, WithSecret(kSecretB));
  BOOST_TEST(IsOpenTo(store, kSecretB));
  BOOST_TEST(!IsOpenTo(store, kSecretA));
}

BOOST_FIXTURE_TEST_CASE(what_is_forgotten_meanwhile_does_not_come_back, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  Observe(*store, {kOther});
  Must(store->ForgetNamespace(kSecretA.namespace_name));
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  BOOST_TEST(!IsOpenTo(store, kSecretA));
}

// Presumed stays presumed: a wrong list proves nothing.
BOOST_AUTO_TEST_CASE(what_was_preloaded_comes_back_as_it_was) {
  ScratchStore store(Rules::kClosed, {}, {kOther, Named(kRef, kTool)});
  BOOST_TEST(IsPresumed(Must(store->ListLedger()).at(0)));
  Observe(*store, {kOther});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
  BOOST_TEST(IsGone(*store, kRef));
  BOOST_TEST(!IsGone(*store, kOther.id));
  BOOST_TEST(Observe(*store, {kOther, Named(kRef, kTool)}).known == 2U);
  BOOST_TEST(IsOpen(store, kTool, kRef));
  BOOST_TEST(IsPresumed(Must(store->ListLedger()).at(0)));
}

// A pull of its name keeps it away, one of a short name, which may be an alias of its own, and what
// nobody saw.
BOOST_AUTO_TEST_CASE(what_a_pull_may_have_brought_does_not_come_back_preloaded) {
  const auto is_open_after = [](const auto& happens) {
    ScratchStore store(Rules::kClosed);
    Observe(*store, {kOther, Named(kRef, kTool)});
    Observe(*store, {kOther});
    happens(store);
    Observe(*store, {kOther, Named(kRef, kTool)});
    return IsOpen(store, kTool, kRef);
  };
  const auto look_away = [](ScratchStore& store) { Must(store->NoteGap("somebody looked away")); };
  BOOST_TEST(is_open_after([](ScratchStore& store) { Cancel(*store, "r.example/else:1"); }));
  BOOST_TEST(!is_open_after([](ScratchStore& store) { Cancel(*store, "short"); }));
  BOOST_TEST(!is_open_after([](ScratchStore& store) { Cancel(*store, kTool); }));
  BOOST_TEST(!is_open_after(look_away));
  // The gap is closed, and a pull of that time may still bring it.
  BOOST_TEST(!is_open_after([&](ScratchStore& store) {
    look_away(store);
    Observe(*store, {kOther});
  }));
}

BOOST_FIXTURE_TEST_CASE(another_name_is_judged_as_ever, ClosedStore) {
  Observe(*store, {kOther, Named(kRef, kTool)});
  Observe(*store, {kOther});
  Cancel(*store, "r.example/private:1");
  Observe(*store, {kOther, Named(kRef, "r.example/private:1")});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
}

BOOST_FIXTURE_TEST_CASE(a_pull_makes_an_end_of_what_was_preloaded, ClosedStore) {
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  Observe(*store, {kOther});
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  BOOST_TEST(IsOpenTo(store, kSecretA));
  BOOST_TEST(!IsOpenTo(store, kSecretB));
}

BOOST_FIXTURE_TEST_CASE(nothing_is_remembered_for_ever, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Observe(*store, {kOther, Named(kRef, std::string(kImage)), Named(kRef2, kTool)});
  Observe(*store, {kOther});
  store.clock().AdvanceSeconds(30 * kDay - 1);
  Observe(*store, {kOther});
  BOOST_TEST(store->GetRecord({.image_ref = kRef}).has_value());
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 2U);
  store.clock().AdvanceSeconds(1);
  const ObserveReport report = Observe(*store, {kOther});
  BOOST_TEST(report.records_removed == 0U);  // it was gone before
  BOOST_TEST(!store->GetRecord({.image_ref = kRef}).has_value());
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 1U);
}

// An earlier version takes every ledger entry for one of an image on the node.
BOOST_FIXTURE_TEST_CASE(no_earlier_version_opens_by_what_is_remembered, ClosedStore) {
  Observe(*store, {kOther, Named(kRef, kTool)});
  Observe(*store, {kOther});
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 2U);
  store.Stop();
  Must(Migrate({.directory = store.directory(), .to = 6, .accept_loss = true}));
  store.Start();
  BOOST_TEST(Must(store->GetStatistics()).ledger_entries == 1U);
}

// A limit: "What is remembered of images that are gone"
BOOST_AUTO_TEST_CASE(the_oldest_go_first) {
  constexpr std::size_t kMore = 50;
  const TempDir scratch;
  FakeClock clock;
  OpenOptions options = OptionsIn(scratch.path());
  options.clock = clock.AsClock();
  options.boot_clock = clock.AsBootClock();
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  std::vector<ImageOnNode> images{kOther};
  for (std::size_t i = 0; i < kMaxRemembered + kMore; ++i) {
    images.push_back({.id = RefOf(i)});
  }
  const auto observe = [&](std::vector<ImageOnNode> list) {
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
  OpenOptions options = OptionsIn(scratch.path());
  options.map_bytes = std::uint64_t{2} << 30U;
  const auto store = Must(NodeStore::Open(options));
  ImageList list{.token = Must(store->BeginList()), .complete = true};
  for (std::size_t i = 0; i <= kMaxClosings; ++i) {
    list.images.push_back(Named(RefOf(i), "r.example/" + std::to_string(i) + ":1"));
  }
  Must(store->ObserveImages(list));
  for (std::size_t i = 0; i < kMaxClosings; ++i) {
    BOOST_TEST_REQUIRE(Must(store->RemoveFromLedger({.image_ref = RefOf(i)}, "a tenant's")));
  }
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

// Its repo digest is what tells that it is the same image.
BOOST_AUTO_TEST_CASE(what_a_restore_hands_over_closes_the_image_under_another_id) {
  for (const bool by_operator : {false, true}) {
    ScratchStore store(Rules::kClosed);
    Observe(*store, {kOther});
    const std::string backup = Must(store->MakeBackup()).path;
    const auto image_as = [&](char id) {
      ImageOnNode image = Imported(Digest(id), std::string(kImage));
      image.imported = by_operator;
      image.repo_digests = {std::string(kName) + "@" + std::string(Digest('d'))};
      return image;
    };
    if (!by_operator) store.Pull(kImage, Digest('1'), WithSecret(kSecretA));
    Observe(*store, {kOther, image_as('1')});
    if (by_operator) Must(store->RemoveFromLedger({.image_ref = Digest('1')}, "a tenant's"));
    Observe(*store, {kOther});
    store.Stop();
    Must(Restore({.directory = store.directory(),
                  .backup = backup,
                  .clock = store.clock().AsClock(),
                  .boot_clock = store.clock().AsBootClock()}));
    store.Start();
    Must(store->ClearDistrust("restored"));
    Observe(*store, {kOther});
    store.clock().AdvanceSeconds(3 * 3600);
    for (int lists = 0; lists < 2; ++lists) {
      Observe(*store, {kOther, image_as('2')});
      BOOST_TEST(!IsOpen(store, kImage, Digest('2')));
    }
  }
}

// --- A list that tells nothing of this node

BOOST_AUTO_TEST_CASE(a_list_without_any_known_image_settles_nothing) {
  for (const bool is_empty : {true, false}) {
    ScratchStore store(Rules::kClosed);
    Observe(*store, {kOther});
    Cancel(*store, kImage);
    store.clock().AdvanceSeconds(kDay);
    std::vector<ImageOnNode> list;
    if (!is_empty) list = {Named(Digest('e'), "r.example/elsewhere:1")};
    BOOST_TEST(Observe(*store, list).pulls_settled == 0U);
    Observe(*store, {kOther, Named(kRef, std::string(kImage))});
    BOOST_TEST(!IsOpen(store, kImage, kRef));
  }
}

BOOST_FIXTURE_TEST_CASE(nor_does_it_close_a_gap, ClosedStore) {
  Observe(*store, {kOther});
  Must(store->NoteGap("somebody looked away"));
  Observe(*store, {});
  BOOST_TEST(Must(store->GetTrust()).distrustful);
  Observe(*store, {kOther, Named(kRef, std::string(kImage))});
  BOOST_TEST(!Must(store->GetTrust()).distrustful);
  BOOST_TEST(!IsOpen(store, kImage, kRef));
}

// Preloaded, removed and pulled before any list showed that it was gone; then its disk is away in a
// gap, and back.
BOOST_FIXTURE_TEST_CASE(nor_does_it_keep_in_the_ledger_what_was_pulled_too, ClosedStore) {
  const auto all = std::vector{kOther, Named(kRef, std::string(kImage))};
  Observe(*store, all);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Must(store->NoteGap("somebody looked away"));
  Observe(*store, {});
  Must(store->NoteGap("and again"));
  Observe(*store, all);
  BOOST_TEST(IsOpenTo(store, kSecretA));
  BOOST_TEST(!IsOpenTo(store, kSecretB));
  // Nobody pulled that one, so it is as it was.
  BOOST_TEST(IsOpen(store, "r.example/other:1", kOther.id));
}

// Of a new store, too: what a gap or a pull brought may lie on a disk that is not mounted yet.
BOOST_FIXTURE_TEST_CASE(nor_does_an_empty_list_of_a_store_that_knows_nothing, ClosedStore) {
  Must(store->NoteGap("somebody looked away"));
  Cancel(*store, kTool);
  store.clock().Reboot();
  BOOST_TEST(Observe(*store, {}).pulls_settled == 0U);
  BOOST_TEST(Must(store->GetTrust()).distrustful);
  Observe(*store, {Named(kRef, std::string(kImage)), Named(kRef2, kTool)});
  BOOST_TEST(!IsOpen(store, kImage, kRef));
  BOOST_TEST(!IsOpen(store, kTool, kRef2));
}

BOOST_FIXTURE_TEST_CASE(unless_it_is_meant, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kImage);
  store.clock().AdvanceSeconds(kDay);
  ImageList list{.token = Must(store->BeginList()), .complete = true};
  BOOST_TEST(Must(store->ObserveImages(list, {.allow_empty = true})).pulls_settled == 1U);
}

// --- The runtime shows that nobody pulled it

BOOST_FIXTURE_TEST_CASE(an_import_is_open_whatever_may_be_under_way, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  Must(store->RecordPullIntent({.image = "short"}));
  Observe(*store, {kOther, Imported(kRef, kTool), Named(kRef2, kTool)});
  BOOST_TEST(IsOpen(store, kTool, kRef));
  BOOST_TEST(!IsOpen(store, kTool, kRef2));
  const auto ledger = Must(store->ListLedger());
  BOOST_TEST(std::count_if(ledger.begin(), ledger.end(),
                           [](const auto& one) { return one.source == "imported"; }) == 1);
}

BOOST_FIXTURE_TEST_CASE(after_a_gap_and_in_a_distrustful_store_too, ClosedStore) {
  Observe(*store, {kOther});
  Must(store->NoteGap("somebody looked away"));
  Observe(*store, {kOther, Imported(kRef, kTool)});
  BOOST_TEST(IsOpen(store, kTool, kRef));
  store.Stop();
  std::filesystem::remove_all(store.directory());
  store.Start();
  BOOST_TEST_REQUIRE(Must(store->GetTrust()).distrustful);
  const ObserveReport report =
      Observe(*store, {Imported(kRef, kTool), Named(kRef2, "r.example/b:1")});
  BOOST_TEST(report.preloaded == 1U);
  BOOST_TEST(report.left == 1U);
  BOOST_TEST(IsOpen(store, kTool, kRef));
  BOOST_TEST(!IsOpen(store, "r.example/b:1", kRef2));
}

// A list could only guess.
BOOST_FIXTURE_TEST_CASE(what_a_list_closed_it_opens, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  Observe(*store, {kOther, Named(kRef, kTool)});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
  Observe(*store, {kOther, Imported(kRef, kTool)});
  BOOST_TEST(IsOpen(store, kTool, kRef));
}

BOOST_FIXTURE_TEST_CASE(not_what_an_operator_closed, ClosedStore) {
  Observe(*store, {kOther, Imported(kRef, kTool)});
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a tenant's")));
  Observe(*store, {kOther, Imported(kRef, kTool)});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
  // Nor where a list had closed it before.
  Cancel(*store, "r.example/b:1");
  Observe(*store, {kOther, Named(kRef2, "r.example/b:1")});
  Must(store->AddToLedger(Named(kRef2, "r.example/b:1"), "operator", "ours"));
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef2}, "a tenant's")));
  Observe(*store, {kOther, Imported(kRef2, "r.example/b:1")});
  BOOST_TEST(!IsOpen(store, "r.example/b:1", kRef2));
}

// A list closed it under one handler, and the operator under another: his word is about the image.
BOOST_FIXTURE_TEST_CASE(not_what_an_operator_closed_under_another_handler, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers({{.name = "runc", .is_default = true}, {.name = "kata"}}));
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  ImageOnNode of_kata = Named(kRef, kTool);
  of_kata.runtime_handler = "kata";
  Observe(*store, {kOther, of_kata});
  Must(store->AddToLedger(Named(kRef, kTool), "operator", "ours"));
  BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "a tenant's")));
  ImageOnNode imported = Imported(kRef, kTool);
  imported.runtime_handler = "runc";
  Observe(*store, {kOther, imported});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
}

// A prefetcher's list is not the runtime's word.
BOOST_FIXTURE_TEST_CASE(nobody_else_can_say_it, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  const ListToken token = Must(store->BeginList());
  Must(store->ObserveImages(
      {.images = {Imported(kRef, kTool)}, .token = token, .source = "prefetcher"}));
  BOOST_TEST(!IsOpen(store, kTool, kRef));
}

// The same content has a record under another handler, or is in quarantine.
BOOST_FIXTURE_TEST_CASE(not_what_was_pulled_under_any_handler, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers({{.name = "runc", .is_default = true}, {.name = "kata"}}));
  Must(store->RecordPullIntent({.image = kImage, .runtime_handler = "kata"}));
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef, .runtime_handler = "kata"},
                                WithSecret(kSecretA)));
  Observe(*store, {kOther, Imported(kRef, kTool)});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
}

BOOST_FIXTURE_TEST_CASE(of_two_entries_both_must_say_so, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  Observe(*store, {kOther, Imported(kRef, kTool), Named(kRef, kTool)});
  BOOST_TEST(!IsOpen(store, kTool, kRef));
}

// It says how it was when the list was made: a pull may have come since.
BOOST_FIXTURE_TEST_CASE(an_older_list_does_not_say_it, ClosedStore) {
  Observe(*store, {kOther});
  const ListToken token = Must(store->BeginList());
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  Must(store->DeleteRecord({.image_ref = kRef2}));
  Must(store->ObserveImages({.images = {kOther, Imported(kRef2, kTool)}, .token = token}));
  BOOST_TEST(!IsOpen(store, kTool, kRef2));
}

// --- The runtime shows that pulls are over

BOOST_FIXTURE_TEST_CASE(a_pull_that_is_over_closes_nothing_that_comes_later, ClosedStore) {
  Observe(*store, {kOther});
  Cancel(*store, kTool);
  store.clock().AdvanceSeconds(1);
  const BootTime quiet = store.clock().Boot();
  store.clock().AdvanceSeconds(10);
  Cancel(*store, "r.example/late:1");
  const auto list = [&](std::vector<ImageOnNode> images, std::vector<std::string> to_come = {}) {
    return Must(store->ObserveImages({.images = std::move(images),
                                      .token = Must(store->BeginList()),
                                      .complete = true,
                                      .quiet_until = quiet,
                                      .names_to_come = std::move(to_come)}));
  };
  // What is on the list is judged with the pull still open.
  BOOST_TEST(list({kOther, Named(Digest('c'), kTool)}, {kTool}).pulls_settled == 0U);
  BOOST_TEST(!IsOpen(store, kTool, Digest('c')));
  BOOST_TEST(list({kOther}).pulls_settled == 1U);
  Observe(*store, {kOther, Named(kRef, kTool), Named(kRef2, "r.example/late:1")});
  BOOST_TEST(IsOpen(store, kTool, kRef));
  BOOST_TEST(!IsOpen(store, "r.example/late:1", kRef2));
}

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

}  // namespace waybill::testing
