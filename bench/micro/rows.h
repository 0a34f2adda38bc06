// The rows of a run, each a benchmark of Google Benchmark: one operation, and bare work (a lookup,
// a commit or a scan of LMDB on the same records) in each of its repetitions.

#ifndef WAYBILL_BENCH_MICRO_ROWS_H_
#define WAYBILL_BENCH_MICRO_ROWS_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/bare_lmdb.h"
#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/program.h"
#include "bench/scratch.h"

namespace waybill::bench {

using benchmark::State;

struct Times {
  int repetitions = 0;  // 0: as many as the run says
  int iterations = 0;   // of a repetition; 0: as many as it takes
  bool by_hand = true;  // the body says what an iteration took
};
// Of operations on whole stores.
inline constexpr Times kLong{.repetitions = 3, .iterations = 1};

struct Micro : Run {
  // Adds a row: runs the body at once, since rows change the store, and what stands between two
  // belongs to the second. The body sets the counter kBare.
  void Row(const std::string& what, const std::function<void(State&)>& body,
           const Times& times = {}) const;
};

// Nanoseconds of the work that the row's ratio is to.
inline constexpr char kBare[] = "bare";

// The bare work.
class Bare {
 public:
  // `peer` has the records that `questions` ask for. Both outlive this.
  Bare(BareLmdb& peer, const Questions& questions) : peer_(peer), questions_(questions) {}

  void Lookup() {
    if (peer_.Lookup(questions_[next_++ % questions_.size()].image_ref).empty()) {
      throw std::runtime_error("a bare lookup found nothing; the figures are void");
    }
  }
  // Puts or deletes a value as long as a pull intent.
  void Commit() {
    static const std::string intent(144, 'z');
    there_ = !there_;
    peer_.Write({{Table::kIntents, "registry.example.com/bare:1", there_ ? intent : ""}});
  }
  void Scan() {
    if (peer_.ReopenAndScan() < questions_.size()) {
      throw std::runtime_error("bare LMDB lost records; the figures are void");
    }
  }

 private:
  BareLmdb& peer_;
  const Questions& questions_;
  std::size_t next_ = 0;
  bool there_ = false;
};

inline void Expect(bool done, const std::string& what) {
  if (!done) throw std::runtime_error(what + " did not do what was expected; the figures are void");
}

inline constexpr auto kNothing = [] {};

// Each iteration times `bare`, then `ours`: so many operations each. `before` and `after` stand
// around ours, outside its time.
template <typename BareWork, typename Before, typename Ours, typename After = decltype(kNothing)>
void Beside(State& state, const BareWork& bare, const Before& before, const Ours& ours,
            const After& after = kNothing) {
  double theirs = 0;
  for (auto _ : state) {
    theirs += NanosecondsOf(bare);
    before();
    state.SetIterationTime(NanosecondsOf(ours) / 1e9);
    after();
  }
  state.counters[kBare] = theirs / static_cast<double>(state.iterations());
}

// Operation number i, which is short and reads, or uses no disk at all; then bare lookups.
template <typename Ours>
void BesideLookup(const Micro& micro, Bare& bare, const std::string& what, const Ours& ours) {
  std::size_t i = 0;
  const auto body = [&](State& state) {
    for (auto _ : state) ours(i++);
    constexpr std::size_t kLookups = 1000;
    state.counters[kBare] = NanosecondsOf([&] {
                              for (std::size_t k = 0; k < kLookups; ++k) bare.Lookup();
                            }) /
                            static_cast<double>(kLookups);
  };
  micro.Row(what, body, {.by_hand = false});
}

// An operation that commits, beside a bare commit of one value.
template <typename Before, typename Ours, typename After = decltype(kNothing)>
void BesideCommit(const Micro& micro, Bare& bare, const std::string& what, const Before& before,
                  const Ours& ours, const After& after = kNothing) {
  const auto commit = [&] { bare.Commit(); };
  micro.Row(what, [&](State& state) { Beside(state, commit, before, ours, after); });
}

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

// decisions.cc
void MeasureKindsOfDecisions(const Micro& micro, const MicroStore& on);
void MeasureThreads(const Micro& micro, const MicroStore& on);
// Makes stores of its own.
void MeasureSecrets(const Micro& micro);

// bindings.cc: through C and, where the run's text names bindings/go/bench, through Go
void MeasureBindings(const Micro& micro, const MicroStore& on);

// calls.cc: changes the store, but not its records of the data set
void MeasureCommits(const Micro& micro, const MicroStore& on);
void MeasureUserNamespaces(const Micro& micro, const MicroStore& on);
void MeasureWholeStores(const Micro& micro, const MicroStore& on);
// Makes stores of its own.
void MeasureFullPool(const Micro& micro);

// revocation.cc. Makes stores of its own.
void MeasureRevocation(const Micro& micro, std::size_t records);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MICRO_ROWS_H_
