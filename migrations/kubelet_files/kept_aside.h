// The names under which an export keeps the earlier files, and for how long.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KEPT_ASIDE_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KEPT_ASIDE_H_

#include <filesystem>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// <directory>/<prefix>before-export-<time>[-n], with the next free number. kIo, kUnsafePath: the
// existing names can't be read.
Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now);

// The paths with such names in `directory`, oldest first, without the newest kMaxKeptAside.
std::vector<std::filesystem::path> TooOldAside(const std::filesystem::path& directory,
                                               std::string_view prefix);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KEPT_ASIDE_H_
