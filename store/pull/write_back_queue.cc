#include "store/pull/write_back_queue.h"

#include <cerrno>
#include <exception>
#include <utility>

#include "store/pull/recording.h"
#include "waybill/limits.h"

namespace waybill::internal {

WriteBackQueue::WriteBackQueue(Committer& committer) : committer_(committer) {
  sem_init(&pushed_, 0, 0);
  thread_ = std::thread([this] { Run(); });
}

WriteBackQueue::~WriteBackQueue() {
  stopping_ = true;
  sem_post(&pushed_);
  thread_.join();
  sem_destroy(&pushed_);
}

void WriteBackQueue::Push(Item* pushed) {
  pushed->next = newest_.load(std::memory_order_relaxed);
  while (!newest_.compare_exchange_weak(pushed->next, pushed, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  sem_post(&pushed_);
}

void WriteBackQueue::Offer(std::string_view image_name, std::string_view image_ref,
                           std::string_view runtime_handler, const ImagePullSecretView& secret) {
  if (waiting_.load() >= kMaxQueuedWriteBacks) return;
  // One that is above the bounds matched what is stored, but could not be stored.
  for (const std::string_view text :
       {secret.uid, secret.namespace_name, secret.name, secret.credential_hash}) {
    if (text.size() > kMaxCoordinateBytes) return;
  }
  auto item = std::make_unique<Item>();
  item->credential = {std::string(image_name),
                      std::string(image_ref),
                      std::string(runtime_handler),
                      {std::string(secret.uid), std::string(secret.namespace_name),
                       std::string(secret.name), std::string(secret.credential_hash)}};
  waiting_.fetch_add(1);
  Push(item.release());
}

Result<void> WriteBackQueue::Flush() {
  Mark mark;
  Item item;  // no allocation, which could throw
  item.mark = &mark;
  Push(&item);
  std::unique_lock lock(mutex_);
  reached_.wait(lock, [&] { return mark.reached; });
  return std::move(mark.error);
}

WriteBackQueue::Item* WriteBackQueue::TakeAll() {
  Item* newest = newest_.exchange(nullptr, std::memory_order_acquire);
  Item* oldest = nullptr;
  while (newest != nullptr) {
    Item* const next = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, next);
  }
  return oldest;
}

void WriteBackQueue::Write(const Credential& item) {
  try {
    const Result<void> written = committer_.Run([&item](StoreTxn& txn) -> Result<void> {
      try {
        return WriteBack(txn, item.image_name, item.image_ref, item.runtime_handler, item.secret);
      } catch (const std::exception& e) {
        return Error{ErrorCode::kIo, std::string("cannot write a credential back: ") + e.what(),
                     ""};
      }
    });
    if (!written && first_error_) first_error_ = written.error();
  } catch (...) {
    // Out of memory before or after the commit: there may be none for a text either.
    if (first_error_) first_error_ = Error{ErrorCode::kIo, {}, {}};
  }
  waiting_.fetch_sub(1);
}

void WriteBackQueue::Run() {
  while (true) {
    const bool stopping = stopping_.load();
    for (Item* next = TakeAll(); next != nullptr;) {
      Item* const item = std::exchange(next, next->next);
      if (item->mark == nullptr) {
        const std::unique_ptr<Item> owned(item);
        Write(*owned->credential);
        continue;
      }
      // Once its mark is reached the item is gone with its Flush.
      const std::lock_guard lock(mutex_);
      Mark& mark = *item->mark;
      mark.error = std::exchange(first_error_, {});
      mark.reached = true;
      reached_.notify_all();
    }
    if (stopping) return;
    while (sem_wait(&pushed_) != 0 && errno == EINTR) {
    }
  }
}

}  // namespace waybill::internal
