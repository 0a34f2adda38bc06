#include "store/database/small_records.h"

#include <flatbuffers/flatbuffers.h>

#include <cstring>

#include "schema/v1/imported_generated.h"
#include "schema/v1/quarantine_generated.h"
#include "schema/v2/pull_intent_generated.h"
#include "schema/v2/runtime_handler_generated.h"
#include "store/base/hex.h"
#include "store/database/flatbuffer.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

v1::Sha256 ToSha256(const std::array<std::uint8_t, 32>& raw) {
  return v1::Sha256(flatbuffers::span<const std::uint8_t, 32>(raw));
}

}  // namespace

std::vector<std::uint8_t> EncodeIntentValue(std::string_view image,
                                            std::string_view runtime_handler, Timestamp recorded) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto image_at = builder.CreateString(image.data(), image.size());
  const auto handler_at = StringUnlessEmpty(builder, runtime_handler);
  const v1::Time time = ToTime(recorded);
  return Finish(builder, v2::CreatePullIntent(builder, image_at, &time, handler_at));
}

std::optional<ImagePullIntent> DecodeIntentValue(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v2::PullIntent>(payload);
  if (root == nullptr || root->image() == nullptr || root->recorded() == nullptr ||
      !Fits(root->image(), kMaxImageBytes) ||
      !Fits(root->runtime_handler(), kMaxRuntimeHandlerBytes)) {
    return std::nullopt;
  }
  return ImagePullIntent{root->image()->str(), std::string(Text(root->runtime_handler()))};
}

IntentView ViewIntent(std::span<const std::uint8_t> payload) {
  const auto* root = flatbuffers::GetRoot<v2::PullIntent>(payload.data());
  return {Text(root->image()), Text(root->runtime_handler())};
}

std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto name = builder.CreateString(handler.name);
  const auto guest = EncodePlatform(builder, handler.guest_platform);
  return Finish(builder, v2::CreateRuntimeHandler(builder, name, handler.is_default,
                                                  handler.user_namespaces, guest));
}

std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v2::RuntimeHandler>(payload);
  if (root == nullptr || root->name() == nullptr || !Fits(root->name(), kMaxRuntimeHandlerBytes) ||
      !Fits(root->guest_platform())) {
    return std::nullopt;
  }
  return RuntimeHandler{root->name()->str(), root->is_default(), root->user_namespaces(),
                        DecodePlatform(root->guest_platform())};
}

RuntimeHandlerView ViewRuntimeHandler(std::span<const std::uint8_t> payload) {
  const auto* root = flatbuffers::GetRoot<v2::RuntimeHandler>(payload.data());
  return {Text(root->name()), root->is_default(), root->user_namespaces()};
}

std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantineEntry& entry) {
  flatbuffers::FlatBufferBuilder builder;
  std::array<std::uint8_t, 32> raw{};
  const bool is_hex = HexDecode(entry.sha256, raw);
  const v1::Sha256 sha256 = ToSha256(raw);
  const auto source = builder.CreateString(entry.source);
  const auto reason = builder.CreateString(entry.reason);
  const v1::Time since = ToTime(entry.since);
  return Finish(builder, v1::CreateQuarantine(builder, static_cast<std::uint8_t>(entry.kind),
                                              is_hex ? &sha256 : nullptr, source, reason, &since));
}

std::optional<QuarantineEntry> DecodeQuarantineValue(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::Quarantine>(payload);
  if (root == nullptr || root->sha256() == nullptr || root->source() == nullptr ||
      root->reason() == nullptr || root->since() == nullptr ||
      !Fits(root->source(), kMaxPathBytes)) {
    return std::nullopt;
  }
  const auto kind = static_cast<QuarantineKind>(root->kind());
  if (kind != QuarantineKind::kImageRef && kind != QuarantineKind::kImage) return std::nullopt;
  return QuarantineEntry{kind, HexEncode({root->sha256()->bytes()->data(), 32}),
                         root->source()->str(), root->reason()->str(), FromTime(*root->since())};
}

std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record) {
  flatbuffers::FlatBufferBuilder builder;
  const auto ref = builder.CreateString(record.image_ref);
  const auto images = builder.CreateVectorOfStrings(record.observed_images);
  const v1::Time time = ToTime(record.last_updated.value_or(Timestamp{}));
  return Finish(builder, v1::CreatePreloadedRecord(builder, ref,
                                                   record.last_updated ? &time : nullptr, images));
}

std::optional<ImagePreloadedRecord> DecodePreloadedValue(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::PreloadedRecord>(payload);
  if (root == nullptr || root->image_ref() == nullptr || root->observed_images() == nullptr ||
      !Fits(root->image_ref(), kMaxImageRefBytes) ||
      root->observed_images()->size() > kMaxImageNamesPerRecord) {
    return std::nullopt;
  }
  ImagePreloadedRecord record;
  record.image_ref = root->image_ref()->str();
  if (root->last_updated() != nullptr) record.last_updated = FromTime(*root->last_updated());
  for (const auto* image : *root->observed_images()) {
    if (!Fits(image, kMaxImageBytes)) return std::nullopt;
    record.observed_images.push_back(image->str());
  }
  return record;
}

std::vector<std::uint8_t> EncodeImportedFileValue(const ImportedFile& file) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto path = builder.CreateString(file.path);
  const v1::Sha256 content = ToSha256(file.content);
  return Finish(builder, v1::CreateImportedFile(builder, path, &content));
}

std::optional<ImportedFile> DecodeImportedFileValue(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::ImportedFile>(payload);
  if (root == nullptr || root->path() == nullptr || root->content() == nullptr ||
      !Fits(root->path(), kMaxPathBytes)) {
    return std::nullopt;
  }
  ImportedFile file;
  file.path = root->path()->str();
  std::memcpy(file.content.data(), root->content()->bytes()->data(), file.content.size());
  return file;
}

}  // namespace waybill::internal
