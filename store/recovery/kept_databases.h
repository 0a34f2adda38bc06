// quarantine/<time>-<inode>/data.mdb: databases that failed their check or were replaced
// (KeepAside in salvage.h). There is an end to them.

#ifndef WAYBILL_STORE_RECOVERY_KEPT_DATABASES_H_
#define WAYBILL_STORE_RECOVERY_KEPT_DATABASES_H_

#include <filesystem>
#include <string>
#include <vector>

namespace waybill::internal {

// Removes those beyond the newest kMaxKeptAside, by when they were set aside, the oldest first; but
// not one that verifies, unless backup/ has a backup of the same commit that verifies. What can't
// be looked at or removed stays: the next time tries again. Returns what went.
std::vector<std::string> RemoveOldDatabases(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_KEPT_DATABASES_H_
