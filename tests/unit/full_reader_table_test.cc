// LMDB's reader table is full. A handle goes on with the slots that it has; a call that gets none
// returns kUnavailable, and a decision without a snapshot is "pull". Nothing looks absent or
// damaged.

#include <lmdb.h>

#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/engine/database/reader_pool.h"
#include "tests/support/child_process.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(full_reader_table)

namespace {

constexpr ImageCopy kCopy = {.image = kImage, .image_ref = kRef};

// Takes all slots of the store's reader table when asked, until it ends. Made while this process
// has no store open.
class SlotTaker {
 public:
  explicit SlotTaker(const std::filesystem::path& store)
      : child_([store]() -> ChildProcess::Serve {
          return [store](const std::string&) -> std::string {
            // Never closed: the process ends with it.
            auto* const all = new RawStore(store, MDB_RDONLY);
            int taken = 0;
            for (MDB_txn* txn = nullptr;; ++taken) {
              const int code = mdb_txn_begin(all->env(), nullptr, MDB_RDONLY, &txn);
              if (code != MDB_SUCCESS) return taken > 0 ? mdb_strerror(code) : "none was free";
            }
          };
        }) {}
  void Take() { BOOST_TEST_REQUIRE(child_.Ask("take") == mdb_strerror(MDB_READERS_FULL)); }
  void End() { child_.Kill(); }

 private:
  ChildProcess child_;
};

// Decisions that keep their slots: each waits in Fetch until it is let go.
class Waiting {
 public:
  Waiting(NodeStore& store, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &store] {
        Source source(*this);
        store.MustAttemptPull(kCopy, source);
      });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return fetching_ == count; });
  }
  ~Waiting() {
    {
      const std::lock_guard lock(mutex_);
      let_go_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  class Source final : public CredentialSource {
   public:
    explicit Source(Waiting& all) : all_(all) {}
    bool may_block() const override { return false; }  // or it would give its slot back
    Result<PodCredentials> Fetch() override {
      std::unique_lock lock(all_.mutex_);
      ++all_.fetching_;
      all_.changed_.notify_all();
      all_.changed_.wait(lock, [&] { return all_.let_go_; });
      return PodCredentials();
    }

   private:
    Waiting& all_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  int fetching_ = 0;
  bool let_go_ = false;
  std::vector<std::thread> threads_;
};

template <typename T>
void CheckUnavailable(const Result<T>& result) {
  BOOST_TEST_REQUIRE(!result.has_value());
  BOOST_TEST(ErrorCodeName(result.error().code) == ErrorCodeName(ErrorCode::kUnavailable));
  BOOST_TEST(result.error().hint.find("observers") != std::string::npos);
}

void CheckAnswers(NodeStore& store) {
  BOOST_TEST(!DecisionOf(store, kCopy, Pod(kSecretA)).pull);
  BOOST_TEST(Must(store.ListRecords()).size() == 1U);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(an_owner_has_its_slots_and_no_more, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  SlotTaker taker(store.directory());
  store.Start();
  taker.Take();
  CheckAnswers(*store);
  {
    const Waiting all(*store, static_cast<int>(internal::ReaderPool::kSlots));
    Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kError,
           Reason::kStoreUnavailable);
    CheckUnavailable(store->GetRecord(kCopy));
    CheckUnavailable(store->ListRecords());
    CheckUnavailable(store->HasIntent(kCopy));
    CheckUnavailable(store->ListIntents());
    CheckUnavailable(store->ListQuarantine());
    CheckUnavailable(store->ListRuntimeHandlers());
    CheckUnavailable(store->GetTrust());
    CheckUnavailable(store->GetUserNamespace("pod"));
    CheckUnavailable(store->ListUserNamespaces());
    // Writing takes no slot.
    Must(store->PutIntent({.image = "registry.example.com/other:v1"}));
  }
  CheckAnswers(*store);
}

BOOST_FIXTURE_TEST_CASE(an_observer_that_came_before_has_its_slots, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  SlotTaker taker(store.directory());
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  taker.Take();
  CheckAnswers(*observer);
}

BOOST_FIXTURE_TEST_CASE(an_observer_that_comes_too_late_is_refused, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  SlotTaker taker(store.directory());
  taker.Take();
  const auto refused = NodeStore::Observe({.directory = store.directory()});
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST(ErrorCodeName(refused.error().code) == ErrorCodeName(ErrorCode::kLimitExceeded));
  // The slots of a process that died are free again.
  taker.End();
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  BOOST_TEST(Must(observer->ListRecords()).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
