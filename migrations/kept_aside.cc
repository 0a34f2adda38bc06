#include "migrations/kept_aside.h"

#include <string>

#include "store/base/files.h"
#include "waybill/kubelet_format.h"

namespace waybill::internal {

namespace {

// "20260102T030405Z"
std::string CompactTime(Timestamp time) {
  std::string text = FormatTimestamp({time.seconds, 0});
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

}  // namespace

Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now) {
  const std::filesystem::path first =
      directory / (std::string(prefix) + "before-export-" + CompactTime(now));
  std::filesystem::path aside = first;
  for (int n = 2;; ++n) {
    auto there = Exists(aside);
    if (!there) return there.error();
    if (!*there) return aside;
    aside = first;
    aside += "-" + std::to_string(n);
  }
}

}  // namespace waybill::internal
