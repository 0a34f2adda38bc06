// Admits calls until it is closed, and then waits for those inside.

#ifndef WAYBILL_STORE_BASE_GATE_H_
#define WAYBILL_STORE_BASE_GATE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace waybill {

// Each thread counts in one of many cache lines, so that decisions on two processors share none.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // False once the gate is closed. Otherwise call Leave on the same thread.
  bool Enter() {
    Count& mine = counts_[StripeOfThread()];
    mine.inside.fetch_add(1);
    if (!closed_.load()) return true;
    mine.inside.fetch_sub(1, std::memory_order_release);
    return false;
  }
  // The last thing that a call touches: the gate may be gone afterwards. So Close polls instead of
  // being woken.
  void Leave() { counts_[StripeOfThread()].inside.fetch_sub(1, std::memory_order_release); }

  // Returns once no call is inside; never, if the caller is. False: the gate was closed before.
  bool Close() {
    const bool first = !closed_.exchange(true);
    for (const Count& count : counts_) {
      // Sequentially consistent, as the two steps of Enter: either Enter sees that the gate is
      // closed, or this loop sees the call.
      for (unsigned looks = 0; count.inside.load() != 0; ++looks) {
        if (looks < 100) {
          std::this_thread::yield();
        } else {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      }
    }
    return first;
  }
  bool closed() const { return closed_.load(); }

  // Inside while it lives, if it is true.
  class Visit {
   public:
    explicit Visit(Gate& gate) : gate_(gate.Enter() ? &gate : nullptr) {}
    ~Visit() {
      if (gate_ != nullptr) gate_->Leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    Gate* gate_;
  };

 private:
  static std::size_t StripeOfThread() {
    // Each thread has its own copy, some pages away from those of other threads.
    static thread_local char of_thread;
    return ((reinterpret_cast<std::uintptr_t>(&of_thread) >> 12U) * 0x9E3779B97F4A7C15U) >> 59U;
  }

  struct alignas(64) Count {
    std::atomic<std::uint32_t> inside{0};
  };
  std::array<Count, 32> counts_{};
  std::atomic<bool> closed_{false};
};

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_GATE_H_
