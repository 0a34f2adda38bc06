// Stores that earlier versions wrote, kept for ever (tests/fixtures/golden/README.md), and the rule
// that no step between versions comes without one.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/options.h"
#include "store/node/facade/node_store.h"
#include "tests/support/cli_store.h"
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

// A line of a golden dump, under the names of today.
Json InNamesOfToday(const Json& old, bool is_member_name = true) {
  static const std::map<std::string, std::string> kNames = {
      {"distrustful", "degraded"},
      {"lastUpdatedTime", "updated"},
      {"observedImages", "names"},
      {"credentialMapping", "credentials"},
      {"kubernetesSecrets", "secrets"},
      {"kubernetesServiceAccounts", "serviceAccounts"},
      {"nodePodsAccessible", "everyPod"},
      {"credentialHash", "hash"},
      {"default", "isDefault"},
      {"checker", "verifiedBy"},
      {"goodUntil", "validUntil"},
      {"proven", "verified"},
      {"stamp", "commit"},
      {"anything", "anyImage"}};
  if (old.is_array()) {
    Json list = Json::array();
    for (const Json& element : old) list.push_back(InNamesOfToday(element));
    return list;
  }
  if (!old.is_object()) return old;
  if (old.contains("bootId")) {
    return std::to_string(old["nanoseconds"].get<std::int64_t>()) + "." +
           old["bootId"].get<std::string>();
  }
  Json object = Json::object();
  for (const auto& [name, member] : old.items()) {
    if (is_member_name && name == "proofs") continue;  // PutProofs
    const auto renamed = kNames.find(name);
    const Json value = InNamesOfToday(member, name != "credentialMapping");
    object[is_member_name && renamed != kNames.end() ? renamed->second : name] = value;
  }
  return object;
}

// Dumps leave out what has its default.
Json WithoutDefaults(const Json& json) {
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& element : json) list.push_back(WithoutDefaults(element));
    return list;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [name, member] : json.items()) {
    const Json value = WithoutDefaults(member);
    if (value.is_null() || value == false || value == "" || value == 0 ||
        (value.is_object() && value.empty() && name.ends_with("roof"))) {
      continue;
    }
    object[name] = value;
  }
  return object;
}

// When each credential was proven stood beside the credentials, in the same order.
void PutProofs(const Json& proofs, Json& credentials) {
  for (const auto& [image, of_image] : proofs.items()) {
    for (const auto& [kind, proven] : of_image.items()) {
      Json& entry = credentials[image];
      if (kind == "nodePods") {
        entry["everyPodProof"] = InNamesOfToday(proven);
        continue;
      }
      Json& list = entry[kind == "kubernetesSecrets" ? "secrets" : "serviceAccounts"];
      for (std::size_t i = 0; i < proven.size(); ++i) {
        list[i]["proof"] = InNamesOfToday(proven[i]);
      }
    }
  }
}

Json LineOfToday(const Json& old) {
  static const std::map<std::string, std::string> kTypes = {{"trust", "history"},
                                                            {"runtimeHandler", "handler"},
                                                            {"quarantine", "quarantinedFile"},
                                                            {"preloaded", "observedPreloaded"},
                                                            {"ledger", "preloaded"},
                                                            {"heldPod", "quarantinedPod"}};
  static const std::map<std::string, std::string> kWords = {
      {"distrust", "degraded"}, {"trust", "accepted"}, {"gap", "unrecordedPeriod"}};
  Json line = InNamesOfToday(old);
  const auto replace = [&line](const char* member, const auto& words) {
    if (!line.contains(member)) return;
    const auto word = words.find(line[member]);
    if (word != words.end()) line[member] = word->second;
  };
  replace("type", kTypes);
  replace("action", kWords);
  replace("kind", kWords);
  const std::string type = line["type"];
  if (type.starts_with("quarantined") && line.contains("source")) {
    line["file"] = line["source"];
    line.erase("source");
  }
  if (type == "pull") {
    line["pull"] = line["id"];
    line.erase("id");
  }
  if (old.contains("proofs")) PutProofs(old["proofs"], line["credentials"]);
  return line;
}

// What that version's dump would have said: without the types of line and the fields that only
// later ones know.
std::vector<Json> InTermsOf(const std::vector<Json>& golden, const std::vector<Json>& now) {
  std::set<std::string> types;
  std::set<std::pair<std::string, std::string>> fields;
  for (const Json& line : golden) {
    types.insert(line["type"].get<std::string>());
    for (const auto& [field, value] : line.items()) fields.emplace(line["type"], field);
  }
  std::vector<Json> lines;
  for (const Json& line : now) {
    if (!types.contains(line["type"].get<std::string>())) continue;
    Json& cut = lines.emplace_back(Json::object());
    for (const auto& [field, value] : line.items()) {
      if (fields.contains({line["type"].get<std::string>(), field})) cut[field] = value;
    }
  }
  return lines;
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
      auto golden = LinesOf(ReadFile(GoldenOf(version) / "dump.jsonl"));
      for (Json& line : golden) line = LineOfToday(line);
      const auto said = LinesOf(dump.out);
      const auto now = InTermsOf(golden, said);
      BOOST_TEST_REQUIRE(now.size() == golden.size());
      for (std::size_t i = 0; i < golden.size(); ++i) {
        BOOST_TEST(WithoutDefaults(now[i]) == WithoutDefaults(golden[i]),
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
