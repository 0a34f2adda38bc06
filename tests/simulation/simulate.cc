#include "tests/simulation/simulate.h"

#include "tests/simulation/node_life.h"
#include "tests/support/drawn_random.h"
#include "tests/support/memory_dir.h"

namespace waybill::simulation {

Figures Simulate(const Scenario& scenario, std::uint64_t decisions, std::uint64_t seed,
                 Breakage breakage) {
  Figures all;
  while (all.decisions < decisions) {
    const testing::MemoryDir scratch;
    const testing::DrawnRandom random(seed);
    NodeLife node(scenario, scratch.path(), seed++, breakage);
    node.Live(decisions - all.decisions, scenario.life);
    all.Add(node.figures());
  }
  return all;
}

}  // namespace waybill::simulation
