#include "migrations/kubelet_files/kept_aside.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/opening/backup.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

// The last number of a kept <beginning>[-n]; 0: none is kept.
std::uint64_t LastNumber(const std::vector<std::string>& names, const std::string& beginning) {
  std::uint64_t last = 0;
  for (const std::string& name : names) {
    if (!name.starts_with(beginning)) continue;
    const std::string rest = name.substr(beginning.size());
    std::uint64_t number = 0;
    if (rest.empty()) {
      number = 1;
    } else if (rest[0] == '-') {
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
    }
    last = std::max(last, number);
  }
  return last;
}

}  // namespace

Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now) {
  const std::string first = std::string(prefix) + "before-export-" + TimeInNames(now.seconds);
  const auto names = TRY(ListDirectory(directory));
  for (std::uint64_t number = LastNumber(names, first) + 1;; ++number) {
    std::filesystem::path aside =
        directory / (number == 1 ? first : first + "-" + std::to_string(number));
    if (!TRY(Exists(aside))) return aside;
  }
}

std::vector<std::filesystem::path> TooOldAside(const std::filesystem::path& directory,
                                               std::string_view prefix) {
  const auto names = ListDirectory(directory);
  if (!names) return {};
  const std::string beginning = std::string(prefix) + "before-export-";
  // Ordered by the time of the rename, which the name's time may not be; within a clock tick by
  // number.
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::filesystem::path>> kept;
  for (const std::string& name : *names) {
    if (!name.starts_with(beginning)) continue;
    struct stat st {};
    std::filesystem::path path = directory / name;
    if (lstat(path.c_str(), &st) != 0) continue;
    const std::string without_number = name.substr(0, name.find('-', beginning.size()));
    kept.emplace_back(st.st_ctim.tv_sec, st.st_ctim.tv_nsec, LastNumber({name}, without_number),
                      std::move(path));
  }
  std::sort(kept.begin(), kept.end());
  kept.resize(kept.size() - std::min(kept.size(), kMaxKeptAside));
  std::vector<std::filesystem::path> too_old;
  too_old.reserve(kept.size());
  for (auto& one : kept) too_old.push_back(std::move(std::get<std::filesystem::path>(one)));
  return too_old;
}

}  // namespace waybill::internal
