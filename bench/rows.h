// The measurements of a run. Each function adds rows to the report.

#ifndef WAYBILL_BENCH_ROWS_H_
#define WAYBILL_BENCH_ROWS_H_

#include <cstddef>
#include <filesystem>
#include <string>

#include "bench/data_set.h"
#include "bench/report.h"
#include "bench/scratch.h"

namespace waybill::bench {

struct Effort {
  bool quick = false;
  std::size_t decision_batch = 200;  // decisions a turn
  std::size_t decision_turns = 4000;
  std::size_t thread_turns = 300;
  std::size_t commits = 200;  // durable calls, each beside a bare commit
  std::size_t group_turns = 8;
  std::size_t openings = 9;
  std::size_t lists = 5;
  std::size_t forgets = 5;
  std::size_t previews = 41;
  std::size_t migrations = 5;
  std::size_t import_files = 10'000;
  std::size_t pods = 65'534;  // of a full pool
  std::size_t allocations = 300;
  std::size_t bindings_batch = 20'000;
  std::size_t bindings_turns = 41;
};
Effort QuickEffort();

struct Bench {
  const Scratch& scratch;
  Effort effort;
  Report& report;
};

// decisions.cc. `store` has the first `records` records, and is open before and after. `reach`, the
// target, depends on the size: in a large store the bare lookup takes longer, since its pages are
// not in the processor's cache.
void MeasureDecisions(const Bench& bench, ScratchStore& store, std::size_t records, double reach);
void MeasureThreads(const Bench& bench, ScratchStore& store, std::size_t records);
// Whether the decision is "use it", by the question's secret.
bool Hit(NodeStore& store, const Question& question);

// writes.cc
void MeasureIntents(const Bench& bench, ScratchStore& store, std::size_t records);
// Returns the median time of a pull in nanoseconds. Adds some records to `store`.
double MeasurePulls(const Bench& bench, ScratchStore& store, std::size_t records);

// opening.cc
void MeasureOpening(const Bench& bench, ScratchStore& store, std::size_t records);
void MeasureSize(const Bench& bench, ScratchStore& store, std::size_t records);
void MeasureImport(const Bench& bench);

// evidence.cc. Makes a store of its own.
void MeasureEvidence(const Bench& bench, std::size_t records);

// revocation.cc. Makes stores of its own.
void MeasureRevocation(const Bench& bench, std::size_t records);

// previews.cc. As decisions.cc.
void MeasurePreviews(const Bench& bench, ScratchStore& store, std::size_t records);

// migrations.cc
void MeasureMigrations(const Bench& bench, ScratchStore& store, std::size_t records);

// user_namespaces.cc. `store` has `records` records, and is open before and after.
void MeasureUserNamespaces(const Bench& bench, ScratchStore& store, std::size_t records);

// bindings.cc. As decisions.cc; `go_program` is bindings/go/bench, empty without Go.
void MeasureBindings(const Bench& bench, ScratchStore& store, std::size_t records,
                     const std::string& go_program);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_ROWS_H_
