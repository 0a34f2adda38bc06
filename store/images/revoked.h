// What was revoked (table "revocations----1", schema/v2/revocation.fbs). A credential is under up
// to five keys: of its coordinates with and without the UID, its namespace, its hash, and the
// subject of its image.

#ifndef WAYBILL_STORE_IMAGES_REVOKED_H_
#define WAYBILL_STORE_IMAGES_REVOKED_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/disk/reader_pool.h"
#include "store/disk/store_txn.h"
#include "store/images/image_row.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

class Images;

std::vector<std::uint8_t> EncodeRevocation(const Revocation& revocation);
// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<Revocation> DecodeRevocation(Payload payload);

// --- For changes ---------------------------------------------------------------------------------

Result<std::vector<Revocation>> ReadRevocations(const StoreTxn& txn);
// The stored one of the same kind and identity.
Result<std::optional<Revocation>> FindRevocation(const StoreTxn& txn, const Revocation& like);
// Stores it, or raises `commit` and `since` of the one that is there, which stays unfinished if it
// is of a later commit. Counts State::unfinished. Finds room on a full store, too.
Result<void> PutRevocation(StoreTxn& txn, const Revocation& revocation);
Result<void> EraseRevocation(StoreTxn& txn, const Revocation& revocation);

// Removes what was revoked from the record: Images::Put, by which every row is stored, comes by
// here. Returns whether there was anything.
Result<bool> LeaveOutRevoked(const Images& images, ImageRow& row);

// Whether the secret was forgotten since the pull of its proof began, by itself or by its hash.
Result<bool> IsForgotten(const StoreTxn& txn, const ImagePullSecret& secret);
// Whether a revocation of the hash is kept, whenever it was. No pull proved what only coordinates
// match, so nothing tells that the hash was proven since.
Result<bool> IsHashForgotten(const StoreTxn& txn, std::string_view hash);

// --- For decisions -------------------------------------------------------------------------------

// Likewise; true also if that can't be read. Those of a stored credential are asked for while there
// are unfinished revocations.
bool IsForgotten(const ReaderPool::Lease& snapshot, const ImagePullSecret& secret);
bool IsForgotten(const ReaderPool::Lease& snapshot, const ImagePullServiceAccount& account);
bool IsHashForgotten(const ReaderPool::Lease& snapshot, std::string_view hash);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_REVOKED_H_
