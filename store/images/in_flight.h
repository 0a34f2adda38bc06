// Counts this process's pulls: those in flight, by image and runtime handler, where a change is
// undone if its transaction fails; and how they ended.

#ifndef WAYBILL_STORE_IMAGES_IN_FLIGHT_H_
#define WAYBILL_STORE_IMAGES_IN_FLIGHT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/base/function_ref.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/disk/committer.h"
#include "waybill/values.h"

namespace waybill::internal {

// Used by the committer's leader only; size() from any thread.
class InFlight final : public UndoLog {
 public:
  // 0: nothing is in flight.
  std::uint64_t Get(std::string_view image, std::string_view runtime_handler) const;
  // 0 forgets the image.
  void Set(std::string_view image, std::string_view runtime_handler, std::uint64_t count);
  // Whether a pull is in flight for a handler that `matches` accepts.
  bool AnyOf(FunctionRef<bool(std::string_view runtime_handler)> matches) const;
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  std::size_t Mark() override { return undo_.size(); }
  // Allocates nothing.
  void RollBackTo(std::size_t mark) override;
  void Forget() override { undo_.clear(); }

 private:
  // The key is handler, NUL (which is in no handler's name), image.
  using Entries = std::unordered_map<std::string, std::uint64_t>;
  // The entry before a change. A removed one keeps its node, so undoing allocates nothing.
  struct Undo {
    std::string key;
    std::uint64_t before = 0;
    Entries::node_type node;
  };

  Entries entries_;
  std::vector<Undo> undo_;
  std::atomic<std::size_t> size_{0};
};

// Two logs as one.
class UndoBoth final : public UndoLog {
 public:
  UndoBoth(UndoLog& one, UndoLog& other) : one_(one), other_(other) {}
  std::size_t Mark() override {
    marks_.emplace_back(one_.Mark(), other_.Mark());
    return marks_.size() - 1;
  }
  void RollBackTo(std::size_t mark) override {
    if (mark >= marks_.size()) return;
    one_.RollBackTo(marks_[mark].first);
    other_.RollBackTo(marks_[mark].second);
    marks_.resize(mark);
  }
  void Forget() override {
    one_.Forget();
    other_.Forget();
    marks_.clear();
  }

 private:
  UndoLog& one_;
  UndoLog& other_;
  std::vector<std::pair<std::size_t, std::size_t>> marks_;
};

// Counts how pulls end, and how long they take. In memory. Used by any thread. Times are those of
// the boot clock, and no process lives longer than a boot.
class PullCounts {
 public:
  // An intent was recorded. Never fails: out of memory, the pull has no duration.
  void Begin(PullId pull, const BootTime& now) noexcept;
  // Its end is recorded. 0: which pull it was is not known, or no intent was recorded. Returns how
  // many nanoseconds it took, if that is known.
  std::optional<std::int64_t> End(PullId pull, PullEnd outcome, PullErrorClass error_class,
                                  const BootTime& now) noexcept;
  // By PullEnd and PullErrorClass; of pulls that succeeded in [0].
  using Ended = std::array<std::array<std::uint64_t, kMaxPullErrorClasses>, kPullEnds>;
  Ended ended() const;
  // How long pulls took, from the intent to the end, and how many that is of: those of which one
  // process recorded both.
  std::uint64_t nanoseconds() const { return nanoseconds_.load(std::memory_order_relaxed); }
  std::uint64_t timed() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::optional<std::int64_t> TakeBegin(PullId pull) noexcept;

  std::array<std::array<std::atomic<std::uint64_t>, kMaxPullErrorClasses>, kPullEnds> pulls_{};
  std::atomic<std::uint64_t> nanoseconds_{0};
  std::atomic<std::uint64_t> count_{0};
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::int64_t> began_;  // guarded by mutex_
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_IN_FLIGHT_H_
