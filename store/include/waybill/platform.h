// What an image was built for, and what it is to run on (OCI image index, `platform`; CRI and
// containerd use the same five fields). Pure, thread-safe.

#ifndef WAYBILL_PLATFORM_H_
#define WAYBILL_PLATFORM_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

struct Platform {
  std::string architecture;     // Go's names: "amd64", "arm64"
  std::string os;               // Go's names: "linux", "windows"
  std::string os_version = {};  // Windows: "10.0.20348.1970"
  std::vector<std::string> os_features = {};
  std::string variant = {};  // of arm, "v5" to "v8"; of arm64; of amd64, "v1" to "v4"

  friend bool operator==(const Platform&, const Platform&) = default;
};

// The one spelling of each platform that has several, as containerd compares them: x86_64 is amd64,
// aarch64 is arm64, arm without a variant is v7, arm64/v8 is arm64, macos is darwin.
Platform NormalisePlatform(Platform platform);

// "linux/arm/v7", "windows/amd64 10.0.20348.1970", os features behind that in parentheses.
std::string FormatPlatform(const Platform& platform);

// OS/ARCHITECTURE[/VARIANT], normalised. kInvalidArgument: another number of parts, an empty one,
// or one with other characters than letters, digits, '.', '_' and '-'.
Result<Platform> ParsePlatform(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_PLATFORM_H_
