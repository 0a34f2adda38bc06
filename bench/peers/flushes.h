// Counts the flushes of this process, and makes each take longer, as a slower disk would: for
// waybill and all its peers alike.
//
// The program's own fsync, fdatasync, syncfs, msync and writes take the place of the C library's,
// also for LMDB, SQLite and RocksDB, which are shared libraries. A flush is: fsync, fdatasync,
// syncfs, msync with MS_SYNC, and a write to a file that was opened with O_DSYNC or O_SYNC (LMDB
// writes its meta page so) or with RWF_DSYNC or RWF_SYNC. sync_file_range is none: it does not
// empty the disk's own cache, and nobody here relies on it.
//
// The disk runs one flush at a time. Flushes that are asked for meanwhile wait for the next one,
// and share it, as Linux's block layer merges them: so callers on many threads, whoever they are,
// are not slowed one after the other.

#ifndef WAYBILL_BENCH_PEERS_FLUSHES_H_
#define WAYBILL_BENCH_PEERS_FLUSHES_H_

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace waybill::bench {

// Since the program started.
std::uint64_t Flushes();

// Added to every flush from now on; 0: the disk as it is.
void AddToFlushes(std::chrono::nanoseconds latency);

// Throws unless each kind of flush is counted once.
void CheckThatFlushesAreCounted(const std::filesystem::path& scratch);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PEERS_FLUSHES_H_
