#include "store/record/committer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "store/lmdb/error.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxBatch = 256;
// Commits between two looks for readers that died: each keeps old pages from being used again.
constexpr std::uint64_t kReaderCheckInterval = 256;
// Pages that only deletions may use, so that a full store can still be pruned: copies of the paths
// that a deletion touches in three trees, and of the free list.
constexpr std::uint64_t kReservePages = 64;

Error OutcomeUnknown(const std::filesystem::path& directory) {
  return {ErrorCode::kOutcomeUnknown,
          "a write to " + directory.string() +
              " failed half way: it may or may not be on disk; every decision now answers \"pull\"",
          "close the store and open it again"};
}

Error NothingChanged(Error error) {
  error.message += "; nothing was changed";
  if (error.code == ErrorCode::kOwned) error.message += ", and every decision now answers \"pull\"";
  return error;
}

Error MayBeLost(Error error) {
  error.code = ErrorCode::kOutcomeUnknown;
  error.message += "; what was written last may be lost, and every decision now answers \"pull\"";
  return error;
}

// Pages in the free list of the last commit: LMDB shows it to read transactions only.
std::uint64_t FreePages(const lmdb::Env& env) {
  lmdb::Txn txn;
  lmdb::Cursor cursor;
  if (txn.BeginRead(env) != MDB_SUCCESS || cursor.Open(txn.get(), 0) != MDB_SUCCESS) return 0;
  std::uint64_t pages = 0;
  lmdb::Bytes key;
  lmdb::Bytes value;
  while (cursor.Get(&key, &value, MDB_NEXT) == MDB_SUCCESS) {
    std::size_t count = 0;
    if (value.size() >= sizeof(count)) std::memcpy(&count, value.data(), sizeof(count));
    pages += count;
  }
  return pages;
}

}  // namespace

Committer::Committer(const lmdb::Env& env, const TableHandles& handles, const Identity& identity,
                     const State& state, Hooks hooks)
    : env_(env), handles_(handles), identity_(identity), hooks_(std::move(hooks)), state_(state) {
  batch_.reserve(kMaxBatch);
}

State Committer::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

Result<void> Committer::Run(const Change& change) {
  Request request;
  request.change = &change;
  std::unique_lock lock(mutex_);
  queue_.push_back(&request);
  changed_.wait(lock, [&] { return request.done || (!leading_ && queue_.front() == &request); });
  if (!request.done) Lead(lock);
  return std::move(request.result);
}

void Committer::Lead(std::unique_lock<std::mutex>& lock) {
  leading_ = true;
  const std::size_t size = std::min(queue_.size(), kMaxBatch);
  batch_.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
  lock.unlock();
  try {
    RunBatch(batch_);
  } catch (const std::exception&) {
    // Those who wait must be woken, and nobody knows how far the commit came.
    failed_.store(true, std::memory_order_release);
    for (Request* request : batch_) request->result = Error{ErrorCode::kOutcomeUnknown, "", ""};
  }
  lock.lock();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
  for (Request* request : batch_) request->done = true;
  leading_ = false;
  changed_.notify_all();
}

Result<void> Committer::WithoutCommits(const std::function<Result<void>()>& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !leading_; });
  leading_ = true;
  lock.unlock();
  const auto give_back = [&] {
    lock.lock();
    leading_ = false;
    changed_.notify_all();
  };
  try {
    Result<void> result = work();
    give_back();
    return result;
  } catch (...) {
    give_back();
    throw;
  }
}

void Committer::Stop(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  why_failed_ = why;
  failed_.store(true, std::memory_order_release);
}

Error Committer::WhyFailed() const {
  const std::lock_guard lock(mutex_);
  return why_failed_.message.empty() ? OutcomeUnknown(env_.directory()) : why_failed_;
}

bool Committer::CheckOwnership() {
  if (failed()) return false;
  auto owned = StillOwned();
  if (owned) return true;
  if (owned.error().code == ErrorCode::kOwned) Stop(NothingChanged(owned.error()));
  return false;
}

void Committer::RunBatch(const std::vector<Request*>& batch) {
  if (failed()) {
    for (Request* request : batch) request->result = WhyFailed();
    return;
  }
  Error error;
  if (TryTogether(batch, error)) return;
  if (batch.size() == 1 || failed()) {
    for (Request* request : batch) request->result = error;
    return;
  }
  for (Request* request : batch) {
    if (!TryTogether({request}, error)) request->result = error;
  }
}

StoreTxn::Context Committer::MakeContext(MDB_txn* txn, const State& state) const {
  StoreTxn::Context context;
  context.txn = txn;
  context.handles = &handles_;
  context.identity = &identity_;
  context.directory = &env_.directory();
  context.clock = hooks_.clock();
  context.now = context.clock;
  if (hooks_.time_never_goes_back) context.now = std::max(context.now, state.latest_time);
  return context;
}

bool Committer::GrowthAllowed() const {
  const lmdb::Env::Info info = env_.GetInfo();
  if (info.page_size == 0) return false;
  const std::uint64_t pages = info.map_bytes / info.page_size;
  const std::uint64_t used = info.last_page + 1;
  const std::uint64_t untouched = pages > used ? pages - used : 0;
  return untouched >= kReservePages || untouched + FreePages(env_) >= kReservePages;
}

Result<void> Committer::RunOne(lmdb::Txn& txn, const Change& change, State& state, bool& dirty) {
  StoreTxn::Context context = MakeContext(txn.get(), state);
  context.growth_allowed = GrowthAllowed();
  StoreTxn store_txn(context, state);
  Result<void> result = change(store_txn);
  dirty = store_txn.dirty();
  return result;
}

Result<void> Committer::CommitState(lmdb::Txn& txn, State& state) {
  StoreTxn last(MakeContext(txn.get(), state), state);
  if (auto r = last.WriteState(); !r) return r;
  const int rc = txn.Commit();
  if (rc == MDB_SUCCESS) return {};
  // After a meta page that could not be written LMDB refuses everything: then nobody knows. A write
  // asks, since a read may be refused for want of a reader slot.
  lmdb::Txn probe;
  if (probe.BeginWrite(env_) == MDB_PANIC) {
    failed_.store(true, std::memory_order_release);
    return OutcomeUnknown(env_.directory());
  }
  return lmdb::MakeError(rc, "committing", env_.directory());
}

bool Committer::TryTogether(const std::vector<Request*>& batch, Error& error) {
  if (auto owned = StillOwned(); !owned) {
    error = NothingChanged(owned.error());
    if (error.code == ErrorCode::kOwned) Stop(error);
    return false;
  }
  lmdb::Txn txn;
  int rc = txn.BeginWrite(env_);
  if (rc == MDB_MAP_FULL) {
    env_.ClearDeadReaders();
    rc = txn.BeginWrite(env_);
  }
  if (rc != MDB_SUCCESS) {
    error = lmdb::MakeError(rc, "beginning a write", env_.directory());
    return false;
  }
  if (txn.id() != state_.lmdb_txn_id + 1) {
    // owner.lock was removed under us: digests that start from our state would not be true.
    error = {ErrorCode::kOwned,
             "another process wrote to " + env_.directory().string() + "; nothing was changed",
             "stop one of the two, then close the store and open it again"};
    return false;
  }
  UndoLog* const undo = hooks_.undo;
  State state = state_;
  bool any_dirty = false;
  for (Request* request : batch) {
    const std::size_t mark = undo != nullptr ? undo->Mark() : 0;
    State next = state;
    bool dirty = false;
    lmdb::Txn nested;
    if (batch.size() > 1) {
      rc = nested.BeginWrite(env_, txn.get());
      if (rc != MDB_SUCCESS) {
        error = lmdb::MakeError(rc, "beginning a write", env_.directory());
        if (undo != nullptr) undo->RollBackTo(0);
        return false;
      }
    }
    request->result = RunOne(batch.size() > 1 ? nested : txn, *request->change, next, dirty);
    if (request->result && dirty && nested) {
      rc = nested.Commit();
      if (rc != MDB_SUCCESS) {
        request->result = lmdb::MakeError(rc, "writing a record", env_.directory());
      }
    }
    if (request->result) {
      if (dirty) state = next;
      any_dirty = any_dirty || dirty;
    } else {
      if (undo != nullptr) undo->RollBackTo(mark);
      // Alone in its transaction, a failed change takes that with it.
      if (batch.size() == 1) return true;
    }
  }
  if (any_dirty) {
    auto committed = CommitState(txn, state);
    if (!committed) {
      error = committed.error();
      if (error.code == ErrorCode::kStoreFull) env_.ClearDeadReaders();
      if (undo != nullptr) undo->RollBackTo(0);
      return false;
    }
    // Who came after our files were gone did not see this commit. Who comes later will.
    if (auto owned = StillOwned(); !owned) {
      error = MayBeLost(owned.error());
      Stop(NothingChanged(owned.error()));
      if (undo != nullptr) undo->RollBackTo(0);
      return false;
    }
    const std::lock_guard lock(mutex_);
    state_ = state;
  }
  if (undo != nullptr) undo->Forget();
  if (any_dirty && state.commit_sequence % kReaderCheckInterval == 0) env_.ClearDeadReaders();
  if (any_dirty && hooks_.committed) hooks_.committed(state.commit_sequence);
  return true;
}

}  // namespace waybill::internal
