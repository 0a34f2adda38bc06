#include "store/node/pulls/write_back_queue.h"

#include <algorithm>
#include <utility>

#include "store/base/caught.h"
#include "waybill/limits.h"

namespace waybill::internal {

WriteBackQueue::WriteBackQueue(Committer& committer, Rules rules, WriteBackCounts& counts)
    : committer_(committer), rules_(rules), counts_(counts) {
  thread_ = std::thread([this] { Run(); });
}

WriteBackQueue::~WriteBackQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  offered_.notify_one();
  thread_.join();
}

void WriteBackQueue::Offer(MatchedSecret matched, std::uint64_t read_at) {
  // A secret above the bounds can match, but can't be stored.
  const ImagePullSecret& secret = matched.secret;
  for (const std::string_view text :
       {secret.uid, secret.namespace_name, secret.name, secret.credential_hash}) {
    if (text.size() > kMaxCoordinateBytes) return;
  }
  std::list<Item> made;  // allocated before the mutex is taken
  made.push_back({0, std::move(matched), read_at});
  {
    std::unique_lock lock(mutex_);
    if (rules_ == Rules::kKubelet) {
      written_.wait(lock, [&] { return items_.size() < kMaxQueuedWriteBacks; });
    } else if (items_.size() >= kMaxQueuedWriteBacks) {
      counts_.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    made.front().number = ++last_offered_;
    items_.splice(items_.end(), made);
    unwritten_.fetch_add(1, std::memory_order_release);
  }
  offered_.notify_one();
}

void WriteBackQueue::DropReadUpTo(std::uint64_t commit) {
  std::uint64_t before = dropped_up_to_.load(std::memory_order_relaxed);
  while (before < commit && !dropped_up_to_.compare_exchange_weak(before, commit)) {
  }
}

void WriteBackQueue::WaitUntilWritten(std::unique_lock<std::mutex>& lock, std::uint64_t number) {
  written_.wait(lock, [&] { return last_written_ >= number; });
}

void WriteBackQueue::WaitFor(std::string_view image_ref) {
  std::unique_lock lock(mutex_);
  const auto newest = std::find_if(items_.rbegin(), items_.rend(), [image_ref](const Item& item) {
    return item.matched.image_ref == image_ref;
  });
  if (newest != items_.rend()) WaitUntilWritten(lock, newest->number);
}

void WriteBackQueue::WaitForAll() {
  std::unique_lock lock(mutex_);
  WaitUntilWritten(lock, last_offered_);
}

Result<void> WriteBackQueue::Flush() {
  std::unique_lock lock(mutex_);
  WaitUntilWritten(lock, last_offered_);
  return std::exchange(first_error_, {});
}

Result<void> WriteBackQueue::Write(const Item& item) {
  try {
    return committer_.Run([&](StoreTxn& txn) -> Result<void> {
      const bool forgot = item.read_at <= dropped_up_to_.load(std::memory_order_acquire);
      try {
        return WriteBack(txn, item.matched, forgot);
      } catch (...) {
        return Caught();
      }
    });
  } catch (...) {
    return Caught();
  }
}

void WriteBackQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    offered_.wait(lock, [&] { return stopping_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item& oldest = items_.front();  // only this thread removes items
    lock.unlock();
    Result<void> written = Write(oldest);
    lock.lock();
    if (!written) counts_.failures.fetch_add(1, std::memory_order_relaxed);
    if (!written && first_error_) first_error_ = std::move(written);
    last_written_ = oldest.number;
    std::list<Item> done;
    done.splice(done.end(), items_, items_.begin());
    unwritten_.fetch_sub(1, std::memory_order_release);
    written_.notify_all();
    lock.unlock();
    done.clear();
    lock.lock();
  }
}

}  // namespace waybill::internal
