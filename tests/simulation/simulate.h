// As many lives as it takes to make so many decisions.

#ifndef WAYBILL_TESTS_SIMULATION_SIMULATE_H_
#define WAYBILL_TESTS_SIMULATION_SIMULATE_H_

#include <cstdint>

#include "tests/simulation/figures.h"
#include "tests/simulation/scenario.h"

namespace waybill::simulation {

// Lives as long as the scenario says, the last one shorter; their seeds are `seed` and those after
// it. Throws Wrong (node_life.h).
Figures Simulate(const Scenario& scenario, std::uint64_t decisions, std::uint64_t seed,
                 Breakage breakage = Breakage::kNone);

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_SIMULATE_H_
