// Counts what the program makes the disk do, by taking the place of the C library's calls.

#ifndef WAYBILL_BENCH_SIZING_IO_COUNT_H_
#define WAYBILL_BENCH_SIZING_IO_COUNT_H_

#include <cstdint>
#include <functional>

namespace waybill::bench {

struct IoCount {
  std::uint64_t flushes = 0;  // fsync, fdatasync, msync, and writes through O_DSYNC or O_SYNC
  std::uint64_t bytes = 0;    // handed to write, pwrite and their vectors
  // The bytes of each write in whole blocks of 4 KiB: what a disk takes at least.
  std::uint64_t block_bytes = 0;

  friend IoCount operator-(IoCount a, const IoCount& b) {
    return {a.flushes - b.flushes, a.bytes - b.bytes, a.block_bytes - b.block_bytes};
  }
  IoCount& operator+=(const IoCount& b) {
    flushes += b.flushes;
    bytes += b.bytes;
    block_bytes += b.block_bytes;
    return *this;
  }
};

// Of all threads, but for what CountAsFiles scopes did. Without the flush of commit.mark in the
// background, and without the zeros by which the store's file grows.
IoCount IoOfStore();
// What was done in CountAsFiles scopes.
IoCount IoOfFiles();

// On this thread, counts as the side of files what is done while this lives.
class CountAsFiles {
 public:
  CountAsFiles();
  ~CountAsFiles();
  CountAsFiles(const CountAsFiles&) = delete;
  CountAsFiles& operator=(const CountAsFiles&) = delete;
};

// Without, flushes are counted, but do nothing: to make a large store quickly.
void SetFlushing(bool flushing);

// Called once, before this thread's next flush of a data.mdb: what a kill leaves within a commit.
void BeforeNextCommitsFlush(std::function<void()> call);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_IO_COUNT_H_
