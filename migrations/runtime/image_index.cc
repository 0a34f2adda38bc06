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

#include "waybill/image_index.h"

#include <cstddef>

#include "migrations/runtime/media_types.h"
#include "store/base/caught.h"
#include "store/base/hex.h"
#include "store/base/json_document.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::JsonDocument;
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

// A required string.
Result<std::string_view> Required(JsonValue object, std::string_view name) {
  const auto field = object.Find(name);
  if (!field) return object.Fail("field " + internal::QuoteForMessage(name) + " is missing");
  if (!field->is_string()) return field->Expected("a string");
  return field->text();
}

Result<void> ReadPlatform(JsonValue value, std::optional<Platform>& out) {
  if (auto object = internal::CheckObject(value); !object) return object;
  if (value.is_null()) return {};
  Platform& platform = out.emplace();
  struct Field {
    std::string_view name;
    std::string* target;
  };
  const Field fields[] = {{"architecture", &platform.architecture},
                          {"os", &platform.os},
                          {"os.version", &platform.os_version},
                          {"variant", &platform.variant}};
  for (const auto& [name, target] : fields) {
    if (auto spelled = internal::CheckCase(value, name); !spelled) return spelled;
    const auto field = value.Find(name);
    if (!field) continue;
    if (auto read = internal::ReadString(*field, kMaxPlatformFieldBytes, *target); !read) {
      return read;
    }
  }
  if (auto spelled = internal::CheckCase(value, "os.features"); !spelled) return spelled;
  const auto features = value.Find("os.features");
  if (!features) return {};
  if (auto bounded = internal::CheckCount(*features, kMaxOsFeatures, "features"); !bounded) {
    return bounded;
  }
  return internal::ReadStrings(*features, kMaxPlatformFieldBytes, platform.os_features);
}

Result<void> ReadManifest(JsonValue value, ManifestDescriptor& out) {
  if (value.kind() != JsonKind::kObject) return value.Expected("an object");
  for (const std::string_view name : {"mediaType", "digest", "size", "platform", "annotations"}) {
    if (auto spelled = internal::CheckCase(value, name); !spelled) return spelled;
  }
  const auto media_type = Required(value, "mediaType");
  if (!media_type) return media_type.error();
  if (!internal::IsImageManifestType(*media_type) && !internal::IsImageIndexType(*media_type)) {
    return value.Find("mediaType")
        ->Fail("neither an image manifest nor an image index: " +
               internal::QuoteForMessage(media_type->substr(0, kMaxMediaTypeBytes)));
  }
  out.media_type = *media_type;
  const auto digest = Required(value, "digest");
  if (!digest) return digest.error();
  if (!IsDigest(*digest)) {
    return value.Find("digest")->Fail(
        "expected sha256, sha384 or sha512, a colon and so many digits of lower-case hex");
  }
  out.digest = *digest;
  if (const auto size = value.Find("size")) {
    if (auto read = internal::ReadUnsigned(*size, out.size); !read) return read;
  }
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
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  for (const std::string_view name : {"schemaVersion", "mediaType", "manifests"}) {
    if (auto spelled = internal::CheckCase(root, name); !spelled) return spelled;
  }
  if (const auto media_type = root.Find("mediaType"); media_type && !media_type->is_null()) {
    if (!media_type->is_string()) return media_type->Expected("a string");
    if (!internal::IsImageIndexType(media_type->text())) {
      return media_type->Fail(
          "neither an image index nor a manifest list: " +
          internal::QuoteForMessage(media_type->text().substr(0, kMaxMediaTypeBytes)));
    }
  }
  const auto version = root.Find("schemaVersion");
  if (!version) return root.Fail("field \"schemaVersion\" is missing");
  if (version->kind() != JsonKind::kNumber) return version->Expected("a number");
  return version->text() == "2" ? Result<void>() : version->Fail("expected 2");
}

}  // namespace

Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json) try {
  const auto document = JsonDocument::Parse(json, kMaxImageIndexBytes);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (auto header = CheckHeader(root); !header) return header.error();
  const auto manifests = root.Find("manifests");
  if (!manifests) return root.Fail("field \"manifests\" is missing");
  if (manifests->kind() != JsonKind::kArray) return manifests->Expected("an array");
  if (auto bounded = internal::CheckCount(*manifests, kMaxManifestsPerIndex, "manifests");
      !bounded) {
    return bounded.error();
  }
  std::vector<ManifestDescriptor> index;
  for (const JsonValue manifest : manifests->members()) {
    if (auto read = ReadManifest(manifest, index.emplace_back()); !read) return read.error();
  }
  if (index.empty()) return manifests->Fail("has no manifests");
  return index;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
