// What happens when: events in the order of their times, and random times between them.

#ifndef WAYBILL_TESTS_SIMULATION_TIMELINE_H_
#define WAYBILL_TESTS_SIMULATION_TIMELINE_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::simulation {

// Since the simulation began.
using Millis = std::int64_t;
inline constexpr Millis kSecond = 1000;
inline constexpr Millis kMinute = 60 * kSecond;
inline constexpr Millis kHour = 60 * kMinute;
inline constexpr Millis kDay = 24 * kHour;
inline constexpr Millis kNever = INT64_MAX;

using testing::Draw;

// lowest <= result < highest.
inline Millis Between(Draw& draw, Millis lowest, Millis highest) {
  return lowest + static_cast<Millis>(draw.Below(static_cast<std::size_t>(highest - lowest)));
}
inline bool Percent(Draw& draw, std::size_t percent) { return draw.Below(100) < percent; }
// Exponentially distributed.
inline Millis Around(Draw& draw, Millis mean) {
  const double uniform = static_cast<double>(draw.Below(1U << 30U) + 1) / (1U << 30U);
  return static_cast<Millis>(-std::log(uniform) * static_cast<double>(mean)) + 1;
}

class Timeline {
 public:
  using Event = std::function<void()>;

  Millis now() const { return now_; }
  void After(Millis delay, Event event) { queue_.push({now_ + delay, next_++, std::move(event)}); }
  // Again and again, at random times.
  void Every(Draw& draw, Millis mean, Event event) {
    if (mean <= 0) return;
    After(Around(draw, mean), [this, &draw, mean, event = std::move(event)] {
      event();
      Every(draw, mean, event);
    });
  }
  // Moves the time to the next event and returns it. There must be one.
  Event Next() {
    Event event = std::move(const_cast<Entry&>(queue_.top()).event);
    now_ = queue_.top().when;
    queue_.pop();
    return event;
  }

 private:
  struct Entry {
    Millis when;
    std::uint64_t order;  // of events at the same time
    Event event;
    bool operator<(const Entry& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  std::priority_queue<Entry> queue_;
  Millis now_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_TIMELINE_H_
