#include "bench/peers/flushes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace waybill::bench {

namespace {

std::atomic<std::uint64_t> flushes{0};
std::atomic<std::int64_t> latency_ns{0};

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

long AfterFlush(long result) {
  ++flushes;
  const std::chrono::nanoseconds latency(latency_ns.load());
  const int error = errno;
  if (latency.count() > 0) Disk().Flush(latency);
  errno = error;
  return result;
}

// O_SYNC includes O_DSYNC. The kernel is asked, so it does not matter who opened the file, and how.
bool WritesFlush(int fd) {
  const int error = errno;
  const int flags = fcntl(fd, F_GETFL);
  errno = error;
  return flags >= 0 && (flags & O_DSYNC) != 0;
}

long AfterWrite(int fd, long result) {
  return result >= 0 && WritesFlush(fd) ? AfterFlush(result) : result;
}

}  // namespace

std::uint64_t Flushes() { return flushes; }

void AddToFlushes(std::chrono::nanoseconds latency) { latency_ns = latency.count(); }

}  // namespace waybill::bench

#pragma GCC visibility push(default)
extern "C" {

int fsync(int fd) { return static_cast<int>(waybill::bench::AfterFlush(syscall(SYS_fsync, fd))); }
int fdatasync(int fd) {
  return static_cast<int>(waybill::bench::AfterFlush(syscall(SYS_fdatasync, fd)));
}
int syncfs(int fd) noexcept {
  return static_cast<int>(waybill::bench::AfterFlush(syscall(SYS_syncfs, fd)));
}
int msync(void* address, size_t length, int flags) {
  const long result = syscall(SYS_msync, address, length, flags);
  return static_cast<int>((flags & MS_SYNC) != 0 ? waybill::bench::AfterFlush(result) : result);
}
ssize_t write(int fd, const void* data, size_t size) {
  return waybill::bench::AfterWrite(fd, syscall(SYS_write, fd, data, size));
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  return waybill::bench::AfterWrite(fd, syscall(SYS_writev, fd, parts, count));
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return waybill::bench::AfterWrite(fd, syscall(SYS_pwrite64, fd, data, size, offset));
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}
// The kernel takes the offset in two halves; on machines of 64 bits the first has all of it.
static_assert(sizeof(long) == 8);
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  return waybill::bench::AfterWrite(fd, syscall(SYS_pwritev, fd, parts, count, offset, 0L));
}
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t offset) {
  return pwritev(fd, parts, count, offset);
}
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  const long result = syscall(SYS_pwritev2, fd, parts, count, offset, 0L, flags);
  if (result >= 0 && (flags & (RWF_DSYNC | RWF_SYNC)) != 0) {
    return waybill::bench::AfterFlush(result);
  }
  return waybill::bench::AfterWrite(fd, result);
}
ssize_t pwritev64v2(int fd, const struct iovec* parts, int count, off64_t offset, int flags) {
  return pwritev2(fd, parts, count, offset, flags);
}

}  // extern "C"
#pragma GCC visibility pop

namespace waybill::bench {

void CheckThatFlushesAreCounted(const std::filesystem::path& scratch) {
  const std::string path = (scratch / "flushes").string();
  const int plain = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int synced = open(path.c_str(), O_RDWR | O_CLOEXEC | O_DSYNC);
  if (plain < 0 || synced < 0) throw std::runtime_error("cannot write " + path);
  const char byte = 'w';
  struct iovec part {
    const_cast<char*>(&byte), 1
  };
  const auto counted = [](const char* what, std::uint64_t expected, const auto& call) {
    const std::uint64_t before = Flushes();
    if (call() < 0) throw std::runtime_error(std::string(what) + " failed");
    if (Flushes() - before != expected) {
      throw std::runtime_error(std::string(what) + " is not counted right; the figures are void");
    }
  };
  counted("write", 0, [&] { return write(plain, &byte, 1); });
  counted("fsync", 1, [&] { return fsync(plain); });
  counted("fdatasync", 1, [&] { return fdatasync(plain); });
  counted("write to O_DSYNC", 1, [&] { return write(synced, &byte, 1); });
  counted("pwrite to O_DSYNC", 1, [&] { return pwrite(synced, &byte, 1, 0); });
  counted("pwritev to O_DSYNC", 1, [&] { return pwritev(synced, &part, 1, 0); });
  counted("pwritev2 with RWF_DSYNC", 1, [&] { return pwritev2(plain, &part, 1, 0, RWF_DSYNC); });
  void* const map = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
  counted("msync", 1, [&] { return msync(map, 1, MS_SYNC); });
  munmap(map, 1);
  close(plain);
  close(synced);
  unlink(path.c_str());
}

}  // namespace waybill::bench
