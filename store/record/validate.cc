#include "store/record/validate.h"

#include "store/base/hex.h"
#include "store/record/pulled_record.h"
#include "store/record/small_records.h"
#include "store/record/userns_records.h"
#include "waybill/limits.h"

namespace waybill::internal {

bool PayloadIsSound(Table table, const Key16& key, Payload payload, std::uint64_t seed) {
  switch (table) {
    case Table::kPulled: {
      const auto hash = HashOfValidPulledRecord(payload, seed);
      return hash && *hash == key;
    }
    case Table::kIntents: {
      const auto intent = DecodeIntentValue(payload);
      return intent && intent->image.size() <= kMaxImageBytes &&
             IntentKey(intent->image, intent->runtime_handler, seed) == key;
    }
    case Table::kQuarantine: {
      const auto entry = DecodeQuarantineValue(payload);
      std::array<std::uint8_t, 32> sha256{};
      return entry && HexDecode(entry->sha256, sha256) &&
             QuarantineKey(entry->kind, sha256, seed) == key;
    }
    case Table::kPreloaded: {
      const auto record = DecodePreloadedValue(payload);
      return record && HashKey(record->image_ref, seed) == key;
    }
    case Table::kImported: {
      const auto file = DecodeImportedFileValue(payload);
      return file && HashKey(file->path, seed) == key;
    }
    case Table::kRuntimeHandlers: {
      const auto handler = DecodeRuntimeHandlerValue(payload);
      return handler && HashKey(handler->name, seed) == key;
    }
    case Table::kUsernsMappings: {
      const auto mapping = DecodeUsernsMapping(payload);
      return mapping && HashKey(mapping->pod_uid, seed) == key;
    }
    case Table::kUsernsBlocks: {
      const auto block = DecodeUsernsBlock(payload);
      return block && BlockKey(block->block) == key;
    }
    case Table::kUsernsHeld: {
      const auto held = DecodeUsernsHeld(payload);
      return held && HashKey(held->pod.pod_uid, seed) == key;
    }
  }
  return false;
}

}  // namespace waybill::internal
