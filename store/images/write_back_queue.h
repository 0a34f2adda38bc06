// Writes back rotated credentials that decisions met: a bounded queue and a thread. The mutex is
// held only for moments, never during a write. A decision takes it only after meeting such a
// credential; under kubelet rules it may also wait (WaitFor).

#ifndef WAYBILL_STORE_IMAGES_WRITE_BACK_QUEUE_H_
#define WAYBILL_STORE_IMAGES_WRITE_BACK_QUEUE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>

#include "store/base/files.h"
#include "store/disk/committer.h"
#include "store/images/aliases.h"
#include "store/images/pull.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct WriteBackCounts {
  std::atomic<std::uint64_t> failures{0};  // could not be written
  std::atomic<std::uint64_t> dropped{0};   // the queue was full
};

class WriteBackQueue {
 public:
  // Starts the thread that writes. `counts` outlives it.
  WriteBackQueue(Committer& committer, Aliases& aliases, Mode mode, WriteBackCounts& counts);
  // Writes what is queued, then stops.
  ~WriteBackQueue();
  WriteBackQueue(const WriteBackQueue&) = delete;
  WriteBackQueue& operator=(const WriteBackQueue&) = delete;

  // If the queue is full, kubelet rules wait for room. Closed rules drop the secret, and the next
  // decision offers it again. `read_at`: the commit that the decision read.
  void Offer(MatchedSecret matched, std::uint64_t read_at);

  // Something is being forgotten after commit `commit`: a decision that read that one or an older
  // one must not bring it back, so the secret that it offered is dropped. The next decision offers
  // it again.
  void DropReadUpTo(std::uint64_t commit);

  // Whether something is queued. If not, a snapshot taken afterwards has all that was offered
  // before. Takes no lock.
  bool busy() const { return unwritten_.load(std::memory_order_acquire) != 0; }
  // Waits until all that was offered for `image_ref` is on disk or has failed.
  void WaitFor(std::string_view image_ref);
  void WaitForAll();

  // Waits until all that was offered before is on disk or has failed. Returns the first error since
  // the last Flush. Allocates nothing.
  Result<void> Flush();

 private:
  struct Item {
    std::uint64_t number = 0;
    MatchedSecret matched;
    std::uint64_t read_at = 0;
  };

  void WaitUntilWritten(std::unique_lock<std::mutex>& lock, std::uint64_t number);
  // By a timer, since waking a thread takes a decision several times as long as all else.
  void WakeIn(std::chrono::nanoseconds delay) const noexcept;
  void Run();
  Result<void> Write(const Item& item);

  Committer& committer_;
  Aliases& aliases_;
  const Mode mode_;
  WriteBackCounts& counts_;
  const Fd timer_;  // the thread waits for it
  std::atomic<std::size_t> unwritten_{0};
  std::atomic<std::uint64_t> dropped_up_to_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable written_;
  std::list<Item> items_;  // oldest first; includes the one being written
  std::uint64_t last_offered_ = 0;
  std::uint64_t last_written_ = 0;
  bool stopping_ = false;
  Result<void> first_error_;
  std::thread thread_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_WRITE_BACK_QUEUE_H_
