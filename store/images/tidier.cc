#include "store/images/tidier.h"

#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/images/forget.h"

namespace waybill::internal {

Tidier::~Tidier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Tidier::Wake() {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    wanted_ = true;
  }
  changed_.notify_all();
}

Result<void> Tidier::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || (!wanted_ && !busy_); });
  return last_;
}

void Tidier::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || wanted_; });
    if (stopping_) return;
    wanted_ = false;
    busy_ = true;
    Result<void> done;
    TidyCursor cursor;
    for (bool more = true; more && done && !stopping_;) {
      lock.unlock();
      try {
        // A change may run twice: the cursor moves once it is committed.
        TidyCursor moved;
        done = committer_.Run([&](StoreTxn& txn) -> Result<void> {
          try {
            moved = cursor;
            Images images(txn, aliases_);
            more = TRY(TidyUp(images, moved, at_once_));
            return {};
          } catch (...) {
            return Caught();
          }
        });
        if (done) cursor = std::move(moved);
      } catch (...) {
        done = Caught();
      }
      lock.lock();
    }
    last_ = std::move(done);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace waybill::internal
