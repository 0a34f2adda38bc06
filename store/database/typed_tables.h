// The tables by the identities of their records: which key, which codec, and that the identity
// inside is the one that was asked for. The codecs of all but pulled records (pulled_record.h) and
// user namespaces (userns_tables.h).

#ifndef WAYBILL_STORE_DATABASE_TYPED_TABLES_H_
#define WAYBILL_STORE_DATABASE_TYPED_TABLES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"

namespace waybill::internal {

// One file that an import took, and what it held.
struct ImportedFile {
  std::string path;
  std::array<std::uint8_t, 32> content{};
};

std::vector<std::uint8_t> EncodeIntentValue(std::string_view image,
                                            std::string_view runtime_handler, Timestamp recorded);
std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler);
std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantineEntry& entry);
std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record);
std::vector<std::uint8_t> EncodeImportedFileValue(const ImportedFile& file);

// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<ImagePullIntent> DecodeIntentValue(Payload payload);
std::optional<QuarantineEntry> DecodeQuarantineValue(Payload payload);
std::optional<ImagePreloadedRecord> DecodePreloadedValue(Payload payload);
std::optional<ImportedFile> DecodeImportedFileValue(Payload payload);
std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(Payload payload);

// In place; nothing is checked but the envelope (see PulledRecordView).
struct IntentView {
  std::string_view image;
  std::string_view runtime_handler;
};
IntentView ViewIntent(Payload payload);
struct RuntimeHandlerView {
  std::string_view name;
  bool is_default = false;
  bool user_namespaces = false;
};
RuntimeHandlerView ViewRuntimeHandler(Payload payload);

// The hash that is the key of `whose` ("pod a") is another one's, too: kConflict.
Error KeyIsTaken(const std::string& whose);

// A whole table, in the order of its keys. `unreadable`: a value does not verify or decode.
template <typename T>
Result<std::vector<T>> ReadAll(const StoreTxn& txn, Table table,
                               std::optional<T> (*decode)(Payload), const Error& unreadable) {
  std::vector<T> all;
  auto walked = txn.ForEach(table, [&](const Key16&, Payload payload) -> Result<bool> {
    auto decoded = decode(payload);
    if (!decoded) return unreadable;
    all.push_back(std::move(*decoded));
    return true;
  });
  if (!walked) return walked.error();
  return all;
}

// A runtime handler is given as it is stored: the default one as "".

// nullopt: none. kDamaged: unreadable. kConflict: the key holds another image ref or handler.
Result<std::optional<ImagePulledRecord>> FindRecord(const StoreTxn& txn, std::string_view image_ref,
                                                    std::string_view runtime_handler);
// Whether there is a record, readable or not, of the ref under any handler.
Result<bool> AnyRecordOf(const StoreTxn& txn, std::string_view image_ref);
// Sets record.stamp to the commit that is being made. Replaces what is damaged; kConflict as above.
Result<void> StoreRecord(StoreTxn& txn, ImagePulledRecord record);
// Makes a record without credentials where the ref has none under the handler: known to have been
// pulled, to be verified. What can't be read is closed as it is. Whether there was none. A ref that
// no record can have is passed over.
Result<bool> CloseCopy(StoreTxn& txn, std::string_view image_ref, std::string_view runtime_handler);
Result<bool> EraseRecord(StoreTxn& txn, std::string_view image_ref,
                         std::string_view runtime_handler);

// Whether there is an intent for exactly this string and handler. kDamaged, kConflict as above.
Result<bool> FindIntent(const StoreTxn& txn, std::string_view image,
                        std::string_view runtime_handler);
// Whether it was not there before. Replaces what is damaged.
Result<bool> StoreIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler);
Result<bool> EraseIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler);
// Whether there is an intent of `image`'s repository, for this string or another, or one that can't
// be read.
Result<bool> HasIntentOfRepository(const StoreTxn& txn, std::string_view image);

// The registry, sorted by name. kDamaged: an entry is unreadable.
Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const StoreTxn& txn);

// Whether there is an entry, readable or not, for a SHA-256 or for the hash of a string.
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256);
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text);
// Keeps an entry that is there. Whether it was not. entry.sha256 is well-formed.
Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantineEntry& entry);
Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_TYPED_TABLES_H_
