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
  std::string media_type;
  std::string digest;
  std::uint64_t size = 0;                           // bytes; 0 where the index does not say
  std::optional<Platform> platform = std::nullopt;  // as written; none: not said
  bool is_attestation = false;  // provenance or an SBOM, not an image (annotation
                                // vnd.docker.reference.type)
};

// Reads an OCI image index or a Docker manifest list. Fields beside those above pass.
// kInvalidArgument: not JSON, neither of the two, no manifests, a manifest of a media type that is
// no image manifest and no index, or without a well-formed digest. kLimitExceeded: above
// kMaxImageIndexBytes, kMaxJsonDepth or kMaxManifestsPerIndex.
Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json);

// The manifest of `index` that a runtime on `host` pulls, for a handler with `guest`, its guest
// platform, if it has one: then the guest's is what is matched, and the host's plays no part.
//
//   Linux and others   OS, architecture and variant are those of the platform, or, in this order,
//                      of what it can run as well: arm/v7 runs v6 and v5, arm64 runs arm, amd64
//                      runs 386 and lower levels of its own (containerd, platforms.Only)
//   Windows            OS and architecture; and the OS version: of the same build below 20348, from
//                      there on 20348 up to the platform's own build (Microsoft, "Windows container
//                      version compatibility"). Of several the newest.
//
// A platform without an OS version can't choose among Windows manifests that have one; a Windows
// manifest without one is for any host (host-process images are built so), and chosen last.
// Manifests without a platform, of an unknown one, attestations and nested indexes are never
// chosen. kNotFound: none matches; the error lists what the index offers. kInvalidArgument: a
// platform without OS or architecture, or with a Windows version that is none.
Result<ManifestDescriptor> ChooseManifest(const std::vector<ManifestDescriptor>& index,
                                          const Platform& host,
                                          const std::optional<Platform>& guest = std::nullopt);

}  // namespace waybill

#endif  // WAYBILL_IMAGE_INDEX_H_
