// A process that holds the mutex of LMDB's reader table, and is stopped: LMDB takes it whenever a
// reader comes into the table. No decision waits for it.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {
namespace {

const std::string kImage = "registry.example/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');

OpenOptions OptionsIn(const MemoryDir& scratch) {
  OpenOptions options{.directory = scratch / "store", .witness = Witness::At(scratch / "witness")};
  options.map_bytes = std::uint64_t{64} << 20U;
  return options;
}

// Made while this process has no store open; takes the mutex when told to.
class FrozenHolder {
 public:
  explicit FrozenHolder(const MemoryDir& scratch)
      : child_([this, &scratch] {
          while (!told_->take) sched_yield();
          // struct MDB_txbody: magic, format, then the mutex.
          constexpr std::uint32_t kMagic = 0xBEEFC0DE;
          const int fd = open((scratch / "store/lock.mdb").c_str(), O_RDWR | O_CLOEXEC);
          void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
          std::uint32_t magic = 0;
          if (map != MAP_FAILED) std::memcpy(&magic, map, sizeof(magic));
          const bool is_lmdb = magic == kMagic;
          auto* const mutex = reinterpret_cast<pthread_mutex_t*>(static_cast<char*>(map) + 8);
          told_->state = is_lmdb && pthread_mutex_lock(mutex) == 0 ? 1 : 2;
          raise(SIGSTOP);
          return 0;
        }) {}

  void Take() {
    told_->take = true;
    while (told_->state == 0) sched_yield();
    BOOST_REQUIRE(told_->state == 1);
  }
  // The mutex is robust: who waits for it goes on.
  void Kill() { child_.Kill(); }

 private:
  struct Told {
    std::atomic<bool> take{false};
    std::atomic<int> state{0};
  };
  Shared<Told> told_;
  Child child_;
};

// Frees whoever waits for the holder after a minute, and then says so.
class Watchdog {
 public:
  explicit Watchdog(FrozenHolder& holder)
      : thread_([this, &holder] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, std::chrono::minutes(1), [this] { return end_; })) return;
          barked_ = true;
          holder.Kill();
        }) {}
  ~Watchdog() { End(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool End() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
    return !barked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::atomic<bool> barked_{false};
  std::thread thread_;
};

// From so many threads, each of which has a slot of its own to begin with.
void DecideWhileFrozen(NodeStore& store, FrozenHolder& holder, int threads,
                       const std::function<bool(const Decision&)>& is_right) {
  holder.Take();
  Watchdog watchdog(holder);
  std::atomic<int> wrong{0};
  std::vector<std::thread> deciding;
  for (int i = 0; i < threads; ++i) {
    deciding.emplace_back([&] {
      for (int decision = 0; decision < 3; ++decision) {
        Pod pod;
        if (!is_right(store.MustAttemptPull({.image = kImage, .image_ref = kRef}, pod))) ++wrong;
      }
    });
  }
  for (std::thread& thread : deciding) thread.join();
  BOOST_TEST(watchdog.End(), "a decision waited for the frozen process");
  BOOST_TEST(wrong == 0);
}

bool Opens(const Decision& decision) { return !decision.pull; }

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_reader)

BOOST_AUTO_TEST_CASE(no_decision_of_an_owner_waits_for_it) {
  const MemoryDir scratch;
  FrozenHolder holder(scratch);
  Shared<std::atomic<bool>> observed;
  Shared<std::atomic<bool>> go;
  Child observer([&] {
    while (!*go) sched_yield();
    const auto store = NodeStore::Observe({.directory = scratch / "store"});
    *observed = true;
    return store ? 0 : 1;
  });
  auto store = Must(NodeStore::Open(OptionsIn(scratch)));
  DecideWhileFrozen(*store, holder, 16, Opens);
  // It is the mutex that it should be: who comes now does wait for it.
  *go = true;
  for (int i = 0; i < 1000; ++i) sched_yield();
  BOOST_TEST(!*observed);
  holder.Kill();
  BOOST_TEST(observer.Wait() == 0);
  Must(store->Close());
}

BOOST_AUTO_TEST_CASE(no_decision_of_an_observer_waits_for_it) {
  const MemoryDir scratch;
  FrozenHolder holder(scratch);
  Must(Must(NodeStore::Open(OptionsIn(scratch)))->Close());
  auto store = Must(NodeStore::Observe({.directory = scratch / "store"}));
  DecideWhileFrozen(*store, holder, 1, Opens);
  holder.Kill();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
