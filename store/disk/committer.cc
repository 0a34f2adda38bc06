#include "store/disk/committer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "store/base/caught.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxBatch = 256;
// Commits between two searches for dead readers, which keep old pages from being used again.
constexpr std::uint64_t kReaderCheckInterval = 256;
// Pages that only deletions may use, so that a full store can be pruned. A small deletion takes
// about ten pages (the paths in the trees that it touches, their neighbours, the free list); the
// next commit but one can use again what it frees.
constexpr std::uint64_t kMinReservePages = 64;
constexpr std::uint64_t kMaxReservePages = 1024;
constexpr std::uint64_t kReserveShare = 16;
// A commit writes so many beside those of the tables: the main table's to the state, free list. It
// must leave so many that can be used at once, or no later one could ever be written.
constexpr std::uint64_t kPagesOfCommit = 6;
constexpr std::uint64_t kPagesLeft = 10;
// If so many pages were never used, the free list is not read.
constexpr std::uint64_t kPlentyOfPages = 16384;

// `why` may be empty.
Error OutcomeUnknown(const std::filesystem::path& directory, const std::string& why) {
  return {ErrorCode::kOutcomeUnknown,
          "a write to " + directory.string() + " failed half way" +
              (why.empty() ? "" : " (" + why + ")") +
              ": it may or may not be on disk; every decision now answers \"pull\"",
          "close the store and open it again"};
}

Error NothingChanged(Error error) {
  error.message += "; nothing was changed";
  if (error.code == ErrorCode::kOwned) error.message += ", and every decision now answers \"pull\"";
  return error;
}

// The error of a commit after which the store's files were not as expected.
Error MayNotStand(Error error) {
  error.message += error.code == ErrorCode::kOwned
                       ? "; what was written last may be lost"
                       : "; whether what was written last stands is not known";
  error.message += ", and every decision now answers \"pull\"";
  error.code = ErrorCode::kOutcomeUnknown;
  error.hint = "close the store and open it again";
  return error;
}

// Whether a change came to grief, rather than being refused for what it asks.
bool IsFailure(ErrorCode code) {
  switch (code) {
    case ErrorCode::kDamaged:
    case ErrorCode::kOwned:
    case ErrorCode::kStoreFull:
    case ErrorCode::kDiskFull:
    case ErrorCode::kIo:
    case ErrorCode::kOutcomeUnknown:
    case ErrorCode::kOutOfMemory:
      return true;
    default:
      return false;
  }
}

struct Snapshots {
  std::uint64_t last = 0;    // the transaction ID of the last commit
  std::uint64_t oldest = 0;  // that of the oldest older snapshot still held; if none, last + 1
};

// LMDB lists its readers only as lines of text: process, thread, transaction ID or "-".
int LowerToOldest(const char* line, void* context) {
  unsigned long process = 0;
  unsigned long long thread = 0;
  unsigned long long txn_id = 0;
  auto& snapshots = *static_cast<Snapshots*>(context);
  if (std::sscanf(line, "%lu %llx %llu", &process, &thread, &txn_id) == 3 &&
      txn_id < snapshots.last) {
    snapshots.oldest = std::min<std::uint64_t>(snapshots.oldest, txn_id);
  }
  return 0;
}

// Pages in the free list that no old snapshot needs. LMDB shows the list to read transactions only.
struct FreePages {
  std::uint64_t usable = 0;
  std::uint64_t pending = 0;  // the last commit freed them: only the next but one can use them
};

FreePages CountFreePages(const lmdb::Env& env) {
  lmdb::Txn txn;
  const std::uint64_t last = env.GetInfo().last_txn_id;
  Snapshots snapshots{last, last + 1};
  FreePages pages;
  if (mdb_reader_list(env.get(), LowerToOldest, &snapshots) < 0) return pages;
  if (txn.BeginRead(env) != MDB_SUCCESS) return pages;
  lmdb::ForEach(txn.get(), 0, {}, [&](lmdb::Bytes key, lmdb::Bytes value) {
    std::size_t freed_by = 0;
    std::size_t count = 0;
    if (key.size() != sizeof(freed_by) || value.size() < sizeof(count)) return true;
    std::memcpy(&freed_by, key.data(), sizeof(freed_by));
    if (freed_by >= snapshots.oldest) return false;
    std::memcpy(&count, value.data(), sizeof(count));
    (freed_by < last ? pages.usable : pages.pending) += count;
    return true;
  });
  return pages;
}

}  // namespace

Committer::Committer(const lmdb::Env& env, const TableHandles& handles, const Identity& identity,
                     const State& state, Hooks hooks)
    : env_(env),
      handles_(handles),
      identity_(identity),
      hooks_(std::move(hooks)),
      state_(state),
      durable_sequence_(state.commit_sequence) {
  batch_.reserve(kMaxBatch);
  if (hooks_.mark == nullptr || hooks_.mark->allows_one_flush()) room_ahead_.emplace(env_);
}

State Committer::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

Result<void> Committer::Run(Change change) {
  Request request(change);
  std::unique_lock lock(mutex_);
  queue_.push_back(&request);
  request.wake.wait(lock,
                    [&] { return request.done || (!leading_ && queue_.front() == &request); });
  if (!request.done) Lead(lock);
  if (!request.result && IsFailure(request.result.error().code)) {
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
  return std::move(request.result);
}

void Committer::Lead(std::unique_lock<std::mutex>& lock) {
  leading_ = true;
  batch_.assign(queue_.begin(),
                queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), kMaxBatch)));
  lock.unlock();
  try {
    RunBatch(batch_);
    const auto full = std::partition(batch_.begin(), batch_.end(), [](const Request* request) {
      return request->result || request->result.error().code != ErrorCode::kStoreFull;
    });
    if (full != batch_.end() && FreePending()) RunBatch({full, batch_.end()});
  } catch (...) {
    // The waiting callers must be woken; how far the commit came is unknown.
    failed_.store(true, std::memory_order_release);
    for (Request* request : batch_) request->result = Error{ErrorCode::kOutcomeUnknown, "", ""};
  }
  lock.lock();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(batch_.size()));
  for (Request* request : batch_) {
    request->done = true;
    request->wake.notify_one();  // under mutex_: until then the request is there
  }
  LetLead();
}

void Committer::LetLead() {
  leading_ = false;
  if (!queue_.empty()) queue_.front()->wake.notify_one();
  nobody_leads_.notify_all();
}

bool Committer::FreePending() {
  if (failed() || FindRoom(env_.GetInfo()).pending < kPagesLeft) return false;
  const auto nothing = [](StoreTxn& txn) -> Result<void> {
    txn.Touch();
    return {};
  };
  Request request(nothing);
  Request* one = &request;
  RunBatch({&one, 1});
  return request.result.has_value();
}

Result<void> Committer::WithoutCommits(FunctionRef<Result<void>()> work) {
  std::unique_lock lock(mutex_);
  nobody_leads_.wait(lock, [&] { return !leading_; });
  leading_ = true;
  lock.unlock();
  const auto give_back = [&lock](Committer* leading) {
    lock.lock();
    leading->LetLead();
  };
  const std::unique_ptr<Committer, decltype(give_back)> until_done(this, give_back);
  return work();
}

void Committer::Stop(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  why_failed_ = why;
  failed_.store(true, std::memory_order_release);
}

Error Committer::WhyFailed() const {
  const std::lock_guard lock(mutex_);
  return why_failed_.message.empty() ? OutcomeUnknown(env_.directory(), "") : why_failed_;
}

bool Committer::CheckOwnership() {
  if (failed()) return false;
  auto owned = StillOwned(When::kBefore);
  if (owned) return true;
  if (owned.error().code == ErrorCode::kOwned) Stop(NothingChanged(owned.error()));
  return false;
}

void Committer::RunBatch(std::span<Request*> batch) {
  if (failed()) {
    for (Request* request : batch) request->result = WhyFailed();
    return;
  }
  Error error;
  if (TryTogether(batch, error)) return;
  if (batch.size() == 1 || failed()) {
    for (Request* request : batch) request->result = error;
  } else {
    for (std::size_t i = 0; i < batch.size(); ++i) RunBatch(batch.subspan(i, 1));
  }
}

StoreTxn::Context Committer::MakeContext(MDB_txn* txn) const {
  StoreTxn::Context context;
  context.txn = txn;
  context.handles = &handles_;
  context.identity = &identity_;
  context.directory = &env_.directory();
  context.now = hooks_.clock();
  if (hooks_.boot_clock) context.boot = hooks_.boot_clock();
  return context;
}

Committer::Room Committer::FindRoom(const lmdb::Env::Info& info) const {
  if (info.page_size == 0) return {};
  const std::uint64_t pages = info.map_bytes / info.page_size;
  const std::uint64_t reserve =
      std::clamp(pages / kReserveShare, kMinReservePages, kMaxReservePages);
  const std::uint64_t used = info.last_page + 1;
  const std::uint64_t unused = pages > used ? pages - used : 0;
  FreePages free;
  if (unused < kPlentyOfPages) free = CountFreePages(env_);
  // Dead readers keep pages from being used again.
  if (unused + free.usable + free.pending <= reserve && env_.ClearDeadReaders() > 0) {
    free = CountFreePages(env_);
  }
  // Pending ones count for growth, since the reserve lasts until they can be used.
  const std::uint64_t all = unused + free.usable + free.pending;
  return {.growth = all > reserve ? all - reserve : 0,
          .usable = unused + free.usable,
          .pending = free.pending};
}

Result<void> Committer::RunOne(lmdb::Txn& txn, Change change, State& state, bool& dirty, Room& room,
                               std::uint64_t& copied) {
  StoreTxn::Context context = MakeContext(txn.get());
  context.growth_pages = room.growth;
  StoreTxn store_txn(context, state);
  Result<void> result = change(store_txn);
  dirty = store_txn.dirty();
  room.growth -= store_txn.pages_taken();
  if (room.usable < kPlentyOfPages) copied += store_txn.PagesCopied();
  return result;
}

Result<void> Committer::CommitState(lmdb::Txn& txn, State& state, bool& committing) {
  StoreTxn last(MakeContext(txn.get()), state);
  if (hooks_.before_commit) {
    if (auto r = hooks_.before_commit(last); !r) return r;
  }
  if (auto r = last.WriteState(); !r) return r;
  if (hooks_.mark != nullptr && !hooks_.mark->is_lost()) {
    auto begun = hooks_.mark->Begin(state.commit_sequence, state_.commit_sequence);
    mark_failed_ = !begun && flushes_once_;
    if (mark_failed_) return begun;
  }
  committing = true;
  const auto flushes = flushes_once_ ? lmdb::Flushes::kByCaller : lmdb::Flushes::kByCommit;
  auto committed = lmdb::CommitOrPutBack(txn, env_, flushes);
  if (committed) {
    auto flushed = flushes_once_ ? env_.Flush() : Result<void>();
    if (flushed && room_ahead_) flushed = room_ahead_->Settle(env_.GetInfo());
    if (flushed) return {};
    // The kernel may take pages that never reached the disk for written: a later flush proves
    // nothing.
    Error error = OutcomeUnknown(env_.directory(), flushed.error().message);
    Stop(error);
    return error;
  }
  if (committed.error().code == ErrorCode::kOwned) {
    committing = false;
    Error error = NothingChanged(committed.error());
    Stop(error);
    return error;
  }
  // If LMDB could not write its meta page, it refuses every later write, and the outcome is
  // unknown. The probe is a write, since a read may also fail because no reader slot is free.
  lmdb::Txn probe;
  if (committed.error().code == ErrorCode::kOutcomeUnknown || probe.BeginWrite(env_) == MDB_PANIC) {
    failed_.store(true, std::memory_order_release);
    return OutcomeUnknown(env_.directory(), "");
  }
  committing = false;
  return committed;
}

bool Committer::TryTogether(std::span<Request*>& batch, Error& error) {
  while (true) {
    bool committing = false;
    bool done = false;
    mark_failed_ = false;
    try {
      done = TryTransaction(batch, error, committing);
    } catch (...) {
      if (committing) throw;
      // Memory ran out, or the caller's clock threw. The transaction is aborted.
      error = Caught();
    }
    if (!done && hooks_.undo != nullptr) hooks_.undo->RollBackTo(0);
    // Without the mark it needs two flushes, like any commit after one that was given up.
    if (done || !mark_failed_) return done;
  }
}

bool Committer::TakeMore(std::span<Request*>& batch) {
  // Not while the parts of a batch are tried one by one.
  if (batch.data() != batch_.data() || batch.size() != batch_.size()) return false;
  const std::lock_guard lock(mutex_);
  const std::size_t before = batch_.size();
  const std::size_t most = std::min(queue_.size(), kMaxBatch);
  for (std::size_t i = before; i < most; ++i) batch_.push_back(queue_[i]);
  batch = batch_;
  return most > before;
}

bool Committer::TryTransaction(std::span<Request*>& batch, Error& error, bool& committing) {
  if (auto owned = StillOwned(When::kBefore); !owned) {
    error = NothingChanged(owned.error());
    if (error.code == ErrorCode::kOwned) Stop(error);
    return false;
  }
  flushes_once_ = hooks_.mark != nullptr && hooks_.mark->allows_one_flush() && !flush_twice_next_;
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
    // owner.lock was removed and another process wrote: digests computed from our state would be
    // wrong.
    error = {ErrorCode::kOwned,
             "another process wrote to " + env_.directory().string() + "; nothing was changed",
             "stop one of the two, then close the store and open it again"};
    return false;
  }
  const lmdb::Env::Info info = env_.GetInfo();
  if (info.last_txn_id != state_.lmdb_txn_id) {
    error = NothingChanged(lmdb::WasWrittenOver(env_.directory()));
    Stop(error);
    return false;
  }
  if (room_ahead_) room_ahead_->Make(info);
  flush_twice_next_ = true;  // unless this one ends well
  UndoLog* const undo = hooks_.undo;
  State state = state_;
  bool any_dirty = false;
  Room room = FindRoom(info);
  std::uint64_t copied = 0;
  for (std::size_t i = 0; i < batch.size() || TakeMore(batch); ++i) {
    Request& request = *batch[i];
    const std::size_t mark = undo != nullptr ? undo->Mark() : 0;
    State next = state;
    bool dirty = false;
    request.result = RunOne(txn, request.change, next, dirty, room, copied);
    if (request.result) {
      if (dirty) state = next;
      any_dirty = any_dirty || dirty;
      continue;
    }
    const bool is_full = request.result.error().code == ErrorCode::kStoreFull;
    // Dead readers keep pages from being used again.
    if (is_full) env_.ClearDeadReaders();
    // There may be room for it in a transaction of its own.
    if (dirty || (is_full && batch.size() > 1)) {
      error = request.result.error();
      return false;
    }
    if (undo != nullptr) undo->RollBackTo(mark);
  }
  if (any_dirty && copied > 0 && room.usable < copied + kPagesOfCommit + kPagesLeft) {
    error = lmdb::MakeError(MDB_MAP_FULL, "committing", env_.directory());
    return false;
  }
  if (any_dirty) {
    auto committed = CommitState(txn, state, committing);
    if (!committed) {
      error = committed.error();
      if (error.code == ErrorCode::kStoreFull) env_.ClearDeadReaders();
      return false;
    }
    // If the files were replaced before the commit, processes that opened the new ones missed it.
    if (auto owned = StillOwned(When::kAfter); !owned) {
      error = MayNotStand(owned.error());
      Stop(NothingChanged(owned.error()));
      return false;
    }
    durable_sequence_.store(state.commit_sequence, std::memory_order_release);
    if (hooks_.mark != nullptr) hooks_.mark->Acknowledge(state.commit_sequence);
    const std::lock_guard lock(mutex_);
    state_ = state;
  }
  flush_twice_next_ = !any_dirty && !flushes_once_;
  if (undo != nullptr) undo->Forget();
  if (any_dirty && state.commit_sequence % kReaderCheckInterval == 0) env_.ClearDeadReaders();
  if (any_dirty && hooks_.committed) hooks_.committed(state.commit_sequence);
  return true;
}

}  // namespace waybill::internal
