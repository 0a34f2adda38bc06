// The table that a run prints: a row for each measurement, beside what it is measured against.

#ifndef WAYBILL_BENCH_REPORT_H_
#define WAYBILL_BENCH_REPORT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"

namespace waybill::bench {

struct Reach {
  enum class Kind { kNone, kAtMost, kAtLeast } kind = Kind::kNone;
  double value = 0;

  bool Reached(double result) const {
    return kind == Kind::kAtMost ? result <= value : result >= value;
  }
};
inline Reach AtMost(double value) { return {Reach::Kind::kAtMost, value}; }
inline Reach AtLeast(double value) { return {Reach::Kind::kAtLeast, value}; }

struct Row {
  std::string what;
  std::string ours;
  std::string beside;  // empty: the row stands alone
  Spread result = 0;   // its median is compared with `reach`
  std::string unit;    // of result; "x" for a ratio
  Reach reach = {};
};

class Report {
 public:
  // `facts` (name and value) are printed above the table. Only a `judged` run says whether a row
  // reached its target.
  Report(std::vector<std::pair<std::string, std::string>> facts, std::vector<std::string> warnings,
         bool judged)
      : facts_(std::move(facts)), warnings_(std::move(warnings)), judged_(judged) {}

  // Prints the facts, the warnings and the column heads.
  void PrintHead() const;
  // Prints the row immediately, since a run takes a while.
  void Add(const Row& row);
  // The warnings again, since they have scrolled away.
  void PrintFoot() const;
  std::string Json() const;

 private:
  std::string Verdict(const Row& row) const;

  std::vector<std::pair<std::string, std::string>> facts_;
  std::vector<std::string> warnings_;
  bool judged_;
  std::vector<Row> rows_;
};

// "312 ns", "1.25 us", "3.50 ms", "1.20 s"
std::string Duration(double nanoseconds);
// "100,000"
std::string Grouped(std::size_t number);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_REPORT_H_
