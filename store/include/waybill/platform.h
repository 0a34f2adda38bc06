// The platform that an image was built for or runs on (OCI image index, `platform`; CRI and
// containerd use the same five fields). Pure, thread-safe.

#ifndef WAYBILL_PLATFORM_H_
#define WAYBILL_PLATFORM_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// What an image was built for, and what it is to run on. An empty member: not given.
struct Platform {
  std::string architecture = {};  // Go's names: "amd64", "arm64"
  std::string os = {};            // Go's names: "linux", "windows"
  std::string os_version = {};    // Windows: "10.0.20348.1970"
  std::vector<std::string> os_features = {};
  std::string variant = {};  // of arm, "v5" to "v8"; of arm64; of amd64, "v1" to "v4"

  friend bool operator==(const Platform&, const Platform&) = default;
};

// The one spelling of a platform, as containerd compares them: x86_64 becomes amd64, aarch64 arm64,
// arm without a variant arm/v7, arm64/v8 arm64, macos darwin.
Platform NormalisePlatform(Platform platform);

// "linux/arm/v7", "windows/amd64 10.0.20348.1970"; OS features follow in parentheses.
std::string FormatPlatform(const Platform& platform);

// Reads OS/ARCHITECTURE[/VARIANT] and normalises it. kInvalidArgument: too few or too many parts,
// an empty part, or characters other than letters, digits, '.', '_' and '-'.
Result<Platform> ParsePlatform(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_PLATFORM_H_
