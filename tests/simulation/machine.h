// The machine's own clock, which a store may read on any thread.

#ifndef WAYBILL_TESTS_SIMULATION_MACHINE_H_
#define WAYBILL_TESTS_SIMULATION_MACHINE_H_

#include <cstdint>
#include <mutex>

#include "tests/simulation/node_life.h"
#include "waybill/values.h"

namespace waybill::simulation {

struct NodeLife::Machine {
  BootTime Now() {
    const std::lock_guard lock(mutex);
    return now;
  }
  void Set(Millis uptime) {
    const std::lock_guard lock(mutex);
    now.nanoseconds = uptime * 1'000'000;
  }
  void ChangeBootId() {
    const std::lock_guard lock(mutex);
    ++now.boot_id[0];
    if (now.boot_id[0] == 0) ++now.boot_id[1];
  }
  void Boot() {
    ChangeBootId();
    Set(0);
  }

  std::mutex mutex;
  // No ID is all zeros: that one is unknown.
  BootTime now{.boot_id = {0, 0, 7}};
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_MACHINE_H_
