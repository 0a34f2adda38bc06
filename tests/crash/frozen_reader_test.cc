// A stopped process holds the mutex of LMDB's reader table, which LMDB takes for each new reader.
// No decision waits for it.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/support/forked_child.h"
#include "tests/support/in_threads.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(frozen_reader)

namespace {

const std::string kImage = "registry.example/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');

// Created while this process has no store open. Takes the mutex when told to.
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
  // The mutex is robust: waiters continue.
  void Kill() { child_.Kill(); }

 private:
  struct Told {
    std::atomic<bool> take{false};
    std::atomic<int> state{0};
  };
  Shared<Told> told_;
  Child child_;
};

// From so many threads, each of which has a slot of its own to begin with. A decision that waited
// for the holder would never come back: the test then ends by its time limit, and its children with
// it.
void DecideWhileFrozen(NodeStore& store, FrozenHolder& holder, std::size_t threads) {
  holder.Take();
  std::atomic<int> opened{0};
  InThreads(threads, [&](std::size_t) {
    for (int decision = 0; decision < 3; ++decision) {
      if (!DecisionOf(store, {.image = kImage, .image_ref = kRef}).pull) ++opened;
    }
  });
  BOOST_TEST(opened == static_cast<int>(3 * threads));
}

// A store that knows the image as preloaded.
std::unique_ptr<NodeStore> OpenIn(const MemoryDir& scratch) {
  auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
  Must(store->AddToLedger({.id = std::string(kRef)}, "test", "preloaded"));
  return store;
}

}  // namespace

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
  const auto store = OpenIn(scratch);
  DecideWhileFrozen(*store, holder, 16);
  // It is the right mutex: a new reader does wait for it.
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
  Must(OpenIn(scratch)->Close());
  auto store = Must(NodeStore::Observe({.directory = scratch / "store"}));
  DecideWhileFrozen(*store, holder, 1);
  holder.Kill();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
