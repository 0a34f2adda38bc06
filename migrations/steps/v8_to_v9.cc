// Version 9 has no index of credentials: what forgets looks at the records, and a pull writes about
// half as many pages.
//
// Up: the table goes.
//
// Down: it is there, and empty. Version 8 makes it anew at opening, since it contradicts the
// records.

#include <string>
#include <vector>

#include "migrations/steps/steps.h"

namespace waybill::internal {

namespace v8_to_v9 {
namespace {

Result<void> Move(StepRun&) { return {}; }
Result<std::vector<std::string>> Losses(const StoreTxn&) { return std::vector<std::string>(); }

}  // namespace
}  // namespace v8_to_v9

const Step kStepV8ToV9 = {8, 9, "no index", v8_to_v9::Move, v8_to_v9::Move, v8_to_v9::Losses};

}  // namespace waybill::internal
