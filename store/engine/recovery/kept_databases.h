// quarantine/<time>-<inode>/data.mdb: databases that failed their check or were replaced. Their
// number is bounded.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_KEPT_DATABASES_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_KEPT_DATABASES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

// Links `file`, which is data.mdb in `directory`, into quarantine/, named by its time of change and
// inode, so that a repeated attempt finds its own link. Returns the path.
Result<std::filesystem::path> KeepAside(const std::filesystem::path& directory, const Fd& file);

// Removes all but the newest kMaxKeptAside, by the time at which they were set aside, the oldest
// first. A database that verifies stays, unless backup/ has a backup of the same commit that
// verifies. What can't be read or removed stays until the next attempt. Returns the removed paths.
std::vector<std::string> RemoveOldDatabases(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_KEPT_DATABASES_H_
