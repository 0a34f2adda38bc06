#include "store/pull/write_back_queue.h"

#include <exception>
#include <utility>

#include "store/pull/recording.h"
#include "waybill/limits.h"

namespace waybill::internal {

WriteBackQueue::WriteBackQueue(Committer& committer)
    : committer_(committer), thread_([this] { Run(); }) {}

WriteBackQueue::~WriteBackQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WriteBackQueue::Offer(std::string_view image_name, std::string_view image_ref,
                           std::string_view runtime_handler, const ImagePullSecretView& secret) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || queue_.size() >= kMaxQueuedWriteBacks) return;
  queue_.push_back({std::string(image_name),
                    std::string(image_ref),
                    std::string(runtime_handler),
                    {std::string(secret.uid), std::string(secret.namespace_name),
                     std::string(secret.name), std::string(secret.credential_hash)}});
  changed_.notify_all();
}

Result<void> WriteBackQueue::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && writing_ == 0; });
  return std::exchange(first_error_, {});
}

void WriteBackQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    writing_ = 1;
    lock.unlock();
    Result<void> written = committer_.Run([&item](StoreTxn& txn) -> Result<void> {
      try {
        return WriteBack(txn, item.image_name, item.image_ref, item.runtime_handler, item.secret);
      } catch (const std::exception& e) {
        return Error{ErrorCode::kIo, std::string("cannot write a credential back: ") + e.what(),
                     ""};
      }
    });
    lock.lock();
    writing_ = 0;
    if (!written && first_error_) first_error_ = written.error();
    changed_.notify_all();
  }
}

}  // namespace waybill::internal
