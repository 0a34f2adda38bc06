// What is done to a whole store while nobody has it open, as scenarios that can be disturbed: from
// one state to another, with nothing in between.

#ifndef WAYBILL_TESTS_CRASH_MAINTENANCE_H_
#define WAYBILL_TESTS_CRASH_MAINTENANCE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "tests/crash/stage.h"
#include "tests/support/node_store.h"
#include "tests/support/versions.h"

namespace waybill::testing {

// What a store is, but for stamps and for the journal: each restoring is an entry.
struct Is {
  std::uint32_t version = 0;
  Contents contents;
  friend bool operator==(const Is&, const Is&) = default;
};

class Place : public Stage {
 public:
  Result<void> Open(const std::function<void(NodeStore&)>& then = nullptr) const;
  Result<void> MigrateTo(std::uint32_t version) const;
  Result<void> RestoreOldest() const;
  bool Sound() const;
  Is Look() const;
  // Whether a store that is such is kept under quarantine/.
  bool KeepsAside(const Is& is) const;
};

struct Scenario {
  const char* name;
  std::function<void(const Place&)> begin;  // of a store of the newest version
  std::function<Result<void>(const Place&)> run;
  bool replaces = false;                    // the store, which is to be kept aside
  std::vector<std::uint32_t> between = {};  // the versions between its steps
};
// For a process that knows a third version (tests/support/third_version.h).
std::span<const Scenario> MaintenanceScenarios();

// Makes a store with so many records, one in five of them with more than version 1 can say, and
// brings it where the scenario begins.
void Begin(const Scenario& scenario, std::size_t records, const Place& place);

// What such a store is between the steps of the scenario.
std::vector<Is> BetweenSteps(const Scenario& scenario, std::size_t records);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_MAINTENANCE_H_
