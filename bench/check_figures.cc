// check_figures FILE: the JSON of a run must parse; each of its ratios must be a finite number
// above 0, and each median lie between its quartiles. Checks no times.

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

using Json = nlohmann::json;

constexpr std::size_t kFewestRatios = 10;

void Require(bool good, const char* what, const Json& row) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + row.dump());
}

bool IsRatio(const Json& number) {
  return number.is_number() && std::isfinite(number.get<double>()) && number.get<double>() > 0;
}

// bench/figures.h. Returns how many ratios there are.
std::size_t CheckGroup(const Json& group) {
  std::size_t ratios = 0;
  for (const Json& row : group.at("rows")) {
    if (row.contains("ratio")) {
      for (const Json& number : row.at("ratio")) Require(IsRatio(number), "not a ratio", row);
      ++ratios;
    }
    bool has_value = false;
    for (const char* unit : {"ns", "bytes", "per_second"}) {
      if (!row.contains(unit)) continue;
      const auto value = row.at(unit).get<std::array<double, 3>>();
      Require(0 <= value[1] && value[1] <= value[0] && value[0] <= value[2],
              "not a median between its quartiles", row);
      has_value = true;
    }
    Require(has_value, "no value", row);
  }
  return ratios;
}

void CheckRun(const char* path) {
  std::ifstream in(path);
  const Json run = Json::parse(in);
  const Json& machine = run.at("machine");
  for (const char* fact : {"commit", "date", "machine", "rounds"}) {
    Require(!machine.at(fact).get<std::string>().empty(), "the run is not described", machine);
  }
  Require(machine.at("load").get<std::string>().find("after it") != std::string::npos,
          "no load after the run", machine);
  std::size_t ratios = 0;
  for (const Json& group : run.at("groups")) ratios += CheckGroup(group);
  Require(ratios >= kFewestRatios, "hardly any ratios", ratios);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("usage: check_figures FILE");
    CheckRun(argv[1]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
