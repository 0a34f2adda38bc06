// What is measured of the peers. Within a row they take turns: in each turn every peer does a short
// batch, the turns begin with another peer each time, and a ratio is that of one turn.

#ifndef WAYBILL_BENCH_PEERS_ROWS_H_
#define WAYBILL_BENCH_PEERS_ROWS_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/peers/peer.h"

namespace waybill::bench {

using Peers = std::vector<std::unique_ptr<Peer>>;  // the first is waybill

struct ReadPlan {
  std::size_t batch = 500;
  std::size_t turns = 301;
};

struct WritePlan {
  std::chrono::milliseconds latency{0};  // added to every flush
  std::size_t batch = 0;                 // of one caller
  std::size_t turns = 0;
  std::size_t together = 0;  // of all callers
  std::size_t together_turns = 0;
};

// The peers are closed, before and after.
void MeasureDisk(const Peers& peers, std::size_t records, Figures& figures);

// The peers are open, before and after.
void MeasureReads(const Peers& peers, std::size_t records, const ReadPlan& plan, Figures& figures);
// Pulls alone, and from 64 callers. Adds their records.
void MeasureWrites(const Peers& peers, std::size_t records, const WritePlan& plan,
                   Figures& figures);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_ROWS_H_
