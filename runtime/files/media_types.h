// The media types of image indexes and of the manifests that they list (OCI image specification,
// "Media Types"; Docker's "Image Manifest Version 2, Schema 2").

#ifndef WAYBILL_RUNTIME_FILES_MEDIA_TYPES_H_
#define WAYBILL_RUNTIME_FILES_MEDIA_TYPES_H_

#include <string_view>

namespace waybill::internal {

inline bool IsImageManifestType(std::string_view media_type) {
  return media_type == "application/vnd.oci.image.manifest.v1+json" ||
         media_type == "application/vnd.docker.distribution.manifest.v2+json";
}

inline bool IsImageIndexType(std::string_view media_type) {
  return media_type == "application/vnd.oci.image.index.v1+json" ||
         media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_MEDIA_TYPES_H_
