// The database: who may write, what commits share, what readers hold.

#include "store/disk/committer.h"

#include <lmdb.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/disk/reader_pool.h"
#include "store/disk/uuid.h"
#include "store/images/in_flight.h"
#include "store/images/other_rows.h"
#include "store/images/pull.h"
#include "store/opening/open_store.h"
#include "store/opening/owner_lock.h"
#include "store/opening/product.h"
#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_threads.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

// The queue of writers, when something goes wrong around it.
BOOST_AUTO_TEST_SUITE(committer)

namespace {

// Another process, begun before this one opens a store. It becomes the owner of the directory that
// it is asked for, and stores an intent.
class Process {
 public:
  std::string Intends(const std::filesystem::path& directory) {
    return child_.Ask(directory.string());
  }

 private:
  ChildProcess child_{[] {
    return [](const std::string& directory) -> std::string {
      const auto store =
          NodeStore::Open({.directory = directory, .witness = Witness::Remembered()});
      if (!store) return std::string(ErrorCodeName(store.error().code));
      Must((*store)->PutIntent({.image = "registry.example/other:1"}));
      Must((*store)->Close());
      return "stored";
    };
  }};
};

}  // namespace

// Memory runs out between the begin of a transaction and its commit. The clock, which is read
// there, throws in its place.
BOOST_FIXTURE_TEST_CASE(an_exception_fails_the_write_and_holds_up_nobody, ClosedStore) {
  Must(store->PutIntent({.image = "registry.example/before"}));
  NodeStoreOptions options = store.Options({});
  store.Stop();
  enum class Thrown { kNothing, kBadAlloc, kInt, kIntOfBoots };
  const auto thrown = std::make_shared<Thrown>(Thrown::kNothing);
  options.clock = [thrown, clock = std::move(options.clock)] {
    if (*thrown == Thrown::kBadAlloc) throw std::bad_alloc();
    if (*thrown == Thrown::kInt) throw 1;
    return clock();
  };
  options.boot_clock = [thrown, clock = std::move(options.boot_clock)] {
    if (*thrown == Thrown::kIntOfBoots) throw 1;
    return clock();
  };
  const auto opened = Must(NodeStore::Open(options));
  for (const auto& [what, code] : {std::pair(Thrown::kBadAlloc, ErrorCode::kOutOfMemory),
                                   std::pair(Thrown::kInt, ErrorCode::kInternal),
                                   std::pair(Thrown::kIntOfBoots, ErrorCode::kInternal)}) {
    *thrown = what;
    ExpectError(opened->PutIntent({.image = "registry.example/during"}), code);
    *thrown = Thrown::kNothing;
    // Nothing had been written yet, so the store goes on.
    BOOST_TEST(!Must(opened->HasIntent({.image = "registry.example/during"})));
    Must(opened->PutIntent({.image = "registry.example/after"}));
  }
  Must(opened->Close());
  store.Start();
  BOOST_TEST(Must(store->HasIntent({.image = "registry.example/before"})));
  Must(store->PutIntent({.image = "registry.example/after"}));
}

// If owner.lock is removed under a live owner, a second owner is refused, and the first stops
// writing.
BOOST_AUTO_TEST_CASE(a_second_writer_is_refused_where_owner_lock_was_removed) {
  Process second;
  Process successor;
  ScratchStore store(Mode::kStrict);
  std::filesystem::remove(store.directory() / "owner.lock");
  BOOST_TEST(second.Intends(store.directory()) == "owned");
  ExpectError(store->PutIntent({.image = "registry.example/mine:1"}), ErrorCode::kOwned);
  store.Stop();
  BOOST_TEST(successor.Intends(store.directory()) == "stored");
  store.Start();
  BOOST_TEST(!store->recovery_report().distrustful);
  BOOST_TEST(Must(store->HasIntent({.image = "registry.example/other:1"})));
  BOOST_TEST(!Must(store->HasIntent({.image = "registry.example/mine:1"})));
}

BOOST_AUTO_TEST_SUITE_END()

// What an observer may conclude from owner.lock.
BOOST_AUTO_TEST_SUITE(owner_lock)

// The moment between an owner's lock and its first line, in a store whose last owner was killed.
BOOST_AUTO_TEST_CASE(an_owner_that_has_not_walked_vouches_for_nothing) {
  const TempDir scratch;
  WriteFile(scratch / "data.mdb", "");
  const internal::FileId id = Must(internal::FileIdOf(scratch / "data.mdb"));
  internal::OwnerLock owner = Must(internal::OwnerLock::Take(scratch.path()));
  BOOST_TEST(!Must(internal::LookAtOwner(scratch.path())).VouchesFor(id));
  WriteFile(scratch / "owner.lock",
            "1 recovered " + std::to_string(id.device) + " " + std::to_string(id.inode) + "\n");
  BOOST_TEST(!Must(internal::LookAtOwner(scratch.path())).VouchesFor(id));
  Must(owner.AnnounceRecovered(id));
  BOOST_TEST(Must(internal::LookAtOwner(scratch.path())).VouchesFor(id));
  ExpectError(internal::OwnerLock::Take(scratch.path()), ErrorCode::kOwned);
}

BOOST_AUTO_TEST_SUITE_END()

// Changes that share a commit: a refused one fails alone, whether or not it had written.
BOOST_AUTO_TEST_SUITE(shared_commits)

namespace {

// A committer alone on a store's files.
struct Alone {
  explicit Alone(const NodeStoreOptions& options,
                 std::function<Result<void>(internal::StoreTxn&)> before_commit = {})
      : owned(Must(internal::OpenAsOwner(options, internal::OnDamage::kRefuse,
                                         {&internal::NodeProduct()}, report))),
        committer(*owned.database.env, owned.database.handles, owned.database.identity, owned.state,
                  {.clock = options.clock,
                   .undo = &in_flight,
                   .before_commit = std::move(before_commit)}) {}
  void Settle() {
    owned.witness->Advance(committer.state().commit_sequence);
    Must(owned.witness->Sync());
  }

  Result<void> StoreIntent(internal::StoreTxn& txn, const std::string& image) {
    auto stored = internal::StoreIntent(txn, image, "", Mode::kStrict, BootTime());
    return stored ? Result<void>() : stored.error();
  }

  OpeningReport report;
  internal::OwnedStore owned;
  internal::InFlight in_flight;
  internal::Committer committer;
};

}  // namespace

// Also if that commit fails: then each is committed alone.
BOOST_AUTO_TEST_CASE(who_comes_while_a_change_runs_joins_its_commit) {
  for (const bool fails : {false, true}) {
    ScratchStore store(Mode::kStrict);
    const NodeStoreOptions options = store.Options({});
    store.Stop();
    {
      bool failed = !fails;
      Alone alone(options, [&](internal::StoreTxn&) -> Result<void> {
        if (std::exchange(failed, true)) return {};
        return Error{ErrorCode::kIo, "a test", ""};
      });
      const std::uint64_t before = alone.committer.state().commit_sequence;
      std::atomic<pid_t> late{0};
      std::thread other;
      Must(alone.committer.Run([&](internal::StoreTxn& txn) {
        if (!other.joinable()) {
          other = std::thread([&] {
            late = gettid();
            Must(alone.committer.Run(
                [&](internal::StoreTxn& its) { return alone.StoreIntent(its, "late"); }));
          });
          while (late == 0 || !Sleeps(late)) std::this_thread::yield();
        }
        return alone.StoreIntent(txn, "early");
      }));
      other.join();
      BOOST_TEST(alone.committer.state().commit_sequence == before + (fails ? 2 : 1));
      alone.Settle();
    }
    store.Start();
    BOOST_TEST(Must(store->ListIntents()).size() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_change_that_is_refused_fails_alone) {
  constexpr int kCallers = 24;
  constexpr int kRounds = 20;
  enum : int { kBeforeWriting, kAfterWriting, kSucceeds, kKinds };
  ScratchStore store(Mode::kStrict);
  const NodeStoreOptions options = store.Options({});
  store.Stop();
  {
    Alone alone(options);
    internal::Committer& committer = alone.committer;
    internal::InFlight& in_flight = alone.in_flight;
    std::atomic<int> wrong{0};
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<int> here{0};
      const auto caller = [&](int number) {
        const int kind = number % kKinds;
        const std::string image = std::to_string(round) + "-" + std::to_string(number);
        ++here;
        const auto written = committer.Run([&](internal::StoreTxn& txn) -> Result<void> {
          // The others arrive meanwhile, and share the next batch.
          while (here < kCallers) std::this_thread::yield();
          in_flight.Set(image, "", {1});
          if (kind == kBeforeWriting) return Error{ErrorCode::kConflict, image, ""};
          if (auto stored = alone.StoreIntent(txn, image); !stored) return stored;
          if (kind == kAfterWriting) return Error{ErrorCode::kNotFound, image, ""};
          return {};
        });
        if (kind == kSucceeds) {
          if (!written) ++wrong;
        } else if (written || written.error().message != image) {
          ++wrong;
        }
      };
      std::vector<std::thread> callers;
      for (int number = 0; number < kCallers; ++number) callers.emplace_back(caller, number);
      for (std::thread& thread : callers) thread.join();
    }
    BOOST_TEST(wrong == 0);
    BOOST_TEST(in_flight.size() == std::size_t{kCallers / kKinds * kRounds});
    alone.Settle();
  }
  store.Start();
  BOOST_TEST(!store->recovery_report().set_aside);
  BOOST_TEST(Must(store->ListIntents()).size() == std::size_t{kCallers / kKinds * kRounds});
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

// An owner's reader slots keep their snapshot until the next commit
// (store/disk/reader_pool.h).
BOOST_AUTO_TEST_SUITE(kept_snapshot)

namespace {

const std::string kImage = "registry.example.com/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_snapshot_that_a_decision_left_pins_no_pages, ClosedStore) {
  const auto churn = [&] {
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(store.Check(kImage, kRef));
      store.Pull(kImage, kRef, std::nullopt);
    }
    return Must(store->GetStatistics()).used_bytes;
  };
  static_cast<void>(store.Check(kImage, kRef));  // from now on there is a slot that was used once
  const auto before = churn();
  BOOST_TEST(churn() == before);
}

BOOST_AUTO_TEST_CASE(what_is_no_uuid_is_refused_whatever_byte_is_wrong_where) {
  const std::string sound = "0123abcd-89ef-4567-9abc-def012345678";
  std::array<std::uint8_t, 16> ignored{};
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const bool fits =
          sound[at] == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      std::string text = sound;
      text[at] = c;
      BOOST_TEST(internal::DecodeUuid(text, ignored) == fits);
    }
  }
  BOOST_TEST(!internal::DecodeUuid(sound.substr(1), ignored));
  BOOST_TEST(!internal::DecodeUuid(sound + "0", ignored));
}

BOOST_AUTO_TEST_SUITE_END()

// LMDB's reader table is full. A handle goes on with the slots that it has; a call that gets none
// returns kUnavailable, and a decision without a snapshot is "pull". Nothing looks absent or
// damaged.
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
        static_cast<void>(store.MustAttemptPull(kCopy, source));
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
