// A wall clock, and the machine's own time beside it, that stand still until they are set.

#ifndef WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_
#define WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "waybill/values.h"

namespace waybill::testing {

// 2026-01-01T00:00:00Z.
inline constexpr std::int64_t kFakeEpoch = 1767225600;

// Copies share the time, so that a store's clock can outlive the object that sets it.
class FakeClock {
 public:
  Timestamp Now() const {
    std::lock_guard lock(state_->mutex);
    return state_->now;
  }
  void Set(Timestamp now) {
    std::lock_guard lock(state_->mutex);
    state_->now = now;
  }
  // Time passes; a negative number moves the wall clock alone.
  void AdvanceSeconds(std::int64_t seconds) {
    std::lock_guard lock(state_->mutex);
    state_->now.seconds += seconds;
    if (seconds > 0) state_->boot.nanoseconds += seconds * 1'000'000'000;
  }
  // The wall clock alone is moved.
  void JumpSeconds(std::int64_t seconds) {
    std::lock_guard lock(state_->mutex);
    state_->now.seconds += seconds;
  }
  // The machine boots, and its time begins anew.
  void Reboot() {
    std::lock_guard lock(state_->mutex);
    state_->boot = {.boot_id = {++state_->boots}};
  }
  // Which boot it is can't be read.
  void ForgetBootId() {
    std::lock_guard lock(state_->mutex);
    state_->boot.boot_id = {};
  }
  BootTime Boot() const {
    std::lock_guard lock(state_->mutex);
    return state_->boot;
  }

  Clock AsClock() const {
    return [state = state_] {
      std::lock_guard lock(state->mutex);
      return state->now;
    };
  }
  BootClock AsBootClock() const {
    return [state = state_] {
      std::lock_guard lock(state->mutex);
      return state->boot;
    };
  }

 private:
  struct State {
    std::mutex mutex;
    Timestamp now{kFakeEpoch, 0};
    std::uint8_t boots = 1;
    // Longer ago than any grace or window.
    BootTime boot{.boot_id = {1}, .nanoseconds = std::int64_t{1'000'000} * 1'000'000'000};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_
