// Times one operation at a time, in turns with bare work: a bare lookup, a bare commit or a bare
// scan of LMDB on the same records. A row gets as many turns as fit into its time.

#ifndef WAYBILL_BENCH_MICRO_FRAME_H_
#define WAYBILL_BENCH_MICRO_FRAME_H_

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/data_set.h"
#include "bench/figures.h"
#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/scratch.h"

namespace waybill::bench {

struct Pace {
  bool quick = false;
  double row_ns = 150e6;         // after that a row ends
  double turn_ns = 100e3;        // a turn of a short operation
  std::size_t fewest_turns = 5;  // even if they take longer
  std::size_t most_turns = 1001;
  std::size_t long_turns = 3;  // of operations on whole stores
  std::size_t import_files = 10'000;
  std::size_t pods = 65'534;  // of a full pool
  std::size_t bindings_batch = 20'000;
  std::size_t bindings_turns = 41;
};
inline Pace QuickPace() {
  return {.quick = true,
          .row_ns = 0,
          .turn_ns = 0,
          .fewest_turns = 2,
          .most_turns = 2,
          .long_turns = 1,
          .import_files = 50,
          .pods = 200,
          .bindings_batch = 10,
          .bindings_turns = 1};
}

// The bare work.
class Bare {
 public:
  // `peer` has the records that `questions` ask for. Both outlive this.
  Bare(BareLmdb& peer, const Questions& questions) : peer_(peer), questions_(questions) {}

  void Lookup() {
    if (!peer_.Lookup(questions_[next_++ % questions_.size()].image_ref)) {
      throw std::runtime_error("a bare lookup found nothing; the figures are void");
    }
  }
  void Commit() {
    there_ ? peer_.DeleteIntent("registry.example.com/bare:1")
           : peer_.PutIntent("registry.example.com/bare:1");
    there_ = !there_;
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

inline void Unexpected(const std::string& what) {
  throw std::runtime_error(what + " did not do what was expected; the figures are void");
}

// Adds a row: `ours` does operation number i, `bare` what it is compared with, `after` what must
// follow each turn outside its time.
template <typename Ours, typename BareWork, typename After>
void Beside(Figures& figures, const Pace& pace, const std::string& what, std::size_t batch,
            const Ours& ours, std::size_t bare_batch, const BareWork& bare, const After& after,
            std::size_t fewest_turns) {
  std::vector<double> times;
  std::vector<double> ratios;
  std::size_t next = 0;
  double spent = 0;
  for (std::size_t turn = 0; turn < fewest_turns || (turn < pace.most_turns && spent < pace.row_ns);
       ++turn) {
    spent += NanosecondsOf([&] {
      const double mine = NanosecondsOf([&] {
        for (std::size_t i = 0; i < batch; ++i) ours(next++);
      });
      after();
      const double theirs = NanosecondsOf([&] {
        for (std::size_t i = 0; i < bare_batch; ++i) bare();
      });
      times.push_back(mine / static_cast<double>(batch));
      ratios.push_back(times.back() / (theirs / static_cast<double>(bare_batch)));
    });
  }
  figures.Add(
      {.what = what, .ratio = Spread(std::move(ratios)), .value = Spread(std::move(times))});
}

inline constexpr auto kNothingAfter = [] {};

// A short operation that reads, or none of the disk at all, beside bare lookups.
template <typename Ours>
void BesideLookup(Figures& figures, const Pace& pace, Bare& bare, const std::string& what,
                  const Ours& ours) {
  std::size_t i = 0;
  const double first =
      std::max(1.0, std::min(NanosecondsOf([&] { ours(i++); }), NanosecondsOf([&] { ours(i++); })));
  const auto batch = static_cast<std::size_t>(std::clamp(pace.turn_ns / first, 1.0, 200.0));
  Beside(
      figures, pace, what, batch, ours, pace.quick ? 2 : 200, [&] { bare.Lookup(); }, kNothingAfter,
      pace.fewest_turns);
}

// An operation that commits, beside a bare commit of one value. `undo` follows each.
template <typename Ours, typename Undo>
void BesideCommit(Figures& figures, const Pace& pace, Bare& bare, const std::string& what,
                  const Ours& ours, const Undo& undo) {
  std::size_t last = 0;
  Beside(
      figures, pace, what, 1, [&](std::size_t i) { ours(last = i); }, 1, [&] { bare.Commit(); },
      [&] { undo(last); }, pace.fewest_turns);
}

// An operation on the whole store, beside a bare opening and scan.
template <typename Ours, typename Undo>
void BesideScan(Figures& figures, const Pace& pace, Bare& bare, const std::string& what,
                const Ours& ours, const Undo& undo) {
  Beside(
      figures, pace, what, 1, ours, 1, [&] { bare.Scan(); }, undo, pace.long_turns);
}
template <typename Ours>
void BesideScan(Figures& figures, const Pace& pace, Bare& bare, const std::string& what,
                const Ours& ours) {
  BesideScan(figures, pace, bare, what, ours, kNothingAfter);
}

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MICRO_FRAME_H_
