// Of a platform with            best first
//
//   amd64/vN     its own, amd64/v(N-1) … v2, amd64, 386
//   arm/vN       its own, arm/v(N-1) … v5
//   arm64/v8.m   its own, v8.(m-1) … v8.1, arm64, arm/v8 … v5
//   arm64/v9.m   its own, v9.(m-1) … v9.1, v9, then as v8.(m+5), at most v8.9: Armv9.0 came from
//                Armv8.5, and Armv8 ends with 8.9
//
// Any other variant or architecture runs only its own.

#include "migrations/runtime/fallbacks.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace waybill::internal {
namespace {

constexpr int kLastArmv8Minor = 9;

struct Level {
  int major = 0;
  int minor = 0;
};

// "v7" or "v8.2". Each number has one digit, as in all real variants, so that a hostile platform
// can't make the lists long.
std::optional<Level> ParseLevel(std::string_view variant) {
  const auto digit = [&](std::size_t at) { return variant[at] >= '0' && variant[at] <= '9'; };
  if (variant.size() != 2 && variant.size() != 4) return std::nullopt;
  if (variant[0] != 'v' || !digit(1)) return std::nullopt;
  if (variant.size() == 2) return Level{variant[1] - '0', 0};
  if (variant[2] != '.' || !digit(3)) return std::nullopt;
  return Level{variant[1] - '0', variant[3] - '0'};
}

std::string Variant(int major) { return "v" + std::to_string(major); }

// arm64/v8 is written without a variant.
std::string Arm64Variant(int major, int minor) {
  if (minor > 0) return Variant(major) + '.' + std::to_string(minor);
  return major == 8 ? std::string() : Variant(major);
}

void AddAmd64(std::string_view variant, std::vector<Processor>& out) {
  if (const auto level = ParseLevel(variant); level && variant.size() == 2) {
    for (int major = level->major - 1; major > 1; --major) {
      out.push_back({"amd64", Variant(major)});
    }
    if (level->major > 1) out.push_back({"amd64", ""});
  }
  out.push_back({"386", ""});
}

void AddArm(int from, std::vector<Processor>& out) {
  for (int major = from; major >= 5; --major) out.push_back({"arm", Variant(major)});
}

void AddArm64(std::string_view variant, std::vector<Processor>& out) {
  const auto level = variant.empty() ? Level{8, 0} : ParseLevel(variant);
  if (!level || level->major < 8) return;
  int minor = level->minor;
  if (level->major == 9) {
    while (minor > 0) out.push_back({"arm64", Arm64Variant(9, --minor)});
    minor = std::min(level->minor + 5, kLastArmv8Minor);
    out.push_back({"arm64", Arm64Variant(8, minor)});
  }
  while (minor > 0) out.push_back({"arm64", Arm64Variant(8, --minor)});
  AddArm(8, out);
}

}  // namespace

std::vector<Processor> RunnableProcessors(const Platform& platform) {
  std::vector<Processor> out = {{platform.architecture, platform.variant}};
  if (platform.architecture == "amd64") AddAmd64(platform.variant, out);
  if (platform.architecture == "arm64") AddArm64(platform.variant, out);
  if (platform.architecture == "arm") {
    if (const auto level = ParseLevel(platform.variant); level && platform.variant.size() == 2) {
      AddArm(level->major - 1, out);
    }
  }
  return out;
}

}  // namespace waybill::internal
