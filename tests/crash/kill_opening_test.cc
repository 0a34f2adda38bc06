// Opening is killed before each call that changes or syncs a file: creating, importing, replaying,
// rebuilding, closing. The next opening ends like an undisturbed one.

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "tests/crash/recorder.h"
#include "tests/crash/stage.h"
#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kill_opening)

namespace {

using Then = std::function<void(NodeStore&)>;

// Opens, and is killed before that call. 0, or minus the signal.
int OpenUntilKilled(const NodeStoreOptions& options, const Then& then, std::uint64_t call) {
  Child child([&] {
    KillBeforeCall(call);
    auto store = NodeStore::Open(options);
    if (!store) return 3;
    if (then) then(**store);
    return (*store)->Close() ? 0 : 4;
  });
  const int code = child.Wait();
  BOOST_REQUIRE((code == 0 || code == -SIGKILL));
  return code;
}

// Opens the stage's store, killed before call 1, 2, 3 … until there is no such call. The number of
// calls.
std::uint64_t KillBeforeEachCall(const Stage& stage, const NodeStoreOptions& options,
                                 const Then& then = nullptr) {
  stage.Keep();
  const std::string expected = OpenAndTell(options, then);
  for (std::uint64_t call = 1;; ++call) {
    stage.PutBack();
    BOOST_TEST_CONTEXT("killed before call " << call) {
      const int code = OpenUntilKilled(options, then, call);
      BOOST_REQUIRE(OpenAndTell(options, then) == expected);
      if (code == 0) return call;
    }
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(while_a_store_is_made, OnStage) {
  BOOST_TEST(KillBeforeEachCall(stage, stage.Options()) > 20U);
}

BOOST_FIXTURE_TEST_CASE(while_closing, OnStage) {
  const NodeStoreOptions options = stage.Options(Mode::kKubelet);
  static_cast<void>(OpenAndTell(options));
  const Then then = [](NodeStore& store) {
    Must(store.RecordPullIntent({.image = Image(0)}));
    Must(store.RecordImagePulled({.image = Image(1), .image_ref = Ref(1)}, NodeWide()));
  };
  BOOST_TEST(KillBeforeEachCall(stage, options, then) > 10U);
}

BOOST_AUTO_TEST_CASE(while_intents_are_replayed) {
  for (const Mode rules : kBothRules) {
    const Stage stage;
    NodeStoreOptions options = stage.Options(rules);
    Fill(options, 0, 60);
    options.images_on_node.emplace();
    for (std::size_t i = 0; i < 40; ++i) {
      options.images_on_node->push_back({Ref(i), {Image(i)}, {}});
    }
    BOOST_TEST(KillBeforeEachCall(stage, options) > 10U);
  }
}

BOOST_FIXTURE_TEST_CASE(while_a_kubelet_directory_is_imported, OnStage) {
  WriteKubeletFiles(stage.kubelet(), 60, 20, 3);
  BOOST_TEST(KillBeforeEachCall(stage, stage.Options()) > 20U);
}

BOOST_FIXTURE_TEST_CASE(while_a_damaged_database_is_rebuilt, OnStage) {
  Fill(stage.Options(), 60, 10);
  DamageRecord(stage.database(), Ref(17));
  BOOST_TEST(KillBeforeEachCall(stage, stage.Options()) > 20U);
  auto store = Must(NodeStore::Open(stage.Options()));
  BOOST_TEST(store->recovery_report().distrustful);
  BOOST_TEST(Must(store->ListIntents()).size() == 11U);
  BOOST_TEST(Must(store->ListRecords()).size() == 60U);
}

// Killed again and again, each time a little later, until it ends.
BOOST_AUTO_TEST_CASE(while_three_thousand_files_are_imported) {
  Draw draw(SeedOfThisRun());
  const Stage stage;
  WriteKubeletFiles(stage.kubelet(), 2700, 290, 10);
  stage.Keep();
  const std::string expected = OpenAndTell(stage.Options());
  stage.PutBack();
  std::uint64_t kills = 0;
  while (OpenUntilKilled(stage.Options(), nullptr, 5 + draw.Below(600)) != 0) ++kills;
  BOOST_TEST_MESSAGE(kills << " kills");
  BOOST_TEST(OpenAndTell(stage.Options()) == expected);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
