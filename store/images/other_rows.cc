#include "store/images/other_rows.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "schema/v1/kubelet_file_generated.h"
#include "schema/v1/quarantine_generated.h"
#include "schema/v2/runtime_handler_generated.h"
#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"
#include "store/disk/key.h"
#include "store/images/platform_record.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

Error Unreadable(std::string_view what, std::string_view identity) {
  return {ErrorCode::kDamaged,
          "the " + std::string(what) + " of \"" + std::string(identity) + "\" can't be read",
          {},
          Hint::kPullAgain};
}

}  // namespace

std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto name = builder.CreateString(handler.name);
  const auto guest = EncodePlatform(builder, handler.guest_platform);
  return Finish(builder, v2::CreateRuntimeHandler(builder, name, handler.is_default,
                                                  handler.user_namespaces, guest));
}

std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(Payload payload) {
  const auto* root = Root<v2::RuntimeHandler>(payload);
  if (root == nullptr || root->name() == nullptr || !Fits(root->name(), kMaxRuntimeHandlerBytes) ||
      !Fits(root->guest_platform())) {
    return std::nullopt;
  }
  return RuntimeHandler{root->name()->str(), root->is_default(), root->user_namespaces(),
                        DecodePlatform(root->guest_platform())};
}

RuntimeHandlerView ViewRuntimeHandler(Payload payload) {
  const auto* root = flatbuffers::GetRoot<v2::RuntimeHandler>(payload.data());
  return {Text(root->name()), root->is_default(), root->user_namespaces()};
}

std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantinedFile& entry) {
  flatbuffers::FlatBufferBuilder builder;
  std::array<std::uint8_t, 32> raw{};
  const bool is_hex = HexDecode(entry.sha256, raw);
  const v1::Sha256 sha256(Raw(raw));
  const auto source = builder.CreateString(entry.source);
  const auto reason = builder.CreateString(entry.reason);
  const v1::Time since = ToTime(entry.since);
  return Finish(builder, v1::CreateQuarantine(builder, static_cast<std::uint8_t>(entry.kind),
                                              is_hex ? &sha256 : nullptr, source, reason, &since));
}

std::optional<QuarantinedFile> DecodeQuarantineValue(Payload payload) {
  const auto* root = Root<v1::Quarantine>(payload);
  if (root == nullptr || root->sha256() == nullptr || root->source() == nullptr ||
      root->reason() == nullptr || root->since() == nullptr ||
      !Fits(root->source(), kMaxPathBytes)) {
    return std::nullopt;
  }
  const auto kind = static_cast<QuarantineKind>(root->kind());
  if (kind != QuarantineKind::kImageRef && kind != QuarantineKind::kImage) return std::nullopt;
  return QuarantinedFile{kind, HexEncode({root->sha256()->bytes()->data(), 32}),
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

std::optional<ImagePreloadedRecord> DecodePreloadedValue(Payload payload) {
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

std::optional<Key16> KeyOfQuarantine(Payload payload, std::uint64_t seed) {
  const auto entry = DecodeQuarantineValue(payload);
  std::array<std::uint8_t, 32> sha256{};
  if (!entry || !HexDecode(entry->sha256, sha256)) return std::nullopt;
  return QuarantineKey(entry->kind, sha256, seed);
}

std::optional<Key16> KeyOfPreloaded(Payload payload, std::uint64_t seed) {
  const auto record = DecodePreloadedValue(payload);
  return record ? std::optional(HashKey(record->image_ref, seed)) : std::nullopt;
}

std::optional<Key16> KeyOfRuntimeHandler(Payload payload, std::uint64_t seed) {
  const auto handler = DecodeRuntimeHandlerValue(payload);
  return handler ? std::optional(HashKey(handler->name, seed)) : std::nullopt;
}

Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const StoreTxn& txn) {
  auto handlers = ReadAll(txn, Table::kRuntimeHandlers, DecodeRuntimeHandlerValue,
                          Unreadable("registry", "runtime handlers"));
  if (!handlers) return handlers;
  std::sort(handlers->begin(), handlers->end(),
            [](const RuntimeHandler& a, const RuntimeHandler& b) { return a.name < b.name; });
  return handlers;
}

const RuntimeHandler* FindStored(const std::vector<RuntimeHandler>& handlers,
                                 std::string_view stored) {
  const auto at =
      std::find_if(handlers.begin(), handlers.end(), [&](const RuntimeHandler& handler) {
        return handler.is_default ? stored.empty() : !stored.empty() && handler.name == stored;
      });
  return at == handlers.end() ? nullptr : &*at;
}

std::string StoredName(const std::vector<RuntimeHandler>& handlers, std::string_view name) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler != nullptr && handler->name == name ? std::string() : std::string(name);
}

Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256) {
  auto payload = txn.Get(Table::kQuarantine, QuarantineKey(kind, sha256, txn.seed()));
  if (!payload) {
    if (payload.error().code == ErrorCode::kDamaged) return true;
    return payload.error();
  }
  return payload->has_value();
}

Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text) {
  const auto sha256 = TRY(Sha256(text));
  return IsQuarantined(txn, kind, std::span<const std::uint8_t, 32>(sha256));
}

Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantinedFile& entry) {
  Sha256Digest sha256{};
  if (!HexDecode(entry.sha256, sha256)) {
    return Error{ErrorCode::kInvalidArgument, "a quarantine entry needs a SHA-256", ""};
  }
  if (TRY(IsQuarantined(txn, entry.kind, std::span<const std::uint8_t, 32>(sha256)))) return false;
  if (auto r = txn.Put(Table::kQuarantine, QuarantineKey(entry.kind, sha256, txn.seed()),
                       EncodeQuarantineValue(entry));
      !r) {
    return r.error();
  }
  return true;
}

Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text) {
  if (txn.state().digest(Table::kQuarantine).count == 0) return {};
  const auto sha256 = TRY(Sha256(text));
  TRY(txn.Delete(Table::kQuarantine, QuarantineKey(kind, sha256, txn.seed())));
  return {};
}

}  // namespace waybill::internal
