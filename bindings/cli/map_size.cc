#include "bindings/cli/map_size.h"

#include <fmt/format.h>
#include <unistd.h>

#include "bindings/cli/parse.h"
#include "store/base/try.h"

namespace waybill::cli {

Result<std::uint64_t> ParseMapSize(std::string_view flag, std::string_view text) {
  auto parsed = TRY(Number()(flag, text));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (parsed == 0 || parsed % page != 0) {
    const std::uint64_t below = parsed / page * page;
    return BadFlag(flag, fmt::format("{} is not a multiple of the page size, {}", parsed, page),
                   below == 0 ? "" : fmt::format("{} is one", below));
  }
  return parsed;
}

}  // namespace waybill::cli
