// Rotated credentials that decisions met, on their way to the disk. A decision never waits for it.

#ifndef WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_
#define WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
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

  // Dropped where the queue is full or another thread is at it: the next decision offers it again.
  void Offer(std::string_view image_name, std::string_view image_ref,
             std::string_view runtime_handler, const ImagePullSecretView& secret);

  // Waits until all that was offered before is on disk; the first error since the last Flush.
  Result<void> Flush();

 private:
  struct Item {
    std::string image_name;
    std::string image_ref;
    std::string runtime_handler;
    ImagePullSecret secret;
  };
  void Run();

  Committer& committer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;    // guarded by mutex_
  std::size_t writing_ = 0;   // guarded by mutex_
  bool stopping_ = false;     // guarded by mutex_
  Result<void> first_error_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_WRITE_BACK_QUEUE_H_
