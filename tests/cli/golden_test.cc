// Stores of each version (tests/fixtures/golden/README.md), and the rule that no step between
// versions comes without one.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/options.h"
#include "tests/support/cli_store.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/versions.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(golden)

namespace {

using Json = nlohmann::json;
const std::filesystem::path kGolden = std::filesystem::path(WAYBILL_FIXTURES) / "golden";
const std::filesystem::path kUnitTests =
    std::filesystem::path(WAYBILL_FIXTURES).parent_path() / "unit";
const std::filesystem::path kHistories = std::filesystem::path(WAYBILL_FIXTURES) / "histories";

std::filesystem::path GoldenOf(std::uint32_t version) {
  return kGolden / ("v" + std::to_string(version));
}

std::vector<Json> LinesOf(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

// Since when an image is away, is told by how long this machine has run since.
Json WithoutAbsence(Json line) {
  if (line.contains("absentSince")) line["absentSince"] = "it is away";
  return line;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_each_version_wrote_reads_the_same) {
  for (std::uint32_t version = kOldestSchema; version <= kNewestSchema; ++version) {
    BOOST_TEST_CONTEXT("version " << version) {
      const CliStore store;
      PlaceGolden(store.store(), version);
      {
        // A restart would end the pulls that run.
        auto opened = Must(NodeStore::Open({.directory = store.store(),
                                            .create_if_missing = false,
                                            .witness = Witness::None(),
                                            .continues_pulls = true}));
        const OpeningReport& report = opened->recovery_report();
        BOOST_TEST(!report.set_aside);
        BOOST_TEST(!report.distrustful);
        BOOST_TEST(report.migration.has_value() == (version < kNewestSchema));
        if (report.migration) {
          BOOST_TEST(report.migration->from == version);
          BOOST_TEST(report.migration->to == kNewestSchema);
        }
        BOOST_TEST(Must(opened->Verify()).sound);
        Must(opened->Close());
      }
      const CommandResult dump = store.Run("dump", {"--with-hashes"});
      BOOST_TEST_REQUIRE(dump.exit_code == 0, dump.err);
      const auto golden = LinesOf(ReadFile(GoldenOf(version) / "dump.jsonl"));
      const auto now = LinesOf(dump.out);
      BOOST_TEST_REQUIRE(now.size() == golden.size());
      for (std::size_t i = 0; i < golden.size(); ++i) {
        BOOST_TEST(WithoutAbsence(now[i]) == WithoutAbsence(golden[i]),
                   now[i] << " is not " << golden[i]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(no_version_is_opened_by_a_reader_but_the_newest) {
  for (std::uint32_t version = kOldestSchema; version <= kNewestSchema; ++version) {
    const CliStore store;
    PlaceGolden(store.store(), version);
    const auto observed = NodeStore::Observe({.directory = store.store()});
    BOOST_TEST(observed.has_value() == (version == kNewestSchema));
    if (!observed) BOOST_TEST((observed.error().code == ErrorCode::kOlderSchema));
  }
}

BOOST_AUTO_TEST_CASE(no_step_without_its_golden_store_and_its_tests) {
  std::string tests;
  for (const auto& folder : {kUnitTests, kHistories}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      tests += ReadFile(entry.path());
    }
  }
  const auto has = [&tests](const std::string& text) { return tests.find(text) != tests.npos; };
  std::uint32_t version = kOldestSchema;
  for (const internal::Step& step : internal::Steps()) {
    BOOST_TEST_CONTEXT("step " << step.name) {
      BOOST_TEST(step.from == version);
      BOOST_TEST(step.to == ++version);
      BOOST_TEST((step.up != nullptr && step.down != nullptr && step.losses != nullptr));
      for (const std::uint32_t end : {step.from, step.to}) {
        BOOST_TEST(std::filesystem::exists(GoldenOf(end) / "data.mdb"));
        BOOST_TEST(std::filesystem::exists(GoldenOf(end) / "dump.jsonl"));
      }
      const std::string named = '"' + std::string(step.name) + '"';
      const std::string down = R"({"op":"migrate","to":)" + std::to_string(step.from);
      BOOST_TEST(
          (has(named) || has(down + "}") || has(down + ",")),
          "no test in tests/unit names the step " << named << ", and no history ends with it");
    }
  }
  BOOST_TEST(version == kNewestSchema);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
