// The ledger of preloaded images, and the spellings under which images are known
// (schema/v1/evidence.fbs).
//
// A row of kSpellings tells of which image a digest is: an image ID of itself, a repo digest of the
// ID that the runtime listed it for. A repo digest that was listed for two images is of neither.
// The row of an ID also has the image's other refs, under which records may be stored. The row of a
// repo digest has the images as which pulls of it were recorded before it became another's or two
// images': any image that has it may be what they brought.

#ifndef WAYBILL_STORE_NODE_RECORDS_EVIDENCE_TABLES_H_
#define WAYBILL_STORE_NODE_RECORDS_EVIDENCE_TABLES_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/function_ref.h"
#include "store/engine/database/reader_pool.h"
#include "store/engine/database/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

struct SpellingRow {
  std::string spelling;  // Spelling::text() of a ref
  std::string image;     // that of the image's ID; empty: two images have it
  std::vector<std::string> refs;
  std::uint64_t stamp = 0;
};

std::vector<std::uint8_t> EncodeLedgerEntry(const PreloadedImage& entry);
std::vector<std::uint8_t> EncodeSpelling(const SpellingRow& row);
// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<PreloadedImage> DecodeLedgerEntry(Payload payload);
std::optional<SpellingRow> DecodeSpelling(Payload payload);

// --- For changes. Runtime handlers are as stored, "" for the default one -------------------------

Result<std::optional<SpellingRow>> FindSpelling(const StoreTxn& txn, std::string_view spelling);
// Stamps the row with the commit under way.
Result<void> PutSpelling(StoreTxn& txn, SpellingRow row);

// The ID of the image that the ref spells: its row's, or the ref's own spelling if there is none or
// two images have it.
Result<std::string> ImageOf(const StoreTxn& txn, std::string_view image_ref);
// kInvalidArgument: two images have the digest, so it names neither.
Result<void> CheckOfOneImage(const StoreTxn& txn, std::string_view image_ref);
// Every ref under which a record of the ref's image may be stored, `image_ref` first.
Result<std::vector<std::string>> RefsOfImage(const StoreTxn& txn, std::string_view image_ref);
// The ref is one of its image's, if the image is known. Of an image with more refs than are kept it
// takes the place of one that is not in use. If there is none it stays unknown: a record under it
// opens nothing but that very ref, and keeps the image out of the ledger.
Result<void> LearnRef(StoreTxn& txn, std::string_view image_ref);
// Whether a record or a quarantine entry stands under the very ref, for any runtime handler.
Result<bool> IsInUse(const StoreTxn& txn, std::string_view image_ref);

// Whether a list, or the runtime's entry of a pull, ever had the ref or a spelling of it.
Result<bool> WasListed(const StoreTxn& txn, std::string_view image_ref);
// Forgets the spellings of an image that is not on the node any more.
Result<void> EraseSpellings(StoreTxn& txn, std::string_view image);

// The entry of the ref's image under the handler; not one that is only remembered.
Result<std::optional<PreloadedImage>> FindLedgerEntry(const StoreTxn& txn,
                                                      std::string_view image_ref,
                                                      std::string_view runtime_handler);
// The same, also one whose image is gone.
Result<std::optional<PreloadedImage>> FindRememberedEntry(const StoreTxn& txn,
                                                          std::string_view image_ref,
                                                          std::string_view runtime_handler);
// Stamps the entry with the commit under way, and stores it under its image's ID. An older entry of
// the image is replaced.
Result<void> PutLedgerEntry(StoreTxn& txn, PreloadedImage entry);
// The same for the stored entry, which changes by `absent_since` alone (typed_tables.h).
Result<void> StoreAbsence(StoreTxn& txn, PreloadedImage entry);
// True: there was one.
Result<bool> EraseLedgerEntry(StoreTxn& txn, std::string_view image_ref,
                              std::string_view runtime_handler);

// Forgets the entry if it is only remembered: a pull brought the image anew.
Result<void> EraseRemembered(StoreTxn& txn, std::string_view image_ref,
                             std::string_view runtime_handler);

// Drops the entries that `drops` accepts: the next list judges their images anew.
Result<void> DropFromLedger(StoreTxn& txn, FunctionRef<bool(const PreloadedImage&)> drops);

// Something that kept images closed is gone: a list whose token is older must not enter what that
// may have brought.
void NoteEvidenceRemoved(StoreTxn& txn);

// Whether the image has a record under any spelling and handler, readable or not.
Result<bool> AnyRecordOfImage(const StoreTxn& txn, std::string_view image_ref);

// --- For decisions -------------------------------------------------------------------------------

// The same on a snapshot. RefsOfImage allocates. kDamaged: something can't be read.
Lookup FindLedgerEntry(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                       std::string_view runtime_handler, Payload& payload);
// Only one whose image is gone.
Lookup FindGoneEntry(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                     std::string_view runtime_handler, Payload& payload);
Lookup RefsOfImage(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                   std::vector<std::string>& refs);

// Whether `is_it` accepts one of the names of an entry, whose envelope verified.
bool AnyNameOf(Payload ledger_entry, FunctionRef<bool(std::string_view)> is_it);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_EVIDENCE_TABLES_H_
