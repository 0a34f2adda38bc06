// Counts what this process makes the disk do, and says how long a flush takes: the program's own
// fsync, fdatasync, syncfs, msync and writes take the place of the C library's, also for LMDB,
// SQLite and RocksDB, which are shared libraries.
//
// A flush is: fsync, fdatasync, syncfs, msync with MS_SYNC, and a write to a file that was opened
// with O_DSYNC or O_SYNC (LMDB writes its meta page so). sync_file_range is none: it does not empty
// the disk's own cache, and nobody here relies on it.

#ifndef WAYBILL_BENCH_DISK_CALLS_H_
#define WAYBILL_BENCH_DISK_CALLS_H_

#include <chrono>
#include <cstdint>
#include <functional>

namespace waybill::bench {

struct DiskCalls {
  std::uint64_t flushes = 0;
  // Handed to write, pwrite and their vectors, without the zeros by which the store's file grows.
  std::uint64_t bytes = 0;
  // The bytes of each write in whole blocks of 4 KiB: what a disk takes at least.
  std::uint64_t block_bytes = 0;

  friend DiskCalls operator-(DiskCalls a, const DiskCalls& b) {
    return {a.flushes - b.flushes, a.bytes - b.bytes, a.block_bytes - b.block_bytes};
  }
  DiskCalls& operator+=(const DiskCalls& b) {
    flushes += b.flushes;
    bytes += b.bytes;
    block_bytes += b.block_bytes;
    return *this;
  }
};

// Of all threads, since the program started.
DiskCalls DiskCallsSoFar();

// Added to every flush from now on, as a slower disk would; 0: the disk as it is. The disk runs one
// flush at a time. Flushes that are asked for meanwhile wait for the next one, and share it, as
// Linux's block layer merges them: so callers on many threads are not slowed one after the other.
void AddToFlushes(std::chrono::nanoseconds latency);

// From now on flushes are counted, but do nothing: days of a node pass in seconds. That of
// commit.mark in the background is not counted, since where it falls then nobody can tell.
void SkipFlushes();

// Called once, before this thread's next flush of a data.mdb: what a kill leaves within a commit.
void BeforeNextCommitsFlush(std::function<void()> call);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_DISK_CALLS_H_
