#include "bench/disk_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace waybill::bench {

namespace {

std::atomic<std::uint64_t> flushes{0};
std::atomic<std::uint64_t> written_bytes{0};
std::atomic<std::uint64_t> block_bytes{0};
std::atomic<std::int64_t> latency_ns{0};
std::atomic<bool> skips{false};
thread_local std::function<void()> before_flush;

class SlowDisk {
 public:
  // Returns when a flush that began after this call has ended.
  void Flush(std::chrono::nanoseconds latency) {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = begun_ + 1;
    while (ended_ < mine) {
      if (begun_ != ended_) {
        changed_.wait(lock);
        continue;
      }
      ++begun_;
      lock.unlock();
      std::this_thread::sleep_for(latency);
      lock.lock();
      ended_ = begun_;
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
};

// Never destroyed: libraries flush while the program exits.
SlowDisk& Disk() {
  static SlowDisk& disk = *new SlowDisk;
  return disk;
}

bool IsNamed(int fd, std::string_view name) {
  std::array<char, 4096> path;
  const ssize_t length =
      readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  return length > 0 &&
         std::string_view(path.data(), static_cast<std::size_t>(length)).ends_with(name);
}

bool IsMarkInBackground(int fd) { return gettid() != getpid() && IsNamed(fd, "/commit.mark"); }

// The store's file grows in steps of 128 KiB and more, seldom, in any commit.
bool IsRoomAhead(int fd, off_t at) {
  struct stat file = {};
  return skips && fstat(fd, &file) == 0 && at >= file.st_size && IsNamed(fd, "/data.mdb");
}

long AfterFlush(long result) {
  ++flushes;
  const std::chrono::nanoseconds latency(latency_ns.load());
  const int error = errno;
  if (latency.count() > 0) Disk().Flush(latency);
  errno = error;
  return result;
}

template <typename... Args>
int Flush(long call, int fd, Args... rest) {
  if (before_flush && IsNamed(fd, "/data.mdb")) std::exchange(before_flush, nullptr)();
  if (!skips) return static_cast<int>(AfterFlush(syscall(call, fd, rest...)));
  if (!IsMarkInBackground(fd)) ++flushes;
  return 0;
}

long AfterWrite(int fd, long written) {
  if (written < 0) return written;
  constexpr std::uint64_t kBlock = 4096;
  const auto size = static_cast<std::uint64_t>(written);
  written_bytes += size;
  block_bytes += (size + kBlock - 1) / kBlock * kBlock;
  // The kernel is asked, so it does not matter who opened the file, and how. O_SYNC includes
  // O_DSYNC.
  const int error = errno;
  const int flags = fcntl(fd, F_GETFL);
  errno = error;
  return flags >= 0 && (flags & O_DSYNC) != 0 ? AfterFlush(written) : written;
}

}  // namespace

DiskCalls DiskCallsSoFar() { return {flushes, written_bytes, block_bytes}; }
void AddToFlushes(std::chrono::nanoseconds latency) { latency_ns = latency.count(); }
void SkipFlushes() { skips = true; }
void BeforeNextCommitsFlush(std::function<void()> call) { before_flush = std::move(call); }

}  // namespace waybill::bench

using waybill::bench::AfterFlush;
using waybill::bench::AfterWrite;
using waybill::bench::Flush;
using waybill::bench::IsRoomAhead;

#pragma GCC visibility push(default)
extern "C" {

int fsync(int fd) { return Flush(SYS_fsync, fd); }
int fdatasync(int fd) { return Flush(SYS_fdatasync, fd); }
int syncfs(int fd) noexcept { return Flush(SYS_syncfs, fd); }
int msync(void* address, size_t length, int flags) {
  const long result = syscall(SYS_msync, address, length, flags);
  return static_cast<int>((flags & MS_SYNC) != 0 ? AfterFlush(result) : result);
}
ssize_t write(int fd, const void* data, size_t size) {
  return AfterWrite(fd, syscall(SYS_write, fd, data, size));
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  return AfterWrite(fd, syscall(SYS_writev, fd, parts, count));
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  const bool is_room = IsRoomAhead(fd, at);
  const long written = syscall(SYS_pwrite64, fd, data, size, at);
  return is_room ? written : AfterWrite(fd, written);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  return pwrite(fd, data, size, at);
}
// The kernel takes the offset in two halves; on machines of 64 bits the first has all of it.
static_assert(sizeof(long) == 8);
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) {
  return AfterWrite(fd, syscall(SYS_pwritev, fd, parts, count, at, 0L));
}
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t at) {
  return pwritev(fd, parts, count, at);
}

}  // extern "C"
#pragma GCC visibility pop
