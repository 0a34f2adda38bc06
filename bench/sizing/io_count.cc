#include "bench/sizing/io_count.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>
#include <utility>

namespace waybill::bench {

namespace {

struct Counters {
  std::atomic<std::uint64_t> flushes{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> block_bytes{0};

  IoCount Read() const { return {flushes, bytes, block_bytes}; }
};
std::array<Counters, 2> counters;  // of the store, of files
std::atomic<bool> flushing{true};
thread_local std::size_t side = 0;
thread_local std::function<void()> before_flush;

bool IsNamed(int fd, std::string_view name) {
  std::array<char, 4096> path;
  const ssize_t length =
      readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  return length > 0 &&
         std::string_view(path.data(), static_cast<std::size_t>(length)).ends_with(name);
}

// commit.mark is flushed in the background within 200 ms of a commit: where in a replay of days in
// seconds, nobody can tell.
bool IsMarkInBackground(int fd) { return gettid() != getpid() && IsNamed(fd, "/commit.mark"); }

// The store's file grows in steps of 128 KiB and more, seldom, in any commit.
bool IsRoomAhead(int fd, off_t at) {
  struct stat file = {};
  return fstat(fd, &file) == 0 && at >= file.st_size && IsNamed(fd, "/data.mdb");
}

bool CountFlush(int fd) {
  if (before_flush && IsNamed(fd, "/data.mdb")) std::exchange(before_flush, nullptr)();
  if (!IsMarkInBackground(fd)) ++counters[side].flushes;
  return flushing;
}

bool CountFlushOfMapping() {
  ++counters[side].flushes;
  return flushing;
}

ssize_t CountWrite(int fd, long written) {
  if (written > 0) {
    constexpr std::uint64_t kBlock = 4096;
    const auto bytes = static_cast<std::uint64_t>(written);
    counters[side].bytes += bytes;
    counters[side].block_bytes += (bytes + kBlock - 1) / kBlock * kBlock;
    // O_SYNC contains O_DSYNC.
    if ((fcntl(fd, F_GETFL) & O_DSYNC) != 0) ++counters[side].flushes;
  }
  return written;
}

}  // namespace

IoCount IoOfStore() { return counters[0].Read(); }
IoCount IoOfFiles() { return counters[1].Read(); }
void SetFlushing(bool value) { flushing = value; }
void BeforeNextCommitsFlush(std::function<void()> call) { before_flush = std::move(call); }

CountAsFiles::CountAsFiles() { side = 1; }
CountAsFiles::~CountAsFiles() { side = 0; }

}  // namespace waybill::bench

// The C library's calls, under each name that the libraries use.
#define WAYBILL_REPLACES extern "C" [[gnu::visibility("default")]]

using waybill::bench::CountFlush;
using waybill::bench::CountFlushOfMapping;
using waybill::bench::CountWrite;
using waybill::bench::IsRoomAhead;

WAYBILL_REPLACES int fdatasync(int fd) {
  return CountFlush(fd) ? static_cast<int>(syscall(SYS_fdatasync, fd)) : 0;
}
WAYBILL_REPLACES int fsync(int fd) {
  return CountFlush(fd) ? static_cast<int>(syscall(SYS_fsync, fd)) : 0;
}
WAYBILL_REPLACES int msync(void* at, size_t length, int flags) {
  return CountFlushOfMapping() ? static_cast<int>(syscall(SYS_msync, at, length, flags)) : 0;
}
WAYBILL_REPLACES ssize_t write(int fd, const void* data, size_t size) {
  return CountWrite(fd, syscall(SYS_write, fd, data, size));
}
WAYBILL_REPLACES ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  if (IsRoomAhead(fd, at)) return syscall(SYS_pwrite64, fd, data, size, at);
  return CountWrite(fd, syscall(SYS_pwrite64, fd, data, size, at));
}
WAYBILL_REPLACES ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  return pwrite(fd, data, size, at);
}
WAYBILL_REPLACES ssize_t writev(int fd, const struct iovec* parts, int count) {
  return CountWrite(fd, syscall(SYS_writev, fd, parts, count));
}
WAYBILL_REPLACES ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) {
  return CountWrite(fd, syscall(SYS_pwritev, fd, parts, count, at, 0L));
}
WAYBILL_REPLACES ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t at) {
  return CountWrite(fd, syscall(SYS_pwritev, fd, parts, count, at, 0L));
}
