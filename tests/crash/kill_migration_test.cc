// Migrating up and down, opening that migrates, and restoring a backup are killed before each call
// that changes or syncs a file, each of these calls fails, and the power fails at any point. What
// is left is the store from before or after, complete, and the same call again ends like an
// undisturbed one. A power cut alone never leads to distrust. WAYBILL_POWER_CUTS: how many.

#include <fcntl.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/maintenance.h"
#include "store/opening/inspect.h"
#include "tests/crash/maintenance.h"
#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/inspect_path.h"
#include "tests/support/store_fixture.h"
#include "tests/support/third_version.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;

// The store is one of these, and sound, and so are its backups.
void JudgeLeft(const Scenario& scenario, const Place& place, const Is& before,
               const std::vector<Is>& may_be, const Is& after) {
  BOOST_TEST_REQUIRE(place.Sound());
  const Is is = place.Look();
  BOOST_TEST_REQUIRE((is == after || std::find(may_be.begin(), may_be.end(), is) != may_be.end()));
  if (scenario.replaces && is == after) BOOST_TEST(place.KeepsAside(before));
  for (const Backup& backup : Must(BackupsOf(place.store()))) {
    const auto file = Must(internal::OpenFile(backup.path, O_RDONLY));
    BOOST_TEST(Must(internal::InspectFile(file, internal::FileIs::kCompactCopy)).sound);
  }
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(kill_migration, ThirdVersion)

namespace {

// Runs the scenario again and again: `run` disturbs it at call 1, 2, 3 …, and answers whether there
// was such a call. The number of calls.
std::uint64_t AtEachCall(
    const Scenario& scenario, std::size_t records,
    const std::function<bool(std::uint64_t call, const Place& place, const Is& after)>& run) {
  const Place place;
  Begin(scenario, records, place);
  const Is before = place.Look();
  place.Keep();
  Must(scenario.run(place));
  const Is after = place.Look();
  BOOST_TEST_REQUIRE((before != after));
  std::vector<Is> may_be = BetweenSteps(scenario, records);
  may_be.push_back(before);
  const std::uint64_t one_in = NumberFromEnv("WAYBILL_CALLS_ONE_IN", 1);
  for (std::uint64_t call = 1 + SeedOfThisRun() % one_in;; call += one_in) {
    place.PutBack();
    BOOST_TEST_CONTEXT(scenario.name << ", call " << call) {
      const bool came = run(call, place, after);
      JudgeLeft(scenario, place, before, may_be, after);
      Must(scenario.run(place));
      BOOST_TEST_REQUIRE(place.Sound());
      BOOST_TEST_REQUIRE((place.Look() == after));
      BOOST_TEST(!fs::exists(place.store() / "new.tmp"));
      BOOST_TEST(!fs::exists(place.store() / "backup" / "new.tmp"));
      if (!came) return call - 1;
    }
  }
}

// What became of a call that was made to fail.
struct Outcome {
  bool fault_happened;
  bool succeeded;
  ErrorCode code;
  char text[500];
};

// Runs the scenario in a process of its own. False: LMDB ended it, since what it read of its own
// file makes no sense.
bool RunWith(const Fault& fault, const Scenario& scenario, const Place& place,
             Shared<Outcome>& outcome) {
  Child child([&] {
    InjectFault(fault);
    const auto result = scenario.run(place);
    outcome->fault_happened = FaultHappened();
    outcome->succeeded = result.has_value();
    if (!result) {
      outcome->code = result.error().code;
      std::snprintf(outcome->text, sizeof(outcome->text), "%s", result.error().ToString().c_str());
    }
    return 0;
  });
  const int ended = child.Wait();
  BOOST_TEST_REQUIRE((ended == 0 || ended == -SIGABRT));
  return ended == 0;
}

// Each call fails in turn, in this way.
void FailEachCall(const Fault& kind, const std::set<ErrorCode>& expected) {
  Shared<Outcome> outcome;
  for (const Scenario& scenario : MaintenanceScenarios()) {
    const auto calls =
        AtEachCall(scenario, 60, [&](std::uint64_t call, const Place& place, const Is& after) {
          Fault fault = kind;
          fault.call = call;
          BOOST_TEST_REQUIRE(RunWith(fault, scenario, place, outcome));
          if (outcome->succeeded) {
            BOOST_TEST((place.Look() == after));
          } else {
            BOOST_TEST(outcome->fault_happened);
            BOOST_TEST(expected.contains(outcome->code), outcome->text);
          }
          return outcome->fault_happened;
        });
    BOOST_TEST(calls > 10U);
  }
}

struct Refusals {
  unsigned backups = 0;
  unsigned stores = 0;
};

// The disk garbles one write, each in turn, without an error.
Refusals GarbleEachCall(Fault::Kind kind, const Scenario& scenario) {
  Shared<Outcome> outcome;
  Refusals refusals;
  const Place place;
  Begin(scenario, 60, place);
  const Is before = place.Look();
  place.Keep();
  for (std::uint64_t call = 1;; ++call) {
    place.PutBack();
    if (!RunWith({.kind = kind, .call = call}, scenario, place, outcome)) {
      // Nobody was told anything. The next opening makes do with what is there.
      auto opened = NodeStore::Open({.directory = place.store(), .witness = Witness::None()});
      BOOST_TEST(opened.has_value());
      if (opened) Must((*opened)->Close());
      BOOST_TEST(place.Sound());
      ++refusals.stores;
      continue;
    }
    if (!outcome->fault_happened) return refusals;
    BOOST_TEST_CONTEXT(scenario.name << ", call " << call << ": " << outcome->text) {
      const auto backups = Must(BackupsOf(place.store()));
      for (const Backup& backup : backups) {
        const auto file = Must(internal::OpenFile(backup.path, O_RDONLY));
        BOOST_TEST(Must(internal::InspectFile(file, internal::FileIs::kCompactCopy)).sound);
      }
      if (outcome->succeeded) {
        BOOST_TEST(place.Sound());
        continue;
      }
      BOOST_TEST((outcome->code == ErrorCode::kDamaged));
      if (std::string(outcome->text).starts_with("the backup")) {
        ++refusals.backups;
        BOOST_TEST(place.Sound());
        BOOST_TEST((place.Look() == before));
        BOOST_TEST(!fs::exists(place.store() / "backup" / "new.tmp"));
      } else {
        ++refusals.stores;
        RestoreOptions options{.directory = place.store(), .backup = backups.front().path};
        BOOST_TEST(RestoreStore(options).has_value());
        BOOST_TEST(place.Sound());
        BOOST_TEST((IdentityOf(place.store()).schema_version == kThirdVersion));
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(killed_before_each_call) {
  for (const Scenario& scenario : MaintenanceScenarios()) {
    const auto calls =
        AtEachCall(scenario, 1000, [&](std::uint64_t call, const Place& place, const Is&) {
          Child child([&] {
            KillBeforeCall(call);
            return scenario.run(place) ? 0 : 3;
          });
          const int code = child.Wait();
          BOOST_TEST_REQUIRE((code == 0 || code == -SIGKILL));
          return code != 0;
        });
    BOOST_TEST_MESSAGE(scenario.name << ": " << calls << " calls");
    BOOST_TEST(calls > 10U);
  }
}

BOOST_AUTO_TEST_CASE(a_call_fails_once) {
  FailEachCall({.kind = Fault::Kind::kFail, .error_number = EIO}, {ErrorCode::kIo});
  FailEachCall({.kind = Fault::Kind::kFail, .error_number = ENOSPC}, {ErrorCode::kDiskFull});
}

BOOST_AUTO_TEST_CASE(every_call_fails_from_one_on) {
  FailEachCall({.kind = Fault::Kind::kFail, .error_number = EIO, .lasting = true},
               {ErrorCode::kIo});
  FailEachCall({.kind = Fault::Kind::kFail, .error_number = ENOSPC, .lasting = true},
               {ErrorCode::kDiskFull});
}

BOOST_AUTO_TEST_CASE(a_write_is_cut_short) {
  // LMDB treats a short write as a full disk.
  FailEachCall({.kind = Fault::Kind::kShort, .error_number = EIO},
               {ErrorCode::kIo, ErrorCode::kDiskFull});
}

// A disk that writes other bytes than it was given: a backup that can't be restored is not trusted,
// and a migration that damaged the store fails.
BOOST_AUTO_TEST_CASE(a_write_is_garbled) {
  for (const Scenario& scenario : MaintenanceScenarios().first(2)) {
    // Whether the bytes in the middle of a write are in use depends on the layout.
    GarbleEachCall(Fault::Kind::kGarble, scenario);
    const Refusals refusals = GarbleEachCall(Fault::Kind::kGarbleSectors, scenario);
    BOOST_TEST(refusals.backups > 0U, scenario.name);
    BOOST_TEST(refusals.stores > 0U, scenario.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(power_cut_maintenance, ThirdVersion)

namespace {

void CutOften(const Scenario& scenario, std::uint64_t cuts) {
  Draw draw(SeedOfThisRun());
  std::vector<Is> may_be = BetweenSteps(scenario, 60);
  const Place place;
  Recorder recorder(place.now());
  Begin(scenario, 60, place);
  const Is before = place.Look();
  may_be.push_back(before);
  Recorder::Mark(0);
  Must(scenario.run(place));
  Recorder::Mark(1);
  const Is after = place.Look();
  const std::vector<DiskEvent> log = recorder.Take();
  const std::size_t begin = PlaceOfMark(log, 0);
  const std::size_t end = PlaceOfMark(log, 1);
  BOOST_TEST_MESSAGE(scenario.name << ": " << log.size() - begin << " events");
  for (std::uint64_t i = 0; i < cuts; ++i) {
    const std::size_t cut = begin + 1 + draw.Below(log.size() - begin);
    fs::remove_all(place.now());
    fs::create_directory(place.now());
    PlayPowerCut(log, cut, draw, place.now());
    BOOST_TEST_CONTEXT(scenario.name << ", cut " << i << " after " << cut - begin << " events") {
      JudgeLeft(scenario, place, before, cut <= end ? may_be : std::vector<Is>(), after);
      Must(scenario.run(place));
      BOOST_TEST_REQUIRE((place.Look() == after));
      Must(place.Open([&](NodeStore& store) {
        const OpeningReport& report = store.recovery_report();
        BOOST_TEST(!report.set_aside);
        BOOST_TEST(report.findings.empty());
        BOOST_TEST(report.distrustful == after.contents.distrustful, report.distrust_reason);
        BOOST_TEST(Must(store.Verify()).sound);
      }));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_any_point) {
  const std::uint64_t cuts = NumberFromEnv("WAYBILL_POWER_CUTS", 600);
  for (const Scenario& scenario : MaintenanceScenarios()) CutOften(scenario, cuts / 6);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
