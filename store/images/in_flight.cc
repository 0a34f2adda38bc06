#include "store/images/in_flight.h"

#include <algorithm>
#include <utility>

#include "waybill/limits.h"

namespace waybill::internal {

namespace {

std::string KeyOf(std::string_view image, std::string_view runtime_handler) {
  std::string key(runtime_handler);
  key += '\0';
  return key += image;
}

}  // namespace

std::uint64_t InFlight::Get(std::string_view image, std::string_view runtime_handler) const {
  const auto at = entries_.find(KeyOf(image, runtime_handler));
  return at == entries_.end() ? 0 : at->second;
}

void InFlight::Set(std::string_view image, std::string_view runtime_handler, std::uint64_t count) {
  undo_.emplace_back();
  Undo& undo = undo_.back();
  undo.key = KeyOf(image, runtime_handler);
  const auto at = entries_.find(undo.key);
  if (at != entries_.end()) undo.before = at->second;
  if (count == 0) {
    if (at != entries_.end()) undo.node = entries_.extract(at);
  } else if (at != entries_.end()) {
    at->second = count;
  } else {
    entries_.emplace(undo.key, count);
  }
  size_.store(entries_.size(), std::memory_order_relaxed);
}

bool InFlight::AnyOf(FunctionRef<bool(std::string_view)> matches) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const std::string_view key = entry.first;
    return matches(key.substr(0, key.find('\0')));
  });
}

void InFlight::RollBackTo(std::size_t mark) {
  for (; undo_.size() > mark; undo_.pop_back()) {
    Undo& undo = undo_.back();
    if (undo.node) {
      entries_.insert(std::move(undo.node));
    } else if (undo.before == 0) {
      entries_.erase(undo.key);
    } else if (const auto at = entries_.find(undo.key); at != entries_.end()) {
      at->second = undo.before;
    }
  }
  size_.store(entries_.size(), std::memory_order_relaxed);
}

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
