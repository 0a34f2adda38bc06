// Opens LMDB on a file that passed the walk, and makes sure that LMDB sees what the walk saw.

#ifndef WAYBILL_STORE_RECOVERY_OPEN_DATABASE_H_
#define WAYBILL_STORE_RECOVERY_OPEN_DATABASE_H_

#include <cstdint>
#include <filesystem>

#include "store/recovery/open_store.h"
#include "waybill/result.h"

namespace waybill::internal {

// `txn_id` is the newer meta page's, as the walk saw it. A lock.mdb of another data.mdb makes LMDB
// pick the older page; it is then removed once and the file opened again.
Result<OpenedDatabase> OpenDatabaseAsOwner(const std::filesystem::path& directory,
                                           std::uint64_t map_bytes, std::uint64_t txn_id,
                                           const OwnerLock& lock);

// `txn_id` 0: a live owner has checked the file.
Result<OpenedDatabase> OpenDatabaseAsObserver(const std::filesystem::path& directory,
                                              std::uint64_t txn_id);

Error NewerSchema(const std::filesystem::path& directory);
Error OlderSchema(const std::filesystem::path& directory, std::uint32_t version);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_OPEN_DATABASE_H_
