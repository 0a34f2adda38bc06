#include "store/images/write_back_queue.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "store/base/caught.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// Those of a burst follow each other without another wait.
constexpr std::chrono::milliseconds kDelay{10};
constexpr std::chrono::nanoseconds kNow{1};

}  // namespace

WriteBackQueue::WriteBackQueue(Committer& committer, Aliases& aliases, Mode mode,
                               WriteBackCounts& counts)
    : committer_(committer),
      aliases_(aliases),
      mode_(mode),
      counts_(counts),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (!timer_.valid()) throw std::system_error(errno, std::generic_category(), "make a timer");
  thread_ = std::thread([this] { Run(); });
}

WriteBackQueue::~WriteBackQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  WakeIn(kNow);
  thread_.join();
}

void WriteBackQueue::WakeIn(std::chrono::nanoseconds delay) const noexcept {
  const struct itimerspec once {
    .it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = delay.count() }
  };
  timerfd_settime(timer_.get(), 0, &once, nullptr);
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
  bool is_first = false;
  {
    std::unique_lock lock(mutex_);
    if (WaitsForWriteBack(mode_)) {
      if (items_.size() >= kMaxQueuedWriteBacks) WakeIn(kNow);
      written_.wait(lock, [&] { return items_.size() < kMaxQueuedWriteBacks; });
    } else if (items_.size() >= kMaxQueuedWriteBacks) {
      counts_.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    is_first = items_.empty();
    made.front().number = ++last_offered_;
    items_.splice(items_.end(), made);
    unwritten_.fetch_add(1, std::memory_order_release);
  }
  if (is_first) WakeIn(kDelay);
}

void WriteBackQueue::DropReadUpTo(std::uint64_t commit) {
  std::uint64_t before = dropped_up_to_.load(std::memory_order_relaxed);
  while (before < commit && !dropped_up_to_.compare_exchange_weak(before, commit)) {
  }
}

void WriteBackQueue::WaitUntilWritten(std::unique_lock<std::mutex>& lock, std::uint64_t number) {
  if (last_written_ < number) WakeIn(kNow);
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
        Images images(txn, aliases_);
        return WriteBack(images, item.matched, forgot);
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
    if (items_.empty()) {
      if (stopping_) return;
      lock.unlock();
      std::uint64_t times = 0;
      static_cast<void>(!read(timer_.get(), &times, sizeof(times)));
      lock.lock();
      continue;
    }
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
