// --map-size: the most that a store may grow to.

#ifndef WAYBILL_BINDINGS_CLI_MAP_SIZE_H_
#define WAYBILL_BINDINGS_CLI_MAP_SIZE_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "waybill/result.h"

namespace waybill::cli {

// Whole pages. The library knows the bounds.
Result<std::uint64_t> ParseMapSize(std::string_view flag, std::string_view text);

// What deletions keep of the map for themselves (store/README.md, "A full store").
constexpr double ReserveOf(double map_bytes) {
  constexpr double kPageBytes = 4096;
  return std::clamp(map_bytes / kPageBytes / 16, 64.0, 1024.0) * kPageBytes;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_MAP_SIZE_H_
