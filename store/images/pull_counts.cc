#include "store/images/pull_counts.h"

#include "waybill/limits.h"

namespace waybill::internal {

void PullCounts::Begin(PullId pull, const BootTime& now) noexcept try {
  const std::scoped_lock lock(mutex_);
  // Kubelet rules: pulls of one image share an intent, which is as old as the first.
  if (began_.size() < kMaxInFlightImages) began_.emplace(pull.value, now.nanoseconds);
} catch (...) {
}

std::optional<std::int64_t> PullCounts::TakeBegin(PullId pull) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto at = began_.find(pull.value);
  if (at == began_.end()) return std::nullopt;
  const std::int64_t began = at->second;
  began_.erase(at);
  return began;
}

std::optional<std::int64_t> PullCounts::End(PullId pull, PullEnd outcome,
                                            PullErrorClass error_class,
                                            const BootTime& now) noexcept {
  pulls_[static_cast<std::size_t>(outcome)][static_cast<std::size_t>(error_class)].fetch_add(
      1, std::memory_order_relaxed);
  const auto began = TakeBegin(pull);
  if (!began || now.nanoseconds < *began) return std::nullopt;
  const std::int64_t took = now.nanoseconds - *began;
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(took), std::memory_order_relaxed);
  count_.fetch_add(1, std::memory_order_relaxed);
  return took;
}

PullCounts::Ended PullCounts::ended() const {
  Ended ended{};
  for (std::size_t outcome = 0; outcome < kPullEnds; ++outcome) {
    for (std::size_t one = 0; one < kMaxPullErrorClasses; ++one) {
      ended[outcome][one] = pulls_[outcome][one].load(std::memory_order_relaxed);
    }
  }
  return ended;
}

}  // namespace waybill::internal
