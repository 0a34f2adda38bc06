#include "doctor/text.h"

#include <sys/stat.h>

#include <cerrno>

#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "waybill/kubelet_format.h"

namespace waybill::doctor {

std::string Count(std::uint64_t count, std::string_view what) {
  return internal::HowMany(count, what);
}

std::string Day(Timestamp time) { return FormatTimestamp(time).substr(0, 10); }

Result<Timestamp> ChangedAt(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return internal::SystemError(errno, "read", path);
  return Timestamp{.seconds = status.st_mtim.tv_sec};
}

std::string Bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  if (bytes >= 10 * kGib) return std::to_string(bytes / kGib) + " GiB";
  return std::to_string(bytes / kMib) + " MiB";
}

}  // namespace waybill::doctor
