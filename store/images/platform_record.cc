#include "store/images/platform_record.h"

#include "waybill/limits.h"

namespace waybill::internal {

namespace v2 = schema::v2;

flatbuffers::Offset<v2::Platform> EncodePlatform(flatbuffers::FlatBufferBuilder& builder,
                                                 const std::optional<Platform>& platform) {
  if (!platform) return 0;
  const auto architecture = StringUnlessEmpty(builder, platform->architecture);
  const auto os = StringUnlessEmpty(builder, platform->os);
  const auto os_version = StringUnlessEmpty(builder, platform->os_version);
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> os_features;
  if (!platform->os_features.empty()) {
    os_features = builder.CreateVectorOfStrings(platform->os_features);
  }
  const auto variant = StringUnlessEmpty(builder, platform->variant);
  return v2::CreatePlatform(builder, architecture, os, os_version, os_features, variant);
}

std::optional<Platform> DecodePlatform(const v2::Platform* platform) {
  if (platform == nullptr) return std::nullopt;
  Platform decoded{std::string(Text(platform->architecture())), std::string(Text(platform->os()))};
  decoded.os_version = Text(platform->os_version());
  decoded.variant = Text(platform->variant());
  if (platform->os_features() != nullptr) {
    for (const auto* feature : *platform->os_features()) {
      decoded.os_features.emplace_back(Text(feature));
    }
  }
  return decoded;
}

bool Fits(const v2::Platform* platform) {
  if (platform == nullptr) return true;
  if (platform->os_features() != nullptr) {
    if (platform->os_features()->size() > kMaxOsFeatures) return false;
    for (const auto* feature : *platform->os_features()) {
      if (!Fits(feature, kMaxPlatformFieldBytes)) return false;
    }
  }
  return Fits(platform->architecture(), kMaxPlatformFieldBytes) &&
         Fits(platform->os(), kMaxPlatformFieldBytes) &&
         Fits(platform->os_version(), kMaxPlatformFieldBytes) &&
         Fits(platform->variant(), kMaxPlatformFieldBytes);
}

}  // namespace waybill::internal
