// What the store has of a kubelet's files and of runtime handlers: finds and stores it by its
// identity, and checks that the value under a key has the one that was asked for.

#ifndef WAYBILL_STORE_IMAGES_OTHER_ROWS_H_
#define WAYBILL_STORE_IMAGES_OTHER_ROWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/options.h"
#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler);
std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantinedFile& entry);
std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record);

// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<QuarantinedFile> DecodeQuarantineValue(Payload payload);
std::optional<ImagePreloadedRecord> DecodePreloadedValue(Payload payload);
std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(Payload payload);

// In place, from an envelope that verified (see PulledRecordView).
struct RuntimeHandlerView {
  std::string_view name;
  bool is_default = false;
  bool user_namespaces = false;
};
RuntimeHandlerView ViewRuntimeHandler(Payload payload);

// The registry, sorted by name. kDamaged: an entry is unreadable.
Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const StoreTxn& txn);
// The handler with that stored name; null: not in the list.
const RuntimeHandler* FindStored(const std::vector<RuntimeHandler>& handlers,
                                 std::string_view stored);

// The stored name of `name`: "" if that is the default handler.
std::string StoredName(const std::vector<RuntimeHandler>& handlers, std::string_view name);

// Whether a SHA-256, or that of a string, has an entry, readable or not.
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256);
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text);
// True: the entry is new. An existing one stays. kInvalidArgument: entry.sha256 is malformed.
Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantinedFile& entry);
Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_OTHER_ROWS_H_
