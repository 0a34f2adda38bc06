// A wall clock that stands still until it is set.

#ifndef WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_
#define WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "waybill/node_store.h"
#include "waybill/types.h"

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
  void AdvanceSeconds(std::int64_t seconds) {
    std::lock_guard lock(state_->mutex);
    state_->now.seconds += seconds;
  }

  Clock AsClock() const {
    return [state = state_] {
      std::lock_guard lock(state->mutex);
      return state->now;
    };
  }

 private:
  struct State {
    std::mutex mutex;
    Timestamp now{kFakeEpoch, 0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_FAKE_CLOCK_H_
