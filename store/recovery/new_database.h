// Makes a database beside the store and puts it in place in one rename, so that there is never half
// of one under the name data.mdb.

#ifndef WAYBILL_STORE_RECOVERY_NEW_DATABASE_H_
#define WAYBILL_STORE_RECOVERY_NEW_DATABASE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "store/database/header.h"
#include "store/database/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// A random UUID and hash seed. kIo where the system has no randomness.
Result<Identity> NewIdentity(Timestamp now);

struct NewDatabase {
  Identity identity;
  std::uint64_t sequence = 0;       // the commit sequence before it
  std::vector<TrustEvent> journal;  // what is inherited of it
  std::string distrust_reason;      // empty: trustful
  Timestamp now;
  std::uint64_t map_bytes = 0;
  std::function<Result<void>(StoreTxn&)> fill;  // empty: nothing more
};

// Writes a database, all in one transaction, to a temporary directory inside `directory`, and syncs
// it.
Result<void> PrepareDatabase(const std::filesystem::path& directory, const NewDatabase& made);

// Renames what PrepareDatabase made over data.mdb and removes lock.mdb, whose transaction ID would
// pick the wrong meta page of a new file. A crash between the two: see OpenDatabaseAsOwner.
Result<void> InstallDatabase(const std::filesystem::path& directory);

// Removes what an earlier crash left of PrepareDatabase.
Result<void> ClearPreparation(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_NEW_DATABASE_H_
