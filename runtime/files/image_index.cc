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

#include <cstddef>

#include "runtime/files/documents.h"
#include "runtime/files/media_types.h"
#include "store/base/caught.h"
#include "store/base/hex.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::JsonKind;
using internal::JsonValue;

constexpr std::string_view kAttestationAnnotation = "vnd.docker.reference.type";
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

Result<void> ReadPlatform(JsonValue value, std::optional<Platform>& out) {
  if (auto object = internal::CheckObject(value); !object) return object;
  if (value.is_null()) return {};
  Platform& platform = out.emplace();
  const auto read_field = [&](std::string_view name, std::string& out_field) {
    return internal::ReadStringField(value, name, kMaxPlatformFieldBytes, out_field);
  };
  TRY(read_field("architecture", platform.architecture));
  TRY(read_field("os", platform.os));
  TRY(read_field("os.version", platform.os_version));
  TRY(read_field("variant", platform.variant));
  const auto features = TRY(internal::FindField(value, "os.features"));
  if (!features) return {};
  TRY(internal::CheckCount(*features, kMaxOsFeatures, "features"));
  return internal::ReadStrings(*features, kMaxPlatformFieldBytes, platform.os_features);
}

Error Unexpected(JsonValue media_type, const std::string& what) {
  return media_type.Fail(
      what + internal::QuoteForMessage(media_type.text().substr(0, kMaxMediaTypeBytes)));
}

Result<void> ReadManifest(JsonValue value, ManifestDescriptor& out) {
  TRY(internal::CheckFields(value, {"mediaType", "digest", "size", "platform", "annotations"}));
  const auto media_type = TRY(internal::Require(value, "mediaType", JsonKind::kString));
  out.media_type = media_type.text();
  if (!internal::IsImageManifestType(out.media_type) &&
      !internal::IsImageIndexType(out.media_type)) {
    return Unexpected(media_type, "neither an image manifest nor an image index: ");
  }
  const auto digest = TRY(internal::Require(value, "digest", JsonKind::kString));
  if (!IsDigest(digest.text())) {
    return digest.Fail(
        "expected sha256, sha384 or sha512, a colon and so many digits of lower-case hex");
  }
  out.digest = digest.text();
  if (const auto size = value.Find("size")) TRY(internal::ReadUnsigned(*size, out.size));
  if (const auto platform = value.Find("platform")) {
    if (auto read = ReadPlatform(*platform, out.platform); !read) return read;
  }
  if (const auto annotations = value.Find("annotations")) {
    if (auto object = internal::CheckObject(*annotations); !object) return object;
    out.is_attestation = annotations->Find(kAttestationAnnotation).has_value();
  }
  return {};
}

// Version 1 is another format (signed, without an index). The media type is optional.
Result<void> CheckHeader(JsonValue root) {
  TRY(internal::CheckFields(root, {"schemaVersion", "mediaType", "manifests"}));
  if (const auto media_type = root.Find("mediaType"); media_type && !media_type->is_null()) {
    if (!media_type->is_string()) return media_type->Expected("a string");
    if (!internal::IsImageIndexType(media_type->text())) {
      return Unexpected(*media_type, "neither an image index nor a manifest list: ");
    }
  }
  const auto version = TRY(internal::Require(root, "schemaVersion", JsonKind::kNumber));
  return version.text() == "2" ? Result<void>() : version.Fail("expected 2");
}

}  // namespace

Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json) try {
  const auto document = TRY(internal::JsonDocument::Parse(json, kMaxImageIndexBytes));
  const JsonValue root = document.root();
  TRY(CheckHeader(root));
  const auto manifests = TRY(internal::Require(root, "manifests", JsonKind::kArray));
  if (auto bounded = internal::CheckCount(manifests, kMaxManifestsPerIndex, "manifests");
      !bounded) {
    return bounded.error();
  }
  std::vector<ManifestDescriptor> index;
  for (const JsonValue manifest : manifests.members()) {
    TRY(ReadManifest(manifest, index.emplace_back()));
  }
  if (index.empty()) return manifests.Fail("has no manifests");
  return index;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
