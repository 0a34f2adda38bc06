#include "bench/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bindings/cli/sizing_model.h"

namespace waybill::bench {

namespace {

constexpr const char* kFigureColumns = "  {:<52} {:>10} {:<16} {:>11} {:<22} {:>12}  {}";

// Three digits.
std::string RatioText(double ratio) {
  if (ratio >= 100) return fmt::format("{:.0f}", ratio);
  return ratio >= 10 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.2f}", ratio);
}

std::string ValueText(double value, Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds:
      return cli::SecondsText(value / 1e9);
    case Unit::kBytes:
      return cli::BytesText(value);
    case Unit::kPerSecond:
      return Grouped(static_cast<std::size_t>(value)) + " /s";
  }
  return "";
}

double FourDigits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

nlohmann::ordered_json ToJson(const Spread& spread) {
  return {FourDigits(spread.median), FourDigits(spread.low), FourDigits(spread.high)};
}

nlohmann::ordered_json ToJson(const Figure& figure) {
  nlohmann::ordered_json json{{"what", figure.what}};
  if (figure.ratio) json["ratio"] = ToJson(*figure.ratio);
  constexpr const char* kUnits[] = {"ns", "bytes", "per_second"};
  json[kUnits[static_cast<int>(figure.unit)]] = ToJson(figure.value);
  if (figure.flushes) json["flushes"] = FourDigits(*figure.flushes);
  if (!figure.note.empty()) json["note"] = figure.note;
  return json;
}

void PrintLine(const std::string& line) {
  fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
}

void PrintAll(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print("*** WARNING: {} ***\n", warning);
}

}  // namespace

std::string Grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

void Figures::PrintHead() const {
  fmt::print("{:<12} {}\n", "again", head_.again);
  for (const auto& [name, value] : head_.machine.facts) fmt::print("{:<12} {}\n", name, value);
  PrintAll(head_.machine.warnings);
  std::fflush(stdout);
}

void Figures::Begin(const std::string& group, const std::string& ratio) {
  if (groups_.empty()) PrintHead();
  groups_.push_back({group, ratio, {}});
  fmt::print("\n{}\n", group);
  PrintLine(fmt::format(kFigureColumns, "", ratio, "quartiles", "median", "quartiles", "", ""));
}

void Figures::Add(const Figure& figure) {
  if (figure.ratio && !(std::isfinite(figure.ratio->median) && figure.ratio->median > 0)) {
    throw std::runtime_error("the ratio of " + groups_.back().name + ": " + figure.what +
                             " is no number above 0; the figures are void");
  }
  groups_.back().rows.push_back(figure);
  const auto quartiles = [](const Spread& spread, const auto& text) {
    return spread.low == spread.high ? std::string()
                                     : fmt::format("{} to {}", text(spread.low), text(spread.high));
  };
  const auto value = [&figure](double one) { return ValueText(one, figure.unit); };
  PrintLine(fmt::format(
      kFigureColumns, figure.what, figure.ratio ? RatioText(figure.ratio->median) : "",
      figure.ratio ? quartiles(*figure.ratio, RatioText) : "", value(figure.value.median),
      quartiles(figure.value, value),
      figure.flushes ? fmt::format("{:.2f} flushes", *figure.flushes) : "", figure.note));
  std::fflush(stdout);
}

void Figures::PrintFoot() {
  head_.machine.End();
  fmt::print("\n{:<12} {}\n", "load", head_.machine.Fact("load"));
  PrintAll(head_.machine.warnings);
}

std::string Figures::Json() const {
  nlohmann::ordered_json json{{"name", head_.name}, {"again", head_.again}};
  for (const auto& [name, value] : head_.machine.facts) json["machine"][name] = value;
  json["warnings"] = head_.machine.warnings;
  std::string text = json.dump(1);
  text.resize(text.size() - 2);  // "\n}": the groups follow
  text += ",\n \"groups\": [";
  for (const Group& group : groups_) {
    text += fmt::format("{}\n  {{\"group\": {}, \"ratio\": {}, \"rows\": [",
                        &group == groups_.data() ? "" : ",", nlohmann::json(group.name).dump(),
                        nlohmann::json(group.ratio).dump());
    for (const Figure& figure : group.rows) {
      text +=
          fmt::format("{}\n   {}", &figure == group.rows.data() ? "" : ",", ToJson(figure).dump());
    }
    text += "]}";
  }
  return text + "]\n}\n";
}

}  // namespace waybill::bench
