// A platform, as records of images and runtime handlers have it.

#ifndef WAYBILL_STORE_IMAGES_PLATFORM_RECORD_H_
#define WAYBILL_STORE_IMAGES_PLATFORM_RECORD_H_

#include <optional>

#include "schema/v2/platform_generated.h"
#include "store/disk/flatbuffer.h"

namespace waybill::internal {

flatbuffers::Offset<schema::v2::Platform> EncodePlatform(flatbuffers::FlatBufferBuilder& builder,
                                                         const std::optional<Platform>& platform);
std::optional<Platform> DecodePlatform(const schema::v2::Platform* platform);
// Whether a platform is missing or within limits.h.
bool Fits(const schema::v2::Platform* platform);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_PLATFORM_RECORD_H_
