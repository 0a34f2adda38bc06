// Version 9 has no index of credentials: what forgets looks at the records, and a pull writes about
// half as many pages.
//
// Up: the table goes.
//
// Down: it is there, and empty. Version 8 makes it anew at opening, since it contradicts the
// records. What stands for dropped images becomes a pull of anything, which ends sooner.

#include <algorithm>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/try.h"
#include "store/node/records/open_pulls_table.h"

namespace waybill::internal {

namespace v8_to_v9 {
namespace {

bool IsDropped(const UnresolvedPull& pull) { return pull.state == PullState::kDropped; }

Result<void> Up(StepRun&) { return {}; }

Result<void> Down(StepRun& run) {
  auto pulls = TRY(AllOpenPulls(run.txn));
  for (UnresolvedPull& pull : pulls) {
    if (!IsDropped(pull)) continue;
    pull.state = PullState::kUnknown;
    pull.dropped_ran = 0;
    TRY(PutOpenPull(run.txn, pull));
  }
  return {};
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::vector<std::string> losses;
  const auto pulls = TRY(AllOpenPulls(txn));
  if (std::any_of(pulls.begin(), pulls.end(), IsDropped)) {
    losses.emplace_back(
        "that images which were gone and are not remembered stay closed for 30 days");
  }
  return losses;
}

}  // namespace
}  // namespace v8_to_v9

const Step kStepV8ToV9 = {8, 9, "no index", v8_to_v9::Up, v8_to_v9::Down, v8_to_v9::Losses};

}  // namespace waybill::internal
