// Under which name an export keeps what was there before it.

#ifndef WAYBILL_MIGRATIONS_KEPT_ASIDE_H_
#define WAYBILL_MIGRATIONS_KEPT_ASIDE_H_

#include <filesystem>
#include <string_view>

#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// <directory>/<prefix>before-export-<time>[-n]: the first one under which there is nothing. kIo,
// kUnsafePath: nobody can tell.
Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KEPT_ASIDE_H_
