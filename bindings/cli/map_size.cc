#include "bindings/cli/map_size.h"

#include <fmt/format.h>
#include <unistd.h>

#include "bindings/cli/parse.h"
#include "store/base/try.h"

namespace waybill::cli {

Result<void> ParseMapSize(const std::optional<std::string>& text, std::uint64_t& bytes) {
  if (!text) return {};
  auto parsed = TRY(ParseNumber("--map-size", *text));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (parsed == 0 || parsed % page != 0) {
    const std::uint64_t below = parsed / page * page;
    return BadFlag("--map-size",
                   fmt::format("{} is not a multiple of the page size, {}", parsed, page),
                   below == 0 ? "" : fmt::format("{} is one", below));
  }
  bytes = parsed;
  return {};
}

}  // namespace waybill::cli
