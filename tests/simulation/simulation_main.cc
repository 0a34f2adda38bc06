// ./dev simulate: lives of nodes against the real library, and a table of what was measured.
//   --decisions N   in all; 10,000,000 if not given
//   --seed S        the first life's, random if not given; one life with the seed that a failure
//                   names plays it again
//   --scenario NAME only this one
//   --details yes   also histories of some wrong closings
//   --json FILE     write the table there, too, as docs/figures.md cites it
//   --count yes     wrong openings are counted, and the first one ends nothing
//   --rules LIST    of imported, quiet and remember, with commas between: only these; none: without

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/node_life.h"
#include "tests/simulation/simulate.h"

namespace waybill::simulation {

namespace {

// Fewer rightful decisions say nothing about one in 100,000.
constexpr std::uint64_t kEnoughToMeasure = 200'000;

struct Arguments {
  std::uint64_t decisions = 10'000'000;
  std::uint64_t seed = std::random_device{}();
  std::string scenario = {};
  bool details = false;
  bool counts = false;
  std::optional<std::string> rules = {};  // nullopt: as the scenarios say
  std::string json = {};
};

bool Parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--decisions") {
      arguments.decisions = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--seed") {
      arguments.seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--scenario") {
      arguments.scenario = argv[i + 1];
    } else if (name == "--rules") {
      arguments.rules = argv[i + 1];
    } else if (name == "--json") {
      arguments.json = argv[i + 1];
    } else if (name == "--details") {
      arguments.details = true;
    } else if (name == "--count") {
      arguments.counts = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && arguments.decisions > 0;
}

Scenario WithRules(Scenario scenario, const std::optional<std::string>& rules) {
  if (!rules) return scenario;
  const auto has = [&](const char* rule) { return rules->find(rule) != std::string::npos; };
  scenario.tells_imports = has("imported");
  scenario.tells_quiet = has("quiet");
  scenario.remembers = has("remember");
  return scenario;
}

double InHours(Millis time) { return static_cast<double>(time) / kHour; }
double InSeconds(Millis time) { return static_cast<double>(time) / kSecond; }

void PrintHeader() {
  constexpr const char* kLine =
      "{:<13} {:>12} {:>9} {:>14}  {:>5} {:>8} {:>6} {:>5} {:>8} {:>6}  {:>5}  {:>4}  {:>7}  {:>6} "
      "{:>7} {:>7} {:>8}\n";
  fmt::print(fmt::runtime(kLine), "", "", "", "closed wrongly", "open", "by a", "limit:", "", "",
             "open", "pulls:", "hour", "s:", "waits:", "", "s", "");
  fmt::print(fmt::runtime(kLine), "scenario", "decisions", "rightful", "in 1,000", "late",
             "partial", "retag", "lost", "presumed", "most", "storm", "pull", "refused", "number",
             "median", "99 %", "seconds");
}

// A number above its bound has an exclamation mark. Returns whether all bounds were kept.
bool Print(const Scenario& scenario, const Figures& figures, double seconds) {
  bool all_kept = true;
  const auto mark = [&](bool kept) {
    all_kept = all_kept && kept;
    return kept ? ' ' : '!';
  };
  const auto at_most = [](int bound, std::size_t value) {
    return bound < 0 || value <= static_cast<std::size_t>(bound);
  };
  const double wrong = figures.WrongClosingsIn1000();
  const bool closings_kept = scenario.wrong_closings_at_most < 0 ||
                             figures.rightful < kEnoughToMeasure ||
                             wrong <= scenario.wrong_closings_at_most;
  fmt::print(
      "{:<13} {:>12} {:>9} {:>14.4f}{} {:>5} {:>8} {:>6} {:>5} {:>8} {:>6}{} {:>5}{} {:>4.1f}{} "
      "{:>7.1f}  {:>6} {:>7.0f} {:>7.0f} {:>8.0f}\n",
      scenario.name, figures.decisions, figures.rightful, wrong, mark(closings_kept), figures.late,
      figures.partial_lists, figures.retagged, figures.lost, figures.presumed,
      figures.open_pulls_most, mark(at_most(scenario.open_pulls_at_most, figures.open_pulls_most)),
      figures.open_pulls_after_storm_most,
      mark(at_most(scenario.open_pulls_after_storm_at_most, figures.open_pulls_after_storm_most)),
      InHours(figures.pull_stuck_longest), mark(figures.pull_stuck_longest <= kDay),
      InHours(figures.refused_longest), figures.waits.size(), InSeconds(figures.WaitOf(50)),
      InSeconds(figures.WaitOf(99)), seconds);
  if (scenario.kubelet_beside) {
    fmt::print("  a kubelet without waybill beside it opens wrongly: {}\n",
               figures.opened_by_kubelet);
  }
  for (const auto& [why, number] : figures.wrong_openings) {
    all_kept = false;
    fmt::print("  WRONG: {} openings, although {}\n", number, why);
  }
  std::fflush(stdout);
  return all_kept;
}

std::string JsonOf(const Scenario& scenario, const Figures& figures) {
  return fmt::format(
      "{{\"what\": \"{}\", \"decisions\": {}, \"rightful\": {}, \"closedIn1000\": {:.3f}, "
      "\"opened\": {}, \"late\": {}, \"partialLists\": {}, \"retagged\": {}, \"lost\": {}, "
      "\"openedByKubelet\": {}, \"openPulls\": {}, \"openPullsAfterStorm\": {}, "
      "\"refusedSeconds\": {:.0f}, \"waits\": {}, \"waitMedianSeconds\": {:.0f}, "
      "\"wait99Seconds\": {:.0f}}}",
      scenario.name, figures.decisions, figures.rightful, figures.WrongClosingsIn1000(),
      figures.late + figures.partial_lists + figures.retagged + figures.lost, figures.late,
      figures.partial_lists, figures.retagged, figures.lost, figures.opened_by_kubelet,
      figures.open_pulls_most, figures.open_pulls_after_storm_most,
      InSeconds(figures.refused_longest), figures.waits.size(), InSeconds(figures.WaitOf(50)),
      InSeconds(figures.WaitOf(99)));
}

bool WriteJson(const Arguments& arguments, const std::vector<std::string>& rows) {
  const char* const commit = std::getenv("WAYBILL_COMMIT");
  std::ofstream out(arguments.json);
  out << fmt::format(
      "{{\"name\": \"simulation\", \"again\": \"./dev bench simulation --decisions {} --seed "
      "{}\",\n"
      " \"machine\": {{\"commit\": \"{}\"}}, \"decisions\": {}, \"seed\": {}, \"rows\": [\n"
      "  {}]}}\n",
      arguments.decisions, arguments.seed, commit == nullptr ? "not given" : commit,
      arguments.decisions, arguments.seed, fmt::join(rows, ",\n  "));
  return !!out.flush();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments)) {
    fmt::print(stderr,
               "usage: {} [--decisions N] [--seed S] [--scenario NAME] [--details yes] "
               "[--count yes] [--rules LIST] [--json FILE]\nscenarios:",
               argv[0]);
    for (const Scenario& scenario : Scenarios()) fmt::print(stderr, " {}", scenario.name);
    fmt::print(stderr, "\n");
    return 2;
  }
  fmt::print("seed {}\n", arguments.seed);
  std::span<const Scenario> scenarios = Scenarios();
  if (!arguments.scenario.empty()) {
    const Scenario* const one = FindScenario(arguments.scenario);
    if (one == nullptr) {
      fmt::print(stderr, "there is no scenario {}\n", arguments.scenario);
      return 2;
    }
    scenarios = {one, 1};
  }
  bool all_kept = true;
  std::vector<std::string> rows;
  PrintHeader();
  try {
    for (const Scenario& one : scenarios) {
      Scenario scenario = WithRules(one, arguments.rules);
      scenario.counts_openings = arguments.counts;
      const auto began = std::chrono::steady_clock::now();
      const Figures figures =
          Simulate(scenario, arguments.decisions / scenarios.size(), arguments.seed);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      all_kept = Print(scenario, figures, took.count()) && all_kept;
      if (arguments.details) {
        for (const std::string& example : figures.examples) fmt::print("  {}\n", example);
      }
      rows.push_back(JsonOf(scenario, figures));
    }
  } catch (const Wrong& wrong) {
    fmt::print("WRONG: {}\n", wrong.what());
    return 1;
  }
  if (!arguments.json.empty() && !WriteJson(arguments, rows)) {
    fmt::print(stderr, "cannot write {}\n", arguments.json);
    return 1;
  }
  return all_kept ? 0 : 1;
}

}  // namespace

}  // namespace waybill::simulation

int main(int argc, char** argv) { return waybill::simulation::Main(argc, argv); }
