// Under which name an export keeps what was there before it, and for how long.

#ifndef WAYBILL_MIGRATIONS_KUBELET_KEPT_ASIDE_H_
#define WAYBILL_MIGRATIONS_KUBELET_KEPT_ASIDE_H_

#include <filesystem>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// <directory>/<prefix>before-export-<time>[-n]: with the number after the last one. kIo,
// kUnsafePath: what is there already can't be told.
Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now);

// What is kept under such names in `directory`, beyond the newest kMaxKeptAside; the oldest first.
std::vector<std::filesystem::path> TooOldAside(const std::filesystem::path& directory,
                                               std::string_view prefix);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_KEPT_ASIDE_H_
