// --map-size: the most that a store may grow to.

#ifndef WAYBILL_BINDINGS_CLI_MAP_SIZE_H_
#define WAYBILL_BINDINGS_CLI_MAP_SIZE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "waybill/result.h"

namespace waybill::cli {

// Leaves `bytes` unchanged if the flag was not given. The library knows the bounds.
Result<void> ParseMapSize(const std::optional<std::string>& text, std::uint64_t& bytes);

// What deletions keep of the map for themselves (store/README.md, "A full store").
constexpr double ReserveOf(double map_bytes) {
  constexpr double kPageBytes = 4096;
  return std::clamp(map_bytes / kPageBytes / 16, 64.0, 1024.0) * kPageBytes;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_MAP_SIZE_H_
