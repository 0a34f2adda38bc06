#include <algorithm>
#include <cstddef>
#include <tuple>

#include "migrations/runtime/fallbacks.h"
#include "migrations/runtime/media_types.h"
#include "migrations/runtime/windows_version.h"
#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "waybill/image_index.h"

namespace waybill {
namespace {

using internal::Processor;
using internal::WindowsVersion;

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
  const auto version = internal::ParseWindowsVersion(image.os_version);
  if (!version || !target.windows || !internal::WindowsRuns(*target.windows, *version)) {
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
  target.processors = internal::RunnableProcessors(target.platform);
  if (target.platform.os != "windows" || target.platform.os_version.empty()) return target;
  target.windows = internal::ParseWindowsVersion(target.platform.os_version);
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

Result<ManifestDescriptor> ChooseManifest(const std::vector<ManifestDescriptor>& index,
                                          const Platform& host,
                                          const std::optional<Platform>& guest) try {
  auto target = MakeTarget(guest ? *guest : host);
  if (!target) return target.error();
  const ManifestDescriptor* best = nullptr;
  Fit best_fit;
  for (const ManifestDescriptor& manifest : index) {
    const auto fit = FitOf(*target, manifest);
    if (!fit || (best != nullptr && !(*fit < best_fit))) continue;
    best = &manifest;
    best_fit = *fit;
  }
  if (best != nullptr) return *best;
  const bool needs_version = target->platform.os == "windows" && !target->windows;
  return Error{
      ErrorCode::kNotFound,
      "no manifest for " + OfferText(target->platform) + "; the index offers " + OfferOf(index),
      needs_version ? "images of Windows are told apart by the OS version, which this "
                      "platform does not have"
                    : ""};
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
