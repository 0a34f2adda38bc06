// Rotated credentials that decisions met, on their way to the disk. A decision never waits for it:
// it puts its item on a stack by one exchange of a pointer, and a thread takes the stack as a
// whole.

#ifndef WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_
#define WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_

#include <semaphore.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "store/record/committer.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

class WriteBackQueue {
 public:
  // Starts the thread that writes.
  explicit WriteBackQueue(Committer& committer);
  // Writes what is queued, then stops.
  ~WriteBackQueue();
  WriteBackQueue(const WriteBackQueue&) = delete;
  WriteBackQueue& operator=(const WriteBackQueue&) = delete;

  // Dropped where the queue is full: the next decision offers it again.
  void Offer(std::string_view image_name, std::string_view image_ref,
             std::string_view runtime_handler, const ImagePullSecretView& secret);

  // Waits until all that was offered before is on disk; the first error since the last Flush.
  Result<void> Flush();

 private:
  struct Credential {
    std::string image_name;
    std::string image_ref;
    std::string runtime_handler;
    ImagePullSecret secret;
  };
  // A Flush waits for this: what was offered before it is then done.
  struct Mark {
    bool reached = false;  // guarded by mutex_
    Result<void> error;
  };
  struct Item {
    std::optional<Credential> credential;
    Mark* mark = nullptr;  // where there is none of the former; the item is then Flush's own
    Item* next = nullptr;
  };

  void Push(Item* item);
  // All that were pushed, oldest first. Those without a mark are to be deleted.
  Item* TakeAll();
  void Run();
  void Write(const Credential& item);

  Committer& committer_;
  std::atomic<Item*> newest_{nullptr};
  std::atomic<std::size_t> waiting_{0};  // write-backs that are not done
  std::atomic<bool> stopping_{false};
  sem_t pushed_;              // posting never waits
  Result<void> first_error_;  // of the thread that writes
  std::mutex mutex_;          // no decision takes it
  std::condition_variable reached_;
  std::thread thread_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_
