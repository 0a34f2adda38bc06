// Finds and stores records by their identities (an image ref, an image string), and checks that the
// record under a key has the identity that was asked for. Encodes and decodes all records but
// pulled ones (pulled_record.h), open pulls (open_pulls_table.h), evidence (evidence_tables.h) and
// those of user namespaces (userns_tables.h).

#ifndef WAYBILL_STORE_NODE_RECORDS_TYPED_TABLES_H_
#define WAYBILL_STORE_NODE_RECORDS_TYPED_TABLES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/try.h"
#include "store/engine/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A file that was imported, and the SHA-256 of its content.
struct ImportedFile {
  std::string path;
  std::array<std::uint8_t, 32> content{};
};

std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler);
std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantinedFile& entry);
std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record);
std::vector<std::uint8_t> EncodeImportedFileValue(const ImportedFile& file);

// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<QuarantinedFile> DecodeQuarantineValue(Payload payload);
std::optional<ImagePreloadedRecord> DecodePreloadedValue(Payload payload);
std::optional<ImportedFile> DecodeImportedFileValue(Payload payload);
std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(Payload payload);

// In place, from an envelope that verified (see PulledRecordView).
struct RuntimeHandlerView {
  std::string_view name;
  bool is_default = false;
  bool user_namespaces = false;
};
RuntimeHandlerView ViewRuntimeHandler(Payload payload);

// kConflict: another identity has the same key as `whose` ("pod a").
Error KeyIsTaken(const std::string& whose);

// A whole table, in the order of its keys. `unreadable`: a value does not verify or decode.
template <typename T>
Result<std::vector<T>> ReadAll(const StoreTxn& txn, Table table,
                               std::optional<T> (*decode)(Payload), const Error& unreadable) {
  std::vector<T> all;
  TRY(txn.ForEach(table, [&](const Key16&, Payload payload) -> Result<bool> {
    auto decoded = decode(payload);
    if (!decoded) return unreadable;
    all.push_back(std::move(*decoded));
    return true;
  }));
  return all;
}

// Below, the default runtime handler is "".

// nullopt: no such record. kDamaged: unreadable. kConflict: the key is another image ref's or
// handler's.
Result<std::optional<ImagePulledRecord>> FindRecord(const StoreTxn& txn, std::string_view image_ref,
                                                    std::string_view runtime_handler);
// Whether the ref has a record under any handler, readable or not.
Result<bool> AnyRecordOf(const StoreTxn& txn, std::string_view image_ref);
// Stamps the record with the commit under way, without what was forgotten (DropForgotten). Replaces
// a damaged one; kConflict as above.
Result<void> StoreRecord(StoreTxn& txn, ImagePulledRecord record);
// The same for one that changes by `absent_since` alone. It takes room that is kept for deletions,
// since it stands for one.
Result<void> StoreAbsence(StoreTxn& txn, ImagePulledRecord record);
// The same, but the record keeps its stamp: only proofs changed, an operator closed its image or
// took that back, or a record without credentials learns its guest platform.
Result<void> StoreProofs(StoreTxn& txn, ImagePulledRecord record);
// If the ref has no record under the handler, makes one without credentials: then the image counts
// as pulled, and pods must verify. True: the record was made. A damaged record stays, since it
// closes the image as well. A ref that is empty or above limits.h is ignored. `because`: the
// record's closed_because.
enum class ClosedBy : std::uint8_t { kList, kOperator, kOther };
Result<bool> CloseCopy(StoreTxn& txn, std::string_view image_ref, std::string_view runtime_handler,
                       std::string_view because, ClosedBy by = ClosedBy::kOther);
Result<bool> EraseRecord(StoreTxn& txn, std::string_view image_ref,
                         std::string_view runtime_handler);

// The registry, sorted by name. kDamaged: an entry is unreadable.
Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const StoreTxn& txn);

// Whether a SHA-256, or that of a string, has an entry, readable or not.
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256);
Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text);
// True: the entry is new. An existing one stays. kInvalidArgument: entry.sha256 is malformed.
Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantinedFile& entry);
Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_TYPED_TABLES_H_
