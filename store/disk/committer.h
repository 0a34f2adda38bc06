// Group commit. LMDB has one writer, and a commit costs a disk flush. So callers queue, and the
// first in the queue leads: it runs every change in one transaction, commits once and wakes all.
//
//   caller --> queue --> leader: begin | change 1 | change 2 | … | state | commit | flush
//
// Who comes while it runs the changes still joins. Otherwise callers that write again and again
// split into two halves, each of which waits for the other's flush.
//
// LMDB flushes twice: the pages, and then the meta page that names them. With a CommitMark one
// flush is enough:
//
//   pages of N, meta page of N (MDB_NOSYNC) | fdatasync | mark: N acknowledged, N+1 begun
//
// Commit N overwrites no page of the trees N−1 and N−2, and its meta page takes the place of N−2's.
// So a crash before the flush ends leaves tree N−1 whole, and perhaps a torn tree N, which nobody
// was told of: the next opening takes it back (opening/unfinished_commit.h). It tells a torn tree
// from a whole one by walking it. That walk must not take old pages for N's, so a commit flushes
// twice if pages of an earlier attempt at N may lie on the disk: the first one of each Committer,
// and the first after a transaction that was given up. After a flush that failed nothing is known,
// and every later write is refused.
//
// A flush is enough for pages that the file has already. So a commit finds room ahead, or settles
// its size as well before it is acknowledged (disk/lmdb/room_ahead.h).
//
// LMDB shows a commit to readers before it is flushed. What they read is true, and a crash takes
// the readers along. But what a caller acts on outside the node's memory waits (durable_sequence).
//
// A change fails alone. If it wrote nothing, the leader goes on; otherwise, and if the commit
// fails, each change runs again in a transaction of its own. So a change may run more than once;
// memory that it changes must be undone by an UndoLog.

#ifndef WAYBILL_STORE_DISK_COMMITTER_H_
#define WAYBILL_STORE_DISK_COMMITTER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "store/base/function_ref.h"
#include "store/disk/commit_mark.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/lmdb/room_ahead.h"
#include "store/disk/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// Undoes changes to memory whose transaction fails. Only the leader calls it.
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
  // Before, a file that was truncated counts, too: LMDB would end the process by SIGBUS.
  enum class When : std::uint8_t { kBefore, kAfter };

  struct Hooks {
    std::function<Timestamp()> clock = {};
    // How long the node runs. Missing: not known, so what counts by it stands still.
    BootClock boot_clock = {};
    UndoLog* undo = nullptr;
    // If it allows that, commits flush once, into room ahead. If it is null, as at opening, they
    // flush twice, into room ahead too: a cut leaves no newest tree that lies past the file's end.
    // Otherwise they flush twice, and the file grows with them.
    CommitMark* mark = nullptr;
    // Called before and after each commit. kOwned: the open files are no longer the store's, and no
    // later write is acknowledged. The committer adds to the message what became of the write.
    std::function<Result<void>(When when)> still_owned = {};
    // Called by the leader in each transaction that is committed, after its changes. They are not
    // to blame for an error of its own: it returns only those that end the transaction anyway.
    std::function<Result<void>(StoreTxn&)> before_commit = {};
    // Called by the leader after each commit. Must not call the committer.
    std::function<void(std::uint64_t sequence)> committed = {};
  };

  Committer(const lmdb::Env& env, const TableHandles& handles, const Identity& identity,
            const State& state, Hooks hooks);

  // Returns when `change` is on disk or has failed. A change that writes nothing commits nothing.
  // kOutcomeUnknown: the change may or may not be on disk, and every later Run fails.
  Result<void> Run(Change change);

  // The state after the last commit.
  State state() const;
  // All commits up to this one are on the disk. A snapshot may be of a later one.
  std::uint64_t durable_sequence() const {
    return durable_sequence_.load(std::memory_order_acquire);
  }
  std::uint64_t store_id() const { return StoreId(identity_); }
  // After kOutcomeUnknown, or when this process lost the store.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The error of every Run after that.
  Error WhyFailed() const;
  // Changes that were refused for the disk's or the store's sake, or may not be on disk.
  std::uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }
  // Asks Hooks::still_owned between commits. False: failed(), or the answer is unknown at present.
  bool CheckOwnership();

  // No commit runs during `work`.
  Result<void> WithoutCommits(FunctionRef<Result<void>()> work);

 private:
  struct Request {
    explicit Request(Change a_change) : change(a_change) {}
    Change change;
    Result<void> result;
    bool done = false;
    std::condition_variable wake;  // it is done, or has to lead
  };

  void Lead(std::unique_lock<std::mutex>& lock);
  // Under mutex_: the first in the queue leads, or WithoutCommits goes on.
  void LetLead();
  void RunBatch(std::span<Request*> batch);
  // False: nothing was changed, and `error` says why.
  bool TryTogether(std::span<Request*>& batch, Error& error);
  bool TryTransaction(std::span<Request*>& batch, Error& error, bool& committing);
  // Callers that came meanwhile join: a flush for all takes no longer. False: nobody came.
  bool TakeMore(std::span<Request*>& batch);
  // Pages of the map.
  struct Room {
    std::uint64_t growth = 0;   // for what makes the store larger
    std::uint64_t usable = 0;   // by the transaction under way
    std::uint64_t pending = 0;  // by the next one only: the last one freed them
  };
  // Takes the pages that the change may use from `room.growth`, and adds those that it copied,
  // unless there are plenty.
  Result<void> RunOne(lmdb::Txn& txn, Change change, State& state, bool& dirty, Room& room,
                      std::uint64_t& copied);
  // `committing` is true while it is unknown what is on disk.
  Result<void> CommitState(lmdb::Txn& txn, State& state, bool& committing);
  // Every later Run fails, with the first `why`.
  void Stop(const Error& why);
  Result<void> StillOwned(When when) const {
    return hooks_.still_owned ? hooks_.still_owned(when) : Result<void>();
  }
  StoreTxn::Context MakeContext(MDB_txn* txn) const;
  Room FindRoom(const lmdb::Env::Info& info) const;
  // A commit that changes nothing, so that the next one can use the pages that the last one freed.
  // False: there are too few for that, or it failed.
  bool FreePending();

  const lmdb::Env& env_;
  const TableHandles handles_;
  const Identity identity_;
  const Hooks hooks_;

  mutable std::mutex mutex_;
  std::condition_variable nobody_leads_;
  std::deque<Request*> queue_;  // guarded by mutex_
  bool leading_ = false;        // guarded by mutex_; only the leader uses the members below
  std::vector<Request*> batch_;
  bool flush_twice_next_ = true;  // the next commit needs LMDB's two flushes
  bool flushes_once_ = false;     // the transaction under way leaves them out
  bool mark_failed_ = false;      // so it could not be committed
  std::optional<lmdb::RoomAhead> room_ahead_;
  State state_;       // written by the leader under mutex_
  Error why_failed_;  // guarded by mutex_; empty message: a commit failed half way
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> durable_sequence_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_COMMITTER_H_
