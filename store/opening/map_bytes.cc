#include "store/opening/map_bytes.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "store/disk/page_walk/page_check.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool IsMapSize(std::uint64_t bytes) { return bytes >= kMinMapBytes && bytes <= kMaxMapBytes; }

}  // namespace

Result<void> CheckMapBytes(std::uint64_t given) {
  if (given == 0 || IsMapSize(given)) return {};
  return Error{ErrorCode::kInvalidArgument,
               "a map of " + std::to_string(given) + " bytes is out of range",
               "use " + std::to_string(kMinMapBytes) + " to " + std::to_string(kMaxMapBytes)};
}

std::uint64_t RememberedMapBytes(const Inspection& inspection) {
  const auto said = [&](int which) -> std::uint64_t {
    if (which < 0) return 0;
    const MetaSummary& meta = inspection.meta[static_cast<std::size_t>(which)];
    const bool is_legible = meta.valid || meta.past_end;
    return is_legible && IsMapSize(meta.map_bytes) ? meta.map_bytes : 0;
  };
  for (const int which : {inspection.newer_meta, 0, 1}) {
    if (const std::uint64_t bytes = said(which); bytes != 0) return bytes;
  }
  return 0;
}

std::uint64_t ChooseMapBytes(std::uint64_t given, std::uint64_t remembered) {
  std::uint64_t bytes = given != 0 ? given : remembered;
  if (bytes == 0) bytes = kDefaultMapBytes;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Result<void> RememberMapBytes(const Fd& file, const std::filesystem::path& path,
                              const Inspection& inspection, std::uint64_t bytes) {
  const int newest = inspection.newer_meta;
  if (inspection.meta[static_cast<std::size_t>(newest)].map_bytes == bytes) return {};
  // Nothing tears: eight aligned bytes change. LMDB copies them into its next meta page.
  const std::string_view value(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  const auto at = static_cast<off_t>(MapBytesOffset(newest, inspection.page_bytes));
  if (auto r = PWriteAll(file, value, at, path); !r) return r;
  return SyncFile(file, path);
}

}  // namespace waybill::internal
