// Which manifest of an image index is pulled (KEP-4216, "Summary"; containerd's platform matchers).
// Pure, thread-safe.

#ifndef WAYBILL_IMAGE_INDEX_H_
#define WAYBILL_IMAGE_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/platform.h"
#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// One entry of an image index.
struct ManifestDescriptor {
  std::string media_type = {};
  std::string digest = {};
  std::uint64_t size = 0;                           // bytes; 0: not given
  std::optional<Platform> platform = std::nullopt;  // as written; nullopt: not given
  bool is_attestation = false;  // provenance or an SBOM, not an image (annotation
                                // vnd.docker.reference.type)
};

// Reads an OCI image index or a Docker manifest list. Other fields are ignored. kInvalidArgument:
// not JSON, neither of the two formats, no manifests, or a manifest with a malformed digest or a
// media type other than that of an image manifest or an index. kLimitExceeded: above
// kMaxImageIndexBytes, kMaxJsonDepth or kMaxManifestsPerIndex.
Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json);

// The manifest of `index` that a runtime on `host` pulls. If the handler has a guest platform,
// `guest` alone is matched, not `host`.
//
//   Linux and others   The OS, architecture and variant of the platform come first, then, in this
//                      order, what it can also run: arm/v7 runs v6 and v5, arm64 runs arm, amd64
//                      runs 386 and its own lower levels (containerd, platforms.Only).
//   Windows            OS, architecture and OS version must match. A platform below build 20348
//                      takes its own build; a later one takes 20348 up to its own build, the newest
//                      first (Microsoft, "Windows container version compatibility").
//
// A platform without an OS version can't choose among Windows manifests that have one. A Windows
// manifest without one fits any host (host-process images are built so) and is chosen last.
// Manifests without a known platform, attestations and nested indexes are never chosen. kNotFound:
// none matches; the error lists what the index offers. kInvalidArgument: the platform lacks OS or
// architecture, or its Windows version is malformed.
Result<ManifestDescriptor> ManifestFor(const std::vector<ManifestDescriptor>& index,
                                       const Platform& host,
                                       const std::optional<Platform>& guest = std::nullopt);

}  // namespace waybill

#endif  // WAYBILL_IMAGE_INDEX_H_
