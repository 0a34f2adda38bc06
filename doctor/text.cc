#include "doctor/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/timestamp.h"
#include "waybill/values.h"

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

std::vector<std::string> SplitAtZeros(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace waybill::doctor
