// Times as RFC 3339.

#ifndef WAYBILL_STORE_BASE_TIMESTAMP_H_
#define WAYBILL_STORE_BASE_TIMESTAMP_H_

#include <string>
#include <string_view>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// "2026-01-02T03:04:05Z", with a fraction if the time has one.
std::string FormatTimestamp(Timestamp time);

// Reads RFC 3339 with any offset, a fraction of up to nine digits, and years 1 to 9999, but no leap
// second (kubelet behaviour). kInvalidArgument for anything else.
Result<Timestamp> ParseTimestamp(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_TIMESTAMP_H_
