// The owner dies, or the power fails, while credentials are forgotten and while batches tidy up.
// What was forgotten opens nothing after the next opening; what was being forgotten opens all that
// it did, or nothing. WAYBILL_POWER_CUTS: how many.

#include <signal.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/crash/stage.h"
#include "tests/support/draw.h"
#include "tests/support/fake_clock.h"
#include "tests/support/forked_child.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(forget)

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecords = 9;
constexpr std::string_view kInFlight = "registry.example.com/in-flight:v1";
const ImagePullSecret kSecretC = MakeSecret("team-c", "pull", "uid-c", "hash-c");

// What had returned when it ended.
enum Done : std::size_t { kFilled, kForgot, kPulled, kReconciled };

// Few records are too many for one transaction.
NodeStoreOptions InSmallBatches(NodeStoreOptions options) {
  options.rows_at_once = 2;
  return options;
}

void FillWithSecrets(const NodeStoreOptions& options) {
  auto store = Must(NodeStore::Open(options));
  for (std::size_t i = 0; i < kRecords; ++i) {
    ImagePulledRecord record = {.image_ref = Ref(i)};
    record.credential_mapping[std::string(kName)].kubernetes_secrets = {kSecretA, kSecretB,
                                                                        kSecretC};
    Must(store->PutRecord(record));
  }
  Must(store->Close());
}

// Forgets A by its namespace and C by a truth, and ends a pull by A that began before.
void ForgetBoth(const NodeStoreOptions& options, const std::function<void(Done)>& done) {
  auto store = Must(NodeStore::Open(options));
  const ImageCopy copy{.image = kInFlight, .image_ref = Ref(0)};
  const PullId pull = Must(store->RecordPullIntent(copy));
  BOOST_TEST(Must(store->ForgetNamespace("team-a")).records == kRecords);
  done(kForgot);
  Must(store->RecordImagePulled(copy, WithSecret(kSecretA), {.pull = pull}));
  done(kPulled);
  const ListToken token = Must(store->BeginList());
  Must(store->Reconcile({.secrets = {{"team-b", "pull", "uid-b"}}}, token));
  done(kReconciled);
  Must(store->Close());
}

std::size_t CountOpen(NodeStore& store, const ImagePullSecret& secret) {
  std::size_t open = 0;
  for (std::size_t i = 0; i < kRecords; ++i) {
    const std::string ref = Ref(i);
    open += DecisionOf(store, {.image = kImage, .image_ref = ref}, Pod(secret)).pull ? 0U : 1U;
  }
  return open;
}

void Judge(NodeStore& store, std::size_t done) {
  const std::size_t by_a = CountOpen(store, kSecretA);
  const std::size_t by_c = CountOpen(store, kSecretC);
  BOOST_TEST((by_a == 0 || (by_a == kRecords && done < kForgot)));
  BOOST_TEST((by_c == 0 || (by_c == kRecords && done < kReconciled)));
  BOOST_TEST(CountOpen(store, kSecretB) == kRecords);
  const std::string ref = Ref(0);
  BOOST_TEST(DecisionOf(store, {.image = kInFlight, .image_ref = ref}, Pod(kSecretA)).pull);
}

// Opened once more, which finishes what was begun.
void JudgeAfter(const NodeStoreOptions& options, std::size_t done) {
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!store->recovery_report().distrustful, store->recovery_report().distrust_reason);
  BOOST_TEST(store->recovery_report().findings.empty());
  Judge(*store, done);
  for (const Revocation& one : Must(store->ListRevocations())) BOOST_TEST(!one.unfinished);
  BOOST_TEST(Must(store->Verify()).sound);
  Must(store->Close());
}

}  // namespace

BOOST_AUTO_TEST_CASE(killed_before_each_call) {
  UnderBothRules([](Mode rules) {
    const Stage stage;
    const NodeStoreOptions options = InSmallBatches(stage.Options(rules));
    FillWithSecrets(options);
    stage.Keep();
    std::array<std::size_t, kReconciled + 1> ended_after{};
    for (std::uint64_t call = 1;; ++call) {
      stage.PutBack();
      Shared<std::atomic<std::size_t>> told;
      Child child([&] {
        KillBeforeCall(call);
        ForgetBoth(options, [&](Done done) { told->store(done); });
        return 0;
      });
      const int code = child.Wait();
      BOOST_REQUIRE((code == 0 || code == -SIGKILL));
      ++ended_after[*told];
      BOOST_TEST_CONTEXT("killed before call " << call << ", done " << *told) {
        JudgeAfter(options, *told);
      }
      if (code == 0) break;
    }
    for (const std::size_t ended : ended_after) BOOST_TEST(ended > 0U);
  });
}

BOOST_AUTO_TEST_CASE(the_power_fails) {
  Draw draw(SeedOfThisRun());
  UnderBothRules([&](Mode rules) {
    const Stage stage;
    const NodeStoreOptions options = InSmallBatches(stage.Options(rules));
    Recorder recorder(stage.now());
    FillWithSecrets(options);
    Recorder::Mark(kFilled);
    ForgetBoth(options, [](Done done) { Recorder::Mark(done); });
    const std::vector<DiskEvent> log = recorder.Take();
    NodeStoreOptions after = options;
    FakeClock other_boot;
    other_boot.Reboot();
    after.boot_clock = other_boot.AsBootClock();
    const std::size_t begin = PlaceOfMark(log, kFilled);
    const std::uint64_t cuts = NumberFromEnv("WAYBILL_POWER_CUTS", 200) / 2;
    for (std::uint64_t i = 0; i < cuts; ++i) {
      const std::size_t cut = begin + 1 + draw.Below(log.size() - begin);
      std::size_t done = kFilled;
      while (done < kReconciled && PlaceOfMark(log, done + 1) < cut) ++done;
      fs::remove_all(stage.now());
      fs::create_directory(stage.now());
      PlayPowerCut(log, cut, draw, stage.now());
      BOOST_TEST_CONTEXT("cut " << i << " after " << cut - begin << " events, done " << done) {
        JudgeAfter(after, done);
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
