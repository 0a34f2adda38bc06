// What the file system of a store does not guarantee.

#ifndef WAYBILL_STORE_RECOVERY_FILE_SYSTEM_H_
#define WAYBILL_STORE_RECOVERY_FILE_SYSTEM_H_

#include <filesystem>
#include <string>

namespace waybill::internal {

// One line for the operator; empty: no concern, or unknown.
std::string FileSystemWarning(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_FILE_SYSTEM_H_
