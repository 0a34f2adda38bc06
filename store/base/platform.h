// Platforms as text. Pure, thread-safe.

#ifndef WAYBILL_STORE_BASE_PLATFORM_H_
#define WAYBILL_STORE_BASE_PLATFORM_H_

#include <string>
#include <string_view>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// The one spelling of a platform, as containerd compares them: x86_64 becomes amd64, aarch64 arm64,
// arm without a variant arm/v7, arm64/v8 arm64, macos darwin.
Platform NormalisePlatform(Platform platform);

// "linux/arm/v7", "windows/amd64 10.0.20348.1970"; OS features follow in parentheses.
std::string FormatPlatform(const Platform& platform);

// Reads OS/ARCHITECTURE[/VARIANT] and normalises it. kInvalidArgument: too few or too many parts,
// an empty part, or characters other than letters, digits, '.', '_' and '-'.
Result<Platform> ParsePlatform(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_PLATFORM_H_
