// Measures the gain from group commit: 64 callers put and delete intents, first one by one behind a
// mutex, then sharing commits. The store lies in memory; the one fdatasync of each commit sleeps as
// long as a disk would take. See README.md.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "waybill/node_store.h"

static std::atomic<long> sync_nanoseconds{0};
static std::atomic<long> syncs{0};

// Replaces the C library's fdatasync for liblmdb.
extern "C" [[gnu::visibility("default")]] int fdatasync(int fd) {
  ++syncs;
  const struct timespec pause = {0, sync_nanoseconds.load()};
  if (pause.tv_nsec != 0) nanosleep(&pause, nullptr);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace {

constexpr int kCallers = 64;
constexpr auto kTime = std::chrono::seconds(2);

// Changes a second.
double Measure(const std::filesystem::path& directory, bool one_by_one, long nanoseconds) {
  sync_nanoseconds = 0;
  std::filesystem::remove_all(directory);
  auto opened =
      waybill::NodeStore::Open({.directory = directory, .witness = waybill::Witness::None()});
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().ToString().c_str());
    return 0;
  }
  waybill::NodeStore& store = **opened;
  sync_nanoseconds = nanoseconds;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<long> done{0};
  std::vector<std::thread> callers;
  const auto begin = std::chrono::steady_clock::now();
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      const std::string image = "registry.example.com/app-" + std::to_string(caller);
      for (bool there = false; !stop; there = !there) {
        std::unique_lock lock(mutex, std::defer_lock);
        if (one_by_one) lock.lock();
        const auto written =
            there ? store.DeleteIntent({.image = image}) : store.PutIntent({.image = image});
        if (written) ++done;
      }
    });
  }
  std::this_thread::sleep_for(kTime);
  stop = true;
  for (std::thread& caller : callers) caller.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(done) / took.count();
}

}  // namespace

int main() {
  const std::filesystem::path directory =
      "/dev/shm/waybill_group_commit." + std::to_string(getpid());
  std::printf("commit     one by one        shared\n");
  for (const long microseconds : {0L, 200L, 1000L, 8000L}) {
    const double alone = Measure(directory, true, microseconds * 1000);
    const double shared = Measure(directory, false, microseconds * 1000);
    std::printf("%4.1f ms  %8.0f /s  %10.0f /s  %5.1f x\n",
                static_cast<double>(microseconds) / 1000, alone, shared, shared / alone);
  }
  std::filesystem::remove_all(directory);
  if (syncs == 0) std::fprintf(stderr, "fdatasync was not replaced: the figures are void\n");
  return syncs == 0 ? 1 : 0;
}
