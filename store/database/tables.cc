#include "store/database/tables.h"

#include "store/base/hex.h"
#include "store/database/small_records.h"
#include "store/database/userns_records.h"

namespace waybill::internal {

std::optional<Key16> KeyOfIntent(Payload payload, std::uint64_t seed) {
  const auto intent = DecodeIntentValue(payload);
  if (!intent) return std::nullopt;
  return IntentKey(intent->image, intent->runtime_handler, seed);
}

std::optional<Key16> KeyOfQuarantine(Payload payload, std::uint64_t seed) {
  const auto entry = DecodeQuarantineValue(payload);
  std::array<std::uint8_t, 32> sha256{};
  if (!entry || !HexDecode(entry->sha256, sha256)) return std::nullopt;
  return QuarantineKey(entry->kind, sha256, seed);
}

std::optional<Key16> KeyOfPreloaded(Payload payload, std::uint64_t seed) {
  const auto record = DecodePreloadedValue(payload);
  if (!record) return std::nullopt;
  return HashKey(record->image_ref, seed);
}

std::optional<Key16> KeyOfImportedFile(Payload payload, std::uint64_t seed) {
  const auto file = DecodeImportedFileValue(payload);
  if (!file) return std::nullopt;
  return HashKey(file->path, seed);
}

std::optional<Key16> KeyOfRuntimeHandler(Payload payload, std::uint64_t seed) {
  const auto handler = DecodeRuntimeHandlerValue(payload);
  if (!handler) return std::nullopt;
  return HashKey(handler->name, seed);
}

std::optional<Key16> KeyOfUsernsMapping(Payload payload, std::uint64_t seed) {
  const auto mapping = DecodeUsernsMapping(payload);
  if (!mapping) return std::nullopt;
  return HashKey(mapping->pod_uid, seed);
}

std::optional<Key16> KeyOfUsernsBlock(Payload payload, std::uint64_t /*seed*/) {
  const auto block = DecodeUsernsBlock(payload);
  if (!block) return std::nullopt;
  return BlockKey(block->block);
}

std::optional<Key16> KeyOfUsernsHeld(Payload payload, std::uint64_t seed) {
  const auto held = DecodeUsernsHeld(payload);
  if (!held) return std::nullopt;
  return HashKey(held->pod.pod_uid, seed);
}

}  // namespace waybill::internal
