// Figures of several contenders beside each other: ratios first, medians with their quartiles.
// Printed as a text table, group by group, and written as JSON, a row a line:
//
//   {"name": …, "again": the command, "machine": {"commit", "date", "load", …}, "warnings": […],
//    "groups": [{"group": …, "ratio": what it is of, "rows": [
//      {"what": …, "ratio": [median, low, high], "ns": [median, low, high], "flushes": …,
//       "note": …}, …]}, …]}
//
// `low` and `high` are quartiles. "ratio", "flushes" and "note" are missing where there are none.
// In place of "ns" stands "bytes" or "per_second". Numbers have four digits.

#ifndef WAYBILL_BENCH_FIGURES_H_
#define WAYBILL_BENCH_FIGURES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/measure.h"

namespace waybill::bench {

enum class Unit { kNanoseconds, kBytes, kPerSecond };

struct Figure {
  std::string what;
  std::optional<Spread> ratio = {};
  Spread value = {};
  Unit unit = Unit::kNanoseconds;
  std::optional<double> flushes = {};  // of one operation
  std::string note = {};
};

class Figures {
 public:
  struct Head {
    std::string name;
    std::string again;  // the command that makes these figures
    Machine machine;
  };
  explicit Figures(Head head) : head_(std::move(head)) {}

  // For what a program adds to it, before the first group is printed.
  Machine& machine() { return head_.machine; }
  // The figures that follow belong together, and their ratios are of the same: "x waybill".
  void Begin(const std::string& group, const std::string& ratio = "x waybill");
  // Prints it immediately, since a run takes a while.
  void Add(const Figure& figure);
  // Ends the run: the load of the machine is then known.
  void PrintFoot();
  std::string Json() const;

 private:
  void PrintHead() const;
  struct Group {
    std::string name;
    std::string ratio;
    std::vector<Figure> rows;
  };

  Head head_;
  std::vector<Group> groups_;
};

// "100,000"
std::string Grouped(std::size_t number);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_FIGURES_H_
