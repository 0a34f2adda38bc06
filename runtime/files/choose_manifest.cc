// Chooses the manifest of an image index that a runtime pulls.

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/files/documents.h"
#include "runtime/files/media_types.h"
#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/platform.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill {
namespace {

// --- Processors ----------------------------------------------------------------------------------

struct Processor {
  std::string architecture;
  std::string variant;

  friend bool operator==(const Processor&, const Processor&) = default;
};

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

// The number in "v7"; 0: `variant` has another form.
int MajorOf(std::string_view variant) {
  const auto level = ParseLevel(variant);
  return level && variant.size() == 2 ? level->major : 0;
}

// arm64/v8 is written without a variant.
std::string Arm64Variant(int major, int minor) {
  if (minor > 0) return Variant(major) + '.' + std::to_string(minor);
  return major == 8 ? std::string() : Variant(major);
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

// The platform's own processor, then the others that it can run, best first (containerd's platforms
// package, compare.go, platformVector). All are normalised (NormalisePlatform).
//
// Of a platform with            best first
//
//   amd64/vN     its own, amd64/v(N-1) … v2, amd64, 386
//   arm/vN       its own, arm/v(N-1) … v5
//   arm64/v8.m   its own, v8.(m-1) … v8.1, arm64, arm/v8 … v5
//   arm64/v9.m   its own, v9.(m-1) … v9.1, v9, then as v8.(m+5), at most v8.9: Armv9.0 came from
//                Armv8.5, and Armv8 ends with 8.9
//
// Any other variant or architecture runs only its own.
std::vector<Processor> RunnableProcessors(const Platform& platform) {
  std::vector<Processor> out = {{platform.architecture, platform.variant}};
  if (platform.architecture == "amd64") {
    for (int major = MajorOf(platform.variant) - 1; major > 0; --major) {
      out.push_back({"amd64", major == 1 ? "" : Variant(major)});
    }
    out.push_back({"386", ""});
  }
  if (platform.architecture == "arm64") AddArm64(platform.variant, out);
  if (platform.architecture == "arm") AddArm(MajorOf(platform.variant) - 1, out);
  return out;
}

// --- Windows -------------------------------------------------------------------------------------

// Which Windows runs which Windows image, in containers that share the host's kernel (Microsoft,
// "Windows container version compatibility"; containerd's platforms package,
// platform_windows_compat.go).
//
//   10 . 0 . 20348 . 1970
//   │    │   │       revision: an update; irrelevant for compatibility
//   │    │   build: a release. 17763 Windows Server 2019, 20348 Server 2022, 26100 Server 2025
//   │    minor, at most 255
//   major, at most 255
struct WindowsVersion {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint16_t build = 0;
  std::uint32_t revision = 0;

  friend auto operator<=>(const WindowsVersion&, const WindowsVersion&) = default;
};

// Windows Server 2022. From it on, a release runs images of earlier releases, back to this one.
constexpr std::uint16_t kFirstStableBuild = 20348;

// Removes a number from the front of `text`. False: there is none, or it does not fit.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& out) {
  const char* begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - begin));
  return true;
}

bool TakeDot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

// The revision may be missing. nullopt: `text` is malformed.
std::optional<WindowsVersion> ParseWindowsVersion(std::string_view text) {
  WindowsVersion version;
  const bool sound = TakeNumber(text, version.major) && TakeDot(text) &&
                     TakeNumber(text, version.minor) && TakeDot(text) &&
                     TakeNumber(text, version.build);
  if (!sound) return std::nullopt;
  if (text.empty()) return version;
  if (!TakeDot(text) || !TakeNumber(text, version.revision) || !text.empty()) return std::nullopt;
  return version;
}

// Whether a Windows of version `host` runs an image of version `image`.
bool WindowsRuns(const WindowsVersion& host, const WindowsVersion& image) {
  if (host.major != image.major || host.minor != image.minor) return false;
  if (host.build < kFirstStableBuild) return host.build == image.build;
  return kFirstStableBuild <= image.build && image.build <= host.build;
}

// --- Manifests -----------------------------------------------------------------------------------

constexpr std::size_t kMaxOffersListed = 50;
constexpr std::size_t kMaxOfferBytes = 120;

bool IsKnown(std::string_view name) { return !name.empty() && name != "unknown"; }

// What the container runs on, prepared for comparisons.
struct Target {
  Platform platform;
  std::vector<Processor> processors;  // best first
  std::optional<WindowsVersion> windows;
};

// How well a manifest fits: less is better. On Windows the newest release is best.
struct Fit {
  bool unversioned = false;
  WindowsVersion windows = {};
  std::size_t processor = 0;  // index in Target::processors

  bool operator<(const Fit& other) const {
    return std::tie(unversioned, other.windows, processor) <
           std::tie(other.unversioned, windows, other.processor);
  }
};

// Whether the target has all features that the image requires. An empty list restricts nothing:
// uname lists no features, and KEP-4216's guest platforms leave the list empty. containerd does the
// same up to version 2.1; later versions take an empty list for "has none".
bool HasFeatures(const Target& target, const Platform& image) {
  const auto& has = target.platform.os_features;
  const auto& wants = image.os_features;
  return has.empty() || std::includes(has.begin(), has.end(), wants.begin(), wants.end());
}

// An image without a version runs everywhere. Host-process containers have none, and containerd
// also chooses one if no image with a version fits.
std::optional<Fit> WindowsFit(const Target& target, const Platform& image, Fit fit) {
  // Like containerd's matcher for Windows hosts, without fallbacks.
  if (image.architecture != target.platform.architecture) return std::nullopt;
  if (image.os_version.empty()) {
    fit.unversioned = true;
    return fit;
  }
  const auto version = ParseWindowsVersion(image.os_version);
  if (!version || !target.windows || !WindowsRuns(*target.windows, *version)) {
    return std::nullopt;
  }
  fit.windows = *version;
  return fit;
}

bool IsChoosable(const ManifestDescriptor& manifest) {
  return !manifest.is_attestation && internal::IsImageManifestType(manifest.media_type) &&
         manifest.platform && IsKnown(manifest.platform->os) &&
         IsKnown(manifest.platform->architecture);
}

std::optional<Fit> FitOf(const Target& target, const ManifestDescriptor& manifest) {
  if (!IsChoosable(manifest)) return std::nullopt;
  const Platform image = NormalisePlatform(*manifest.platform);
  if (image.os != target.platform.os || !HasFeatures(target, image)) return std::nullopt;
  const auto& runs = target.processors;
  const auto found =
      std::find(runs.begin(), runs.end(), Processor{image.architecture, image.variant});
  if (found == runs.end()) return std::nullopt;
  const Fit fit{.processor = static_cast<std::size_t>(found - runs.begin())};
  return image.os == "windows" ? WindowsFit(target, image, fit) : fit;
}

Result<Target> MakeTarget(const Platform& platform) {
  Target target;
  target.platform = NormalisePlatform(platform);
  if (target.platform.os.empty() || target.platform.architecture.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the platform " + FormatPlatform(platform) + " has no " +
                     (target.platform.os.empty() ? "OS" : "architecture"),
                 {}};
  }
  target.processors = RunnableProcessors(target.platform);
  if (target.platform.os != "windows" || target.platform.os_version.empty()) return target;
  target.windows = ParseWindowsVersion(target.platform.os_version);
  if (target.windows) return target;
  std::string message = "no version of Windows: ";
  AppendGoJsonString(target.platform.os_version, message);
  return Error{ErrorCode::kInvalidArgument, std::move(message),
               "the form is MAJOR.MINOR.BUILD or MAJOR.MINOR.BUILD.REVISION, like 10.0.20348.1970"};
}

// A platform from an untrusted index: cut, and without control characters.
std::string OfferText(const Platform& platform) {
  std::string text = FormatPlatform(platform);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (text.size() <= kMaxOfferBytes) return text;
  text.resize(ValidUtf8Prefix(std::string_view(text).substr(0, kMaxOfferBytes)));
  return text + "…";
}

// "linux/amd64, linux/arm/v7 and 2 that are no image of a known platform".
std::string OfferOf(const std::vector<ManifestDescriptor>& index) {
  std::vector<std::string> offers;
  std::size_t more = 0;
  std::size_t others = 0;
  for (const ManifestDescriptor& manifest : index) {
    if (!IsChoosable(manifest)) {
      ++others;
      continue;
    }
    std::string text = OfferText(*manifest.platform);
    if (std::find(offers.begin(), offers.end(), text) != offers.end()) continue;
    if (offers.size() < kMaxOffersListed) {
      offers.push_back(std::move(text));
    } else {
      ++more;
    }
  }
  std::string list;
  for (const std::string& offer : offers) list += (list.empty() ? "" : ", ") + offer;
  if (more != 0) list += " and " + std::to_string(more) + " more";
  if (offers.empty()) list = "no image of a known platform";
  if (others != 0) {
    list += "; " + std::to_string(others) + " of " + std::to_string(index.size()) +
            " manifests are attestations, nested indexes or of no known platform";
  }
  return list;
}

}  // namespace

Result<ManifestDescriptor> ManifestFor(const std::vector<ManifestDescriptor>& index,
                                       const Platform& host,
                                       const std::optional<Platform>& guest) try {
  auto target = TRY(MakeTarget(guest ? *guest : host));
  const ManifestDescriptor* best = nullptr;
  Fit best_fit;
  for (const ManifestDescriptor& manifest : index) {
    const auto fit = FitOf(target, manifest);
    if (!fit || (best != nullptr && !(*fit < best_fit))) continue;
    best = &manifest;
    best_fit = *fit;
  }
  if (best != nullptr) return *best;
  const bool needs_version = target.platform.os == "windows" && !target.windows;
  return Error{
      ErrorCode::kNotFound,
      "no manifest for " + OfferText(target.platform) + "; the index offers " + OfferOf(index),
      needs_version ? "images of Windows are told apart by the OS version, which this "
                      "platform does not have"
                    : ""};
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
