// The power fails while a store is migrated or restored: what is left is the store from before or
// after, complete, and the same call again ends like an undisturbed one. A power cut alone never
// leads to distrust. WAYBILL_POWER_CUTS: how many.

#include <fcntl.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <vector>

#include "store/maintenance.h"
#include "store/opening/inspect.h"
#include "tests/crash/maintenance.h"
#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/store_fixture.h"
#include "tests/support/third_version.h"

namespace waybill::testing {

BOOST_FIXTURE_TEST_SUITE(power_cut_maintenance, ThirdVersion)

namespace {

namespace fs = std::filesystem;

void CutOften(const Scenario& scenario, std::uint64_t cuts) {
  Draw draw(SeedOfThisRun());
  const std::vector<Is> between = BetweenSteps(scenario, 60);
  const Place place;
  Recorder recorder(place.now());
  Begin(scenario, 60, place);
  const Is before = place.Look();
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
      BOOST_TEST_REQUIRE(place.Sound());
      const Is is = place.Look();
      BOOST_TEST_REQUIRE(
          (is == after || (cut <= end && (is == before || std::find(between.begin(), between.end(),
                                                                    is) != between.end()))));
      if (scenario.replaces && is == after) BOOST_TEST(place.KeepsAside(before));
      for (const Backup& backup : Must(BackupsOf(place.store()))) {
        const auto file = Must(internal::OpenFile(backup.path, O_RDONLY));
        BOOST_TEST(Must(internal::InspectFile(file, internal::FileIs::kCompactCopy)).sound);
      }
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
