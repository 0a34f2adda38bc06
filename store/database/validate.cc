#include "store/database/validate.h"

#include "store/base/hex.h"
#include "store/database/pulled_record.h"
#include "store/database/small_records.h"
#include "store/database/userns_records.h"

namespace waybill::internal {

std::optional<Key16> KeyOfPayload(Table table, Payload payload, std::uint64_t seed) {
  switch (table) {
    case Table::kPulled:
      return HashOfValidPulledRecord(payload, seed);
    case Table::kIntents:
      if (const auto intent = DecodeIntentValue(payload)) {
        return IntentKey(intent->image, intent->runtime_handler, seed);
      }
      break;
    case Table::kQuarantine:
      if (const auto entry = DecodeQuarantineValue(payload)) {
        std::array<std::uint8_t, 32> sha256{};
        if (HexDecode(entry->sha256, sha256)) return QuarantineKey(entry->kind, sha256, seed);
      }
      break;
    case Table::kPreloaded:
      if (const auto record = DecodePreloadedValue(payload))
        return HashKey(record->image_ref, seed);
      break;
    case Table::kImported:
      if (const auto file = DecodeImportedFileValue(payload)) return HashKey(file->path, seed);
      break;
    case Table::kRuntimeHandlers:
      if (const auto handler = DecodeRuntimeHandlerValue(payload)) {
        return HashKey(handler->name, seed);
      }
      break;
    case Table::kUsernsMappings:
      if (const auto mapping = DecodeUsernsMapping(payload)) return HashKey(mapping->pod_uid, seed);
      break;
    case Table::kUsernsBlocks:
      if (const auto block = DecodeUsernsBlock(payload)) return BlockKey(block->block);
      break;
    case Table::kUsernsHeld:
      if (const auto held = DecodeUsernsHeld(payload)) return HashKey(held->pod.pod_uid, seed);
      break;
  }
  return std::nullopt;
}

}  // namespace waybill::internal
