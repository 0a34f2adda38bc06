// One spelling for each platform, after containerd's platforms package (database.go, Normalize):
//
//   architecture              variant      becomes
//   i386                      any          386
//   x86_64, x86-64, amd64     v1           amd64
//   aarch64, arm64            8 v8 v8.0    arm64
//                             9 9.0 v9.0   arm64   v9
//   armhf                     any          arm     v7
//   armel                     any          arm     v6
//   arm                       none, 7      arm     v7
//                             5 6 8        arm     v5 v6 v8
//
// Letters become lower-case, the OS macos becomes darwin, features are sorted and unique. Unlike
// containerd, a missing OS stays missing: this process's own OS says nothing about an image.

#include "store/base/platform.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

void NormaliseArchitecture(std::string& architecture, std::string& variant) {
  if (architecture == "i386") {
    architecture = "386";
    variant.clear();
  } else if (architecture == "x86_64" || architecture == "x86-64" || architecture == "amd64") {
    architecture = "amd64";
    if (variant == "v1") variant.clear();
  } else if (architecture == "aarch64" || architecture == "arm64") {
    architecture = "arm64";
    if (variant == "8" || variant == "v8" || variant == "v8.0") variant.clear();
    if (variant == "9" || variant == "9.0" || variant == "v9.0") variant = "v9";
  } else if (architecture == "armhf") {
    architecture = "arm";
    variant = "v7";
  } else if (architecture == "armel") {
    architecture = "arm";
    variant = "v6";
  } else if (architecture == "arm") {
    if (variant.empty()) variant = "v7";
    if (variant.size() == 1 && variant[0] >= '5' && variant[0] <= '8') variant.insert(0, "v");
  }
}

bool IsPart(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPlatformFieldBytes && internal::IsMadeOf(text, "._-");
}

}  // namespace

Platform NormalisePlatform(Platform platform) {
  platform.os = internal::ToLower(platform.os);
  if (platform.os == "macos") platform.os = "darwin";
  platform.architecture = internal::ToLower(platform.architecture);
  platform.variant = internal::ToLower(platform.variant);
  NormaliseArchitecture(platform.architecture, platform.variant);
  auto& features = platform.os_features;
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return platform;
}

std::string FormatPlatform(const Platform& platform) {
  std::string text = platform.os.empty() ? "unknown" : platform.os;
  text += '/';
  text += platform.architecture.empty() ? "unknown" : platform.architecture;
  if (!platform.variant.empty()) text += '/' + platform.variant;
  if (!platform.os_version.empty()) text += ' ' + platform.os_version;
  if (platform.os_features.empty()) return text;
  text += " (";
  for (const std::string& feature : platform.os_features) {
    if (&feature != &platform.os_features.front()) text += ", ";
    text += feature;
  }
  return text + ')';
}

Result<Platform> ParsePlatform(std::string_view text) try {
  constexpr std::size_t kShownBytes = 200;
  std::array<std::string_view, 3> parts;
  std::size_t count = 0;
  bool sound = true;
  for (std::string_view rest = text; sound;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    sound = count < parts.size() && IsPart(part);
    if (sound) parts[count++] = part;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (!sound || count < 2) {
    std::string message = "no platform: ";
    AppendGoJsonString(text.substr(0, kShownBytes), message);
    return Error{ErrorCode::kInvalidArgument, std::move(message),
                 "the form is OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, like linux/arm/v7"};
  }
  return NormalisePlatform({.architecture = std::string(parts[1]),
                            .os = std::string(parts[0]),
                            .variant = std::string(parts[2])});
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
