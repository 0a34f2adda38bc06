// An image index, or Docker's manifest list, which says the same in other media types:
//
//   {"schemaVersion":2,
//    "mediaType":"application/vnd.oci.image.index.v1+json",        may be missing
//    "manifests":[{
//      "mediaType":"application/vnd.oci.image.manifest.v1+json",   or another index
//      "digest":"sha256:…","size":2007,
//      "platform":{"architecture":"arm","os":"linux","os.version":"…","os.features":["…"],
//                  "variant":"v7"},
//      "annotations":{"vnd.docker.reference.type":"attestation-manifest"}}]}
//
// Other fields are ignored, but one of these in another case is refused: a runtime written in Go
// would read it as the field itself and could choose another manifest.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/platform.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::Bounds;
using internal::PathIn;
using internal::WrongAt;

bool IsImageManifestType(std::string_view media_type) {
  return media_type == "application/vnd.oci.image.manifest.v1+json" ||
         media_type == "application/vnd.docker.distribution.manifest.v2+json";
}

bool IsImageIndexType(std::string_view media_type) {
  return media_type == "application/vnd.oci.image.index.v1+json" ||
         media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

constexpr const char* kAttestationAnnotation = "vnd.docker.reference.type";
// The longest known media type has 71 bytes.
constexpr std::size_t kMaxMediaTypeBytes = 256;

bool IsDigest(std::string_view text) {
  struct Algorithm {
    std::string_view prefix;
    std::size_t digits;
  };
  constexpr Algorithm kAlgorithms[] = {{"sha256:", 64}, {"sha384:", 96}, {"sha512:", 128}};
  for (const auto& [prefix, digits] : kAlgorithms) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    return text.size() == digits && internal::IsLowerHex(text.data(), text.size());
  }
  return false;
}

struct IndexPlatform : Platform {
  void Describe(auto& v) const {
    constexpr Bounds kField = {.bytes = kMaxPlatformFieldBytes};
    v.Optional("architecture", architecture, kField);
    v.Optional("os", os, kField);
    v.Optional("os.version", os_version, kField);
    v.Optional("os.features", os_features,
               {.bytes = kMaxPlatformFieldBytes, .count = kMaxOsFeatures});
    v.Optional("variant", variant, kField);
  }
};

struct IndexManifest {
  std::string media_type = {};
  std::string digest = {};
  std::uint64_t size = 0;
  std::optional<IndexPlatform> platform = {};
  std::map<std::string, internal::JsonText> annotations = {};

  void Describe(auto& v) const {
    v("mediaType", media_type);
    v("digest", digest);
    v.Optional("size", size);
    v.Optional("platform", platform);
    v.Optional("annotations", annotations);
  }
};

// Version 1 is another format (signed, without an index).
struct IndexFile {
  std::uint64_t schema_version = 0;
  std::optional<std::string> media_type = {};
  std::vector<IndexManifest> manifests = {};

  void Describe(auto& v) const {
    v("schemaVersion", schema_version);
    v.Optional("mediaType", media_type);
    v("manifests", manifests, {.count = kMaxManifestsPerIndex});
  }
};

std::string Quoted(std::string_view media_type) {
  return internal::QuoteForMessage(media_type.substr(0, kMaxMediaTypeBytes));
}

Result<ManifestDescriptor> Checked(const IndexManifest& read, std::size_t index) {
  const bool is_known = IsImageManifestType(read.media_type) || IsImageIndexType(read.media_type);
  if (is_known && !IsDigest(read.digest)) {
    return WrongAt(PathIn("manifests", index, "digest"),
                   "expected sha256, sha384 or sha512, a colon and so many digits of lower-case "
                   "hex");
  }
  return ManifestDescriptor{.media_type = read.media_type,
                            .digest = read.digest,
                            .size = read.size,
                            .platform = read.platform,
                            .is_attestation = read.annotations.contains(kAttestationAnnotation)};
}

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

// The platform's own processor, then the others that it can run, best first (containerd's platforms
// package, compare.go, platformVector). All are normalised (NormalisePlatform): amd64/v1 and
// arm64/v8 have no variant.
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
  const std::string& architecture = platform.architecture;
  std::vector<Processor> out = {{architecture, platform.variant}};
  const auto add = [&](const char* name, int major, int minor, int without_variant) {
    std::string variant = "v" + std::to_string(major);
    if (minor > 0) variant += "." + std::to_string(minor);
    if (minor == 0 && major == without_variant) variant.clear();
    out.push_back({name, std::move(variant)});
  };
  const auto level = architecture == "arm64" && platform.variant.empty()
                         ? Level{8, 0}
                         : ParseLevel(platform.variant).value_or(Level{});
  const int below = platform.variant.size() == 2 ? level.major - 1 : 0;
  if (architecture == "amd64") {
    for (int major = below; major > 0; --major) add("amd64", major, 0, 1);
    out.push_back({"386", ""});
  }
  int arm = architecture == "arm" ? below : 0;
  if (architecture == "arm64" && level.major >= 8) {
    for (int minor = level.minor - 1; minor >= 0; --minor) add("arm64", level.major, minor, 8);
    if (level.major == 9) {
      const int from = std::min(level.minor + 5, kLastArmv8Minor);
      for (int minor = from; minor >= 0; --minor) add("arm64", 8, minor, 8);
    }
    arm = 8;
  }
  for (; arm >= 5; --arm) add("arm", arm, 0, 0);
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
//   │    minor
//   major
using WindowsVersion = std::array<std::uint32_t, 4>;
constexpr WindowsVersion kMostOfEach = {0xFF, 0xFF, 0xFFFF, 0xFFFFFFFF};

// Windows Server 2022. From it on, a release runs images of earlier releases, back to this one.
constexpr std::uint32_t kFirstStableBuild = 20348;

// The revision may be missing. nullopt: `text` is malformed.
std::optional<WindowsVersion> ParseWindowsVersion(std::string_view text) {
  WindowsVersion version = {};
  for (std::size_t i = 0; i < version.size(); ++i) {
    if (i == 3 && text.empty()) return version;
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version[i]);
    if (error != std::errc() || version[i] > kMostOfEach[i]) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(version) : std::nullopt;
}

// Whether a Windows of version `host` runs an image of version `image`.
bool WindowsRuns(const WindowsVersion& host, const WindowsVersion& image) {
  if (host[0] != image[0] || host[1] != image[1]) return false;
  if (host[2] < kFirstStableBuild) return host[2] == image[2];
  return kFirstStableBuild <= image[2] && image[2] <= host[2];
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
  // It says no platform, as containerd takes it: only its configuration says what it is for.
  bool unsaid = false;
  // It needs what only some runtimes have, as the lazy images of nydus do.
  bool demands = false;
  bool unversioned = false;
  WindowsVersion windows = {};
  std::size_t processor = 0;  // index in Target::processors

  bool operator<(const Fit& other) const {
    return std::tie(unsaid, demands, unversioned, other.windows, processor) <
           std::tie(other.unsaid, other.demands, other.unversioned, windows, other.processor);
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

bool IsChoosable(const ManifestDescriptor& manifest) {
  return !manifest.is_attestation && IsImageManifestType(manifest.media_type) &&
         (!manifest.platform ||
          (IsKnown(manifest.platform->os) && IsKnown(manifest.platform->architecture)));
}

std::optional<Fit> FitOf(const Target& target, const ManifestDescriptor& manifest) {
  if (!IsChoosable(manifest)) return std::nullopt;
  if (!manifest.platform) return Fit{.unsaid = true};
  const Platform image = NormalisePlatform(*manifest.platform);
  if (image.os != target.platform.os || !HasFeatures(target, image)) return std::nullopt;
  const auto& runs = target.processors;
  const auto found =
      std::find(runs.begin(), runs.end(), Processor{image.architecture, image.variant});
  if (found == runs.end()) return std::nullopt;
  Fit fit{.processor = static_cast<std::size_t>(found - runs.begin())};
  fit.demands =
      image.os != "windows" && target.platform.os_features.empty() && !image.os_features.empty();
  if (image.os != "windows") return fit;
  // Like containerd's matcher for Windows hosts, without fallbacks.
  if (image.architecture != target.platform.architecture) return std::nullopt;
  // An image without a version runs everywhere. Host-process containers have none, and containerd
  // also chooses one if no image with a version fits.
  fit.unversioned = image.os_version.empty();
  if (fit.unversioned) return fit;
  const auto version = ParseWindowsVersion(image.os_version);
  const bool runs_it = version && target.windows && WindowsRuns(*target.windows, *version);
  if (runs_it) fit.windows = *version;
  return runs_it ? std::optional(fit) : std::nullopt;
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
  std::size_t others = 0;
  for (const ManifestDescriptor& manifest : index) {
    if (!IsChoosable(manifest) || !manifest.platform) {
      ++others;
    } else if (std::string text = OfferText(*manifest.platform);
               std::find(offers.begin(), offers.end(), text) == offers.end()) {
      offers.push_back(std::move(text));
    }
  }
  std::string list = offers.empty() ? "no image of a known platform" : "";
  for (std::size_t i = 0; i < std::min(offers.size(), kMaxOffersListed); ++i) {
    list += (i == 0 ? "" : ", ") + offers[i];
  }
  if (offers.size() > kMaxOffersListed) {
    list += " and " + std::to_string(offers.size() - kMaxOffersListed) + " more";
  }
  if (others != 0) {
    list += "; " + std::to_string(others) + " of " + std::to_string(index.size()) +
            " manifests are attestations, nested indexes or of no known platform";
  }
  return list;
}

}  // namespace

Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json) try {
  IndexFile read;
  TRY(internal::ReadForeign(json, kMaxImageIndexBytes, read));
  if (read.media_type && !IsImageIndexType(*read.media_type)) {
    return WrongAt("mediaType",
                   "neither an image index nor a manifest list: " + Quoted(*read.media_type));
  }
  if (read.schema_version != 2) return WrongAt("schemaVersion", "expected 2");
  if (read.manifests.empty()) return WrongAt("manifests", "there are none");
  std::vector<ManifestDescriptor> index;
  for (const IndexManifest& manifest : read.manifests) {
    index.push_back(TRY(Checked(manifest, index.size())));
  }
  return index;
} catch (...) {
  return internal::Caught();
}

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
