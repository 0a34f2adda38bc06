// LMDB 0.9.26 to 0.9.31 destroy the mutexes in lock.mdb when they close it alone (ITS#10095), also
// under a process that is just opening it.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <list>

#include "tests/support/expect_error.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(destroyed_locks)

namespace {

// As that LMDB leaves them. This process must not have the store open.
bool DestroyMutexes(const std::filesystem::path& lock) {
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC);
  void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return false;
  // struct MDB_txninfo: magic, format, the readers' mutex; a cache line further the writers'.
  constexpr std::uint32_t kMagic = 0xBEEFC0DE;
  std::uint32_t magic = 0;
  std::memcpy(&magic, map, sizeof(magic));
  bool destroyed = magic == kMagic;
  for (const std::size_t at : {8, 64}) {
    auto* const mutex = reinterpret_cast<pthread_mutex_t*>(static_cast<char*>(map) + at);
    destroyed = destroyed && pthread_mutex_destroy(mutex) == 0;
    destroyed = destroyed && pthread_mutex_lock(mutex) == EINVAL;
  }
  munmap(map, 4096);
  return destroyed;
}

// A process that has the store open, with its mutexes destroyed, until it is told to end.
class Holder {
 public:
  explicit Holder(const MemoryDir& scratch)
      : child_([this, directory = scratch / "store"] {
          const RawStore store(directory, MDB_RDONLY);
          told_->open = true;
          while (!told_->end) sched_yield();
          return 0;
        }) {
    while (!told_->open) sched_yield();
    BOOST_REQUIRE(DestroyMutexes(scratch / "store/lock.mdb"));
  }
  void End() { told_->end = true; }

 private:
  struct Told {
    std::atomic<bool> open{false};
    std::atomic<bool> end{false};
  };
  Shared<Told> told_;
  Child child_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(opening_waits_for_whoever_has_them_to_close) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  Must(Must(NodeStore::Open(options))->Close());
  {
    Holder holder(scratch);
    ExpectError(NodeStore::Open(options), ErrorCode::kIo, "lock.mdb");
    ExpectError(NodeStore::Observe({.directory = scratch / "store"}), ErrorCode::kIo, "lock.mdb");
    holder.End();
    Must(NodeStore::Observe({.directory = scratch / "store"}));
  }
  Holder holder(scratch);
  holder.End();
  const auto store = Must(NodeStore::Open(options));
  Must(store->PutIntent({.image = "registry.example/team/app:v1"}));
  Must(store->Close());
}

// Where LMDB destroys none, this shows nothing.
BOOST_AUTO_TEST_CASE(observers_come_and_go_beside_owners) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  Must(Must(NodeStore::Open(options))->Close());
  constexpr int kTimes = 150;
  std::list<Child> observers;
  for (int i = 0; i < 3; ++i) {
    observers.emplace_back([&] {
      for (int time = 0; time < kTimes; ++time) {
        const auto store = NodeStore::Observe({.directory = scratch / "store"});
        if (store) continue;
        std::fprintf(stderr, "observing: %s\n", store.error().ToString().c_str());
        return 1;
      }
      return 0;
    });
  }
  for (int time = 0; time < kTimes / 5; ++time) Must(Must(NodeStore::Open(options))->Close());
  for (Child& observer : observers) BOOST_TEST(observer.Wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
