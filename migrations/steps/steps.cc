#include "migrations/steps/steps.h"

#include "waybill/maintenance.h"

namespace waybill::internal {

std::span<const Step> Steps() {
  static const Step steps[] = {kStepV1ToV2, kStepV2ToV3, kStepV3ToV4};
  static_assert(std::size(steps) == kNewestSchema - kOldestSchema);
  return steps;
}

}  // namespace waybill::internal
