// Takes what was forgotten out of records, in batches, on a thread of its own that starts when it
// is first needed. What it has not done when it stops, the next owner does.

#ifndef WAYBILL_STORE_IMAGES_TIDIER_H_
#define WAYBILL_STORE_IMAGES_TIDIER_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "store/engine/database/committer.h"
#include "store/images/aliases.h"
#include "waybill/result.h"

namespace waybill::internal {

class Tidier {
 public:
  // `at_once`: NodeStoreOptions::tidied_at_once.
  Tidier(Committer& committer, Aliases& aliases, std::size_t at_once)
      : committer_(committer), aliases_(aliases), at_once_(at_once) {}
  // Stops after the batch under way.
  ~Tidier();
  Tidier(const Tidier&) = delete;
  Tidier& operator=(const Tidier&) = delete;

  // There is something to do. May throw if no thread can be made.
  void Wake();
  // Waits until there is nothing to do, or until a batch has failed: then its error.
  Result<void> Wait();

 private:
  void Run();

  Committer& committer_;
  Aliases& aliases_;
  const std::size_t at_once_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool wanted_ = false;
  bool busy_ = false;
  bool stopping_ = false;
  Result<void> last_;
  std::thread thread_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_TIDIER_H_
