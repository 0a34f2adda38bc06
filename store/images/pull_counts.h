// Counts how pulls end, and how long they take. In memory.

#ifndef WAYBILL_STORE_IMAGES_PULL_COUNTS_H_
#define WAYBILL_STORE_IMAGES_PULL_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "waybill/values.h"

namespace waybill::internal {

// Used by any thread. Times are those of the boot clock, and no process lives longer than a boot.
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

#endif  // WAYBILL_STORE_IMAGES_PULL_COUNTS_H_
