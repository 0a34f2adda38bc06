// Records of a StoreTxn by their identities: which key, which codec, and that the identity inside
// is the one that was asked for.

#ifndef WAYBILL_STORE_RECORD_TYPED_TABLES_H_
#define WAYBILL_STORE_RECORD_TYPED_TABLES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/record/small_records.h"
#include "store/record/store_txn.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// nullopt: none. kDamaged: unreadable. kConflict: the key holds another image ref.
Result<std::optional<ImagePulledRecord>> FindRecord(const StoreTxn& txn,
                                                    std::string_view image_ref);
// Sets record.stamp to the commit that is being made. Replaces what is damaged; kConflict as above.
Result<void> StoreRecord(StoreTxn& txn, ImagePulledRecord record);
Result<bool> EraseRecord(StoreTxn& txn, std::string_view image_ref);

// Whether there is an intent for exactly this string. kDamaged, kConflict as above.
Result<bool> FindIntent(const StoreTxn& txn, std::string_view image);
// Whether it was not there before. Replaces what is damaged.
Result<bool> StoreIntent(StoreTxn& txn, std::string_view image);
Result<bool> EraseIntent(StoreTxn& txn, std::string_view image);

// Whether there is an entry, readable or not, for a SHA-256 or for the hash of a string.
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256);
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text);
// Keeps an entry that is there. Whether it was not. entry.sha256 is well-formed.
Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantineEntry& entry);
Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECORD_TYPED_TABLES_H_
