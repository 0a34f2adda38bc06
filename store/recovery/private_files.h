// What lies in the store's directory: nothing in it is followed through a symlink, and nothing is
// trusted that another user owns or may change.

#ifndef WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_
#define WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

// kUnsafePath, and nothing was changed: one of the store's files or folders, or something below
// them, is a symlink, of another type than it should be, or belongs to another user. `directory` is
// a private one (CheckPrivateDirectory). Files that the store does not use are passed over.
Result<void> CheckStoreFiles(const std::filesystem::path& directory);

// The same, and takes what others may read or write there away from them: one line for each.
Result<std::vector<std::string>> MendStoreFiles(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_
