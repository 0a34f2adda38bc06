// The rows of a run: each function adds those of one kind.

#ifndef WAYBILL_BENCH_MICRO_ROWS_H_
#define WAYBILL_BENCH_MICRO_ROWS_H_

#include <cstddef>
#include <string>

#include "bench/micro/frame.h"

namespace waybill::bench {

struct Micro {
  const Scratch& scratch;
  Pace pace;
  Figures& figures;
};

// A store with `records` records of the data set, and up to 1000 images in its ledger.
struct MicroStore {
  ScratchStore& store;  // open, before and after
  std::size_t records;
  std::size_t ledger;
  const Questions& questions;
  Bare& bare;
};
inline constexpr std::uint64_t kLedgerImages = 30'000'000;  // the index of the first
inline constexpr std::uint64_t kNewImages = 60'000'000;     // of images that no store has
inline constexpr std::size_t kMostListed = 20'000;          // one list is one transaction

// An entry for each of the images from `first` on, with a tag and a digest.
std::vector<ImageOnNode> ListOfImages(std::uint64_t first, std::size_t count);

// decisions.cc
void MeasureKindsOfDecisions(const Micro& micro, const MicroStore& on);
void MeasureAllowlists(const Micro& micro, const MicroStore& on);
void MeasureTraced(const Micro& micro, const MicroStore& on);
void MeasureThreads(const Micro& micro, const MicroStore& on);
// Makes stores of its own.
void MeasureSecrets(const Micro& micro);
// Whether the decision is "use it", by the question's secret.
bool Hit(NodeStore& store, const Question& question);

// bindings.cc: through C and, where `go_program` (bindings/go/bench) is not empty, through Go
void MeasureBindings(const Micro& micro, const MicroStore& on, const std::string& go_program);
// previews.cc
void MeasurePreviews(const Micro& micro, const MicroStore& on);

// reads.cc
void MeasureReadingCalls(const Micro& micro, const MicroStore& on);
// writes.cc: changes the store, but not its records of the data set
void MeasureRecordingCalls(const Micro& micro, const MicroStore& on);
void MeasureRevocationCalls(const Micro& micro, const MicroStore& on);
// nodes.cc: runtime handlers and user namespaces
void MeasureHandlersAndNamespaces(const Micro& micro, const MicroStore& on);
// Makes stores of its own.
void MeasureFullPool(const Micro& micro);
// stores.cc: whole stores; the last of all, since it leaves the store distrustful
void MeasureWholeStores(const Micro& micro, const MicroStore& on);
// revocation.cc, import.cc. Make stores of their own.
void MeasureRevocation(const Micro& micro, std::size_t records);
void MeasureImport(const Micro& micro);

// pure.cc
void MeasurePureFunctions(const Micro& micro, Bare& bare);
// streaming.cc, with a store of its own
void MeasureStreaming(const Micro& micro, Bare& bare);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MICRO_ROWS_H_
