// What an owner decides by, and what others may make of it.

#ifndef WAYBILL_STORE_DOOR_SETTINGS_H_
#define WAYBILL_STORE_DOOR_SETTINGS_H_

#include <optional>
#include <string_view>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/door/values.h"
#include "waybill/calls.h"
#include "waybill/result.h"

namespace waybill::internal {

// kInvalidArgument: as of VerificationPolicy::Make and WithProofs.
Result<VerificationPolicy> PolicyOf(const Policy& policy);
// 0: as the store remembers them.
std::optional<AgeLimits> AgesOf(const Settings& settings);

// What an owner that decides nothing, such as a command, announces before the settings of whoever
// decided last.
inline constexpr char kDecidesNothing = '-';

// Whether whoever decides by `mine` opens nothing that an owner would not, who announced this.
// False where it can't be told.
bool IsNoLaxer(const Settings& mine, std::string_view announced);
bool IsNoLaxer(const AgeLimits& mine, const AgeLimits& owners);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DOOR_SETTINGS_H_
