// What an owner decides by, and everybody after it.

#ifndef WAYBILL_STORE_DOOR_SETTINGS_H_
#define WAYBILL_STORE_DOOR_SETTINGS_H_

#include <chrono>
#include <cstdint>
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
std::optional<std::chrono::seconds> MaxAgeOf(const Settings& settings);

// What a store is decided by.
struct Chosen {
  std::uint64_t hash = 0;  // State::settings_hash
  Settings settings = {};
  VerificationPolicy policy = {};

  // What can't be read, as of a later version, is the strictest policy.
  static Chosen Of(std::string_view text, std::uint64_t hash = 0);
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DOOR_SETTINGS_H_
