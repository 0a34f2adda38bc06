// What Prometheus makes of the metrics, and ../../monitoring: its rules and its dashboard name only
// what an owner really writes.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "store/base/metrics.h"
#include "tests/support/cli_store.h"
#include "tests/support/metrics.h"
#include "tests/support/store_fixture.h"
#include "waybill/waybill.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(monitoring)

namespace {

constexpr const char* kMonitoring = WAYBILL_FIXTURES "/../../monitoring";

// promtool of Debian's package prometheus, which ./dev installs.
std::string Promtool() {
  std::istringstream path(std::getenv("PATH"));
  for (std::string directory; std::getline(path, directory, ':');) {
    const std::string file = directory + "/promtool";
    if (std::filesystem::exists(file)) return file;
  }
  BOOST_TEST_MESSAGE("left out: promtool is not installed");
  return {};
}

void CheckedByPromtool(const std::string& text) {
  const std::string promtool = Promtool();
  if (promtool.empty()) return;
  const CommandResult result = RunCommand({promtool, "check", "metrics"}, text);
  BOOST_TEST(result.exit_code == 0, result.out << result.err << text);
  BOOST_TEST(result.out.empty(), result.out);
  BOOST_TEST(result.err.empty(), result.err);
}

// Of each metric, the values of each label. One store that shows all that there is.
using Names = std::map<std::string, std::map<std::string, std::set<std::string>>>;

Names RealNames() {
  ScratchStore store(Mode::kStrict);
  Pod pod;
  store->EnsureImage({.image = "r.example/a:1", .image_ref = "ref"}, PullPolicy::kIfNotPresent,
                     pod);
  store.Pull("r.example/a:1", "ref", NodeWide());
  Must(store->RecordImagePullError({.image = "r.example/b:1"}, {}));
  Names names;
  for (const MetricFamily& family : store->GetMetrics()) {
    auto& labels = names[family.name];
    for (const MetricFamily::Series& series : family.series) {
      for (const auto& [label, value] : series.labels) labels[label].insert(value);
    }
  }
  // Of a guard (tests/cri/guard_service_test.cc).
  names["waybill_guard_kubelet_verifies_nothing"];
  names["waybill_guard_not_protected"];
  names["waybill_guard_check_failed"]["check"];
  return names;
}

// What the recording rules make of them, with any label.
std::set<std::string> Recorded(const std::string& rules) {
  std::set<std::string> names;
  const std::regex record("- record: (\\S+)");
  for (std::sregex_iterator at(rules.begin(), rules.end(), record), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// Each metric of an expression, with its selector if it has one.
void CheckExpression(const std::string& expression, const Names& real,
                     const std::set<std::string>& recorded, std::set<std::string>& used) {
  const std::regex metric(R"(\b((?:waybill|kubelet)[a-z0-9_:]+)(\{[^}]*\})?)");
  const std::regex matcher("([a-z_]+)(=~|!~|!=|=)\"([^\"]*)\"");
  for (std::sregex_iterator at(expression.begin(), expression.end(), metric), end; at != end;
       ++at) {
    const std::string name = (*at)[1];
    used.insert(name);
    if (name.find(':') != std::string::npos) {
      BOOST_TEST(recorded.contains(name), name << " is not recorded: " << expression);
      continue;
    }
    const auto known = real.find(name);
    BOOST_TEST((known != real.end()), name << " is not a metric: " << expression);
    if (known == real.end()) continue;
    const std::string selector = (*at)[2];
    for (std::sregex_iterator one(selector.begin(), selector.end(), matcher); one != end; ++one) {
      const std::string label = (*one)[1];
      if (label == "instance") continue;  // Prometheus' own
      BOOST_TEST(known->second.contains(label), name << " has no label " << label);
      if (!known->second.contains(label)) continue;
      std::istringstream values((*one)[3]);
      for (std::string value; std::getline(values, value, '|');) {
        BOOST_TEST(known->second.at(label).contains(value), name << " has no " << value);
      }
    }
  }
}

void CollectExpressions(const nlohmann::json& node, std::vector<std::string>& expressions) {
  if (node.is_object() && node.contains("expr")) expressions.push_back(node["expr"]);
  if (!node.is_structured()) return;
  for (const nlohmann::json& child : node) CollectExpressions(child, expressions);
}

}  // namespace

BOOST_AUTO_TEST_CASE(promtool_finds_nothing_wrong_with_any_output) {
  const CliStore cli;
  BOOST_TEST(cli.Start().exit_code == 0);
  CheckedByPromtool(cli.Run("metrics").out);
  BOOST_TEST(cli.Start({"--no-user-namespaces"}).exit_code == 0);
  CheckedByPromtool(cli.Run("metrics").out);
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    CheckedByPromtool(ToPrometheusText(store->GetMetrics()));
    store.Pull("r.example/a:1", "ref", NodeWide());
    Pod pod;
    store->EnsureImage({.image = "r.example/a:1", .image_ref = "ref"}, PullPolicy::kNever, pod);
    CheckedByPromtool(ToPrometheusText(store->GetMetrics()));
    Must(store->Close());
    CheckedByPromtool(ToPrometheusText(store->GetMetrics()));
  }
  CheckedByPromtool(ToPrometheusText({{.name = "waybill_records",
                                       .type = "gauge",
                                       .help = "Labels that nobody expects.",
                                       .series = {{{{"runtime_handler", "\"\\\n{}=,"}}, 3},
                                                  {{{"runtime_handler", "\x01"}}, 4}}}}));
}

BOOST_AUTO_TEST_CASE(promtool_plays_the_rules) {
  const std::string promtool = Promtool();
  if (promtool.empty()) return;
  const std::string rules = std::string(kMonitoring) + "/waybill.rules";
  const CommandResult checked = RunCommand({promtool, "check", "rules", rules + ".yml"});
  BOOST_TEST(checked.exit_code == 0, checked.out << checked.err);
  const CommandResult played = RunCommand({promtool, "test", "rules", rules + ".test.yml"});
  BOOST_TEST(played.exit_code == 0, played.out << played.err);
}

BOOST_AUTO_TEST_CASE(rules_and_dashboard_name_what_there_is) {
  const Names real = RealNames();
  const std::string rules = ReadFile(std::string(kMonitoring) + "/waybill.rules.yml");
  const std::set<std::string> recorded = Recorded(rules);
  BOOST_TEST(recorded.size() == 4U);
  std::set<std::string> used;
  // Of the rules everything but comments and words for people.
  std::istringstream lines(rules);
  std::string expressions;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string text = line.substr(begin);
    if (text.starts_with("#") || text.starts_with("summary:") || text.starts_with("description:") ||
        text.starts_with("- name:")) {
      continue;
    }
    expressions += line + "\n";
  }
  CheckExpression(expressions, real, recorded, used);
  BOOST_TEST(used.size() > 15U);

  const auto dashboard =
      nlohmann::json::parse(ReadFile(std::string(kMonitoring) + "/dashboard.json"));
  BOOST_TEST(dashboard["uid"] == "waybill");
  std::vector<std::string> asked;
  CollectExpressions(dashboard, asked);
  BOOST_TEST(asked.size() > dashboard["panels"].size());
  for (const std::string& expression : asked) CheckExpression(expression, real, recorded, used);
  const std::string nodes = dashboard["templating"]["list"][1]["query"]["query"];
  CheckExpression(nodes, real, recorded, used);
  std::set<int> ids;
  for (const nlohmann::json& panel : dashboard["panels"]) {
    BOOST_TEST(ids.insert(panel["id"].get<int>()).second);
    BOOST_TEST(!panel["targets"].empty(), panel["title"]);
    const auto& place = panel["gridPos"];
    BOOST_TEST(place["x"].get<int>() + place["w"].get<int>() <= 24, panel["title"]);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
