// Memory of a peer that has read all records: measured in a process of its own, which this program
// starts as `--resident NAME`.

#ifndef WAYBILL_BENCH_PEERS_RESIDENT_H_
#define WAYBILL_BENCH_PEERS_RESIDENT_H_

#include <cstddef>

#include "bench/peers/peer.h"

namespace waybill::bench {

struct Resident {
  std::size_t private_bytes = 0;  // more than before the store was opened
  std::size_t mapped_bytes = 0;   // of the store's files, which the kernel may drop
};

// The peer is closed.
Resident ResidentAfterReads(const Peer& peer, std::size_t records);

// The other process: prints its figures. Returns the exit code.
int RunResident(Peer& peer, std::size_t records);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_RESIDENT_H_
