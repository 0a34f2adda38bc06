// The files in the store's directory: symlinks are not followed, and files that another user owns
// or can change are not trusted.

#ifndef WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_
#define WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

// kUnsafePath, and nothing was changed: a file or folder of the store is a symlink, has the wrong
// type, or belongs to another user. `directory` passed CheckPrivateDirectory. Files that the store
// does not use are ignored.
// With `mended`, removes other users' modes, and adds a line to it for each change.
Result<void> CheckStoreFiles(const std::filesystem::path& directory,
                             std::vector<std::string>* mended = nullptr);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_PRIVATE_FILES_H_
