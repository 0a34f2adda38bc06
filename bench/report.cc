#include "bench/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace waybill::bench {

namespace {

constexpr const char* kColumns = "{:<50} {:>11}  {:<34} {:>13} {:<15} {:<9} {}\n";

std::string ReachText(const Reach& reach) {
  switch (reach.kind) {
    case Reach::Kind::kNone:
      return "";
    case Reach::Kind::kAtMost:
      return fmt::format("<= {:g}", reach.value);
    case Reach::Kind::kAtLeast:
      return fmt::format(">= {:g}", reach.value);
  }
  return "";
}

std::string QuartilesText(const Spread& spread) {
  if (spread.low == spread.high) return "";
  return fmt::format("{:.2f} to {:.2f}", spread.low, spread.high);
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print("*** WARNING: {} ***\n", warning);
}

}  // namespace

std::string Duration(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.2f} s", nanoseconds / 1e9);
}

std::string Grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string Report::Verdict(const Row& row) const {
  if (row.reach.kind == Reach::Kind::kNone) return "";
  if (!judged_) return "not judged";
  return row.reach.Reached(row.result) ? "reached" : "NOT reached";
}

void Report::PrintHead() const {
  for (const auto& [name, value] : facts_) fmt::print("{:<12} {}\n", name, value);
  PrintWarnings(warnings_);
  fmt::print("\n");
  fmt::print(kColumns, "what", "waybill", "beside", "result", "quartiles", "reach", "");
  std::fflush(stdout);
}

void Report::Add(const Row& row) {
  rows_.push_back(row);
  fmt::print(kColumns, row.what, row.ours, row.beside,
             fmt::format("{:.2f} {}", row.result.median, row.unit), QuartilesText(row.result),
             ReachText(row.reach), Verdict(row));
  std::fflush(stdout);
}

void Report::PrintFoot() const {
  fmt::print("\n");
  PrintWarnings(warnings_);
}

std::string Report::Json() const {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : facts_) json["machine"][name] = value;
  json["warnings"] = warnings_;
  for (const Row& row : rows_) {
    nlohmann::ordered_json one{{"what", row.what},     {"waybill", row.ours},
                               {"beside", row.beside}, {"result", row.result.median},
                               {"unit", row.unit},     {"reach", ReachText(row.reach)}};
    if (row.result.low != row.result.high) {
      one["quartiles"] = {row.result.low, row.result.high};
    }
    if (judged_ && row.reach.kind != Reach::Kind::kNone) {
      one["reached"] = row.reach.Reached(row.result);
    }
    json["rows"].push_back(std::move(one));
  }
  return json.dump(2) + '\n';
}

}  // namespace waybill::bench
