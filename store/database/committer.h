// Every write goes through here. LMDB has one writer and two disk flushes a commit, so callers
// queue; the first in the queue leads: it runs everyone's change in one transaction, commits once,
// wakes all.
//
//   caller --> queue --> leader: begin | change 1 | change 2 | … | state | commit
//
// A change fails alone: one that wrote nothing is passed over, and after one that did the others
// begin anew without it. If the commit fails, each change is run again, alone: so a change must be
// able to run more than once, and what it keeps outside the transaction goes through UndoLog.

#ifndef WAYBILL_STORE_DATABASE_COMMITTER_H_
#define WAYBILL_STORE_DATABASE_COMMITTER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/base/function_ref.h"
#include "store/database/store_txn.h"
#include "store/lmdb/env.h"
#include "waybill/result.h"

namespace waybill::internal {

// Memory that must follow the fate of a transaction. Used by the leader only, one at a time.
class UndoLog {
 public:
  virtual std::size_t Mark() = 0;
  virtual void RollBackTo(std::size_t mark) = 0;
  virtual void Forget() = 0;

 protected:
  ~UndoLog() = default;
};

class Committer {
 public:
  using Change = FunctionRef<Result<void>(StoreTxn&)>;

  struct Hooks {
    std::function<Timestamp()> clock;
    // Rules::kClosed: a clock that went back does not make a record younger than it is.
    bool time_never_goes_back = true;
    UndoLog* undo = nullptr;
    // Before and after each commit: kOwned where what is open is not the store any more, and then
    // nothing is acknowledged from now on. The message lacks what that means for the write.
    std::function<Result<void>()> still_owned;
    // After each commit, by the leader; may not call back.
    std::function<void(std::uint64_t sequence)> committed;
  };

  Committer(const lmdb::Env& env, const TableHandles& handles, const Identity& identity,
            const State& state, Hooks hooks);

  // Runs `change` and returns when it is on disk, or failed. A change that writes nothing commits
  // nothing. kOutcomeUnknown: nobody knows what is on disk, and every later Run fails too.
  Result<void> Run(Change change);

  // The state that the last commit left.
  State state() const;
  // After kOutcomeUnknown, and where the store is not ours any more.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // What every Run fails with then.
  Error WhyFailed() const;
  // Asks Hooks::still_owned between commits. False: failed(), or it can't be told now.
  bool CheckOwnership();

  // Runs `work` while no commit can happen.
  Result<void> WithoutCommits(FunctionRef<Result<void>()> work);

 private:
  struct Request {
    Change change;
    Result<void> result;
    bool done = false;
  };

  void Lead(std::unique_lock<std::mutex>& lock);
  void RunBatch(std::span<Request*> batch);
  // False: nothing was changed. Either the request number `without` failed after it had written, or
  // `error` says why the transaction did.
  bool TryTogether(std::span<Request* const> batch, std::size_t& without, Error& error);
  bool TryTransaction(std::span<Request* const> batch, std::size_t& without, Error& error,
                      bool& committing);
  // `growth_pages`: what is left for growth, less what the change takes.
  Result<void> RunOne(lmdb::Txn& txn, Change change, State& state, bool& dirty,
                      std::uint64_t& growth_pages);
  // `committing` is set while nobody can tell what is on disk.
  Result<void> CommitState(lmdb::Txn& txn, State& state, bool& committing);
  // Fails from now on, with `why` unless it failed before.
  void Stop(const Error& why);
  Result<void> StillOwned() const {
    return hooks_.still_owned ? hooks_.still_owned() : Result<void>();
  }
  StoreTxn::Context MakeContext(MDB_txn* txn, const State& state) const;
  std::uint64_t GrowthPages() const;

  const lmdb::Env& env_;
  const TableHandles handles_;
  const Identity identity_;
  const Hooks hooks_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> queue_;  // guarded by mutex_
  bool leading_ = false;        // guarded by mutex_; its holder alone touches what follows
  std::vector<Request*> batch_;
  State state_;       // written by the leader under mutex_
  Error why_failed_;  // guarded by mutex_; an empty message: a commit failed half way
  std::atomic<bool> failed_{false};
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_COMMITTER_H_
