#include "store/disk/lmdb/version.h"

#include <lmdb.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

namespace waybill {

namespace lmdb {
namespace {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend bool operator==(const Version&, const Version&) = default;
};

// Add a version when `./dev lmdb` passes on it, and its mdb.c was read beside the one before.
constexpr auto kTested = std::to_array<Version>({
    {0, 9, 24},  // Debian 11 and 12
    {0, 9, 29},
    {0, 9, 31},  // Debian 13
    {0, 9, 33},
    {0, 9, 35},  // Debian's next release
    {0, 9, 36},
});

std::atomic<bool> untested_allowed{false};

std::string ToString(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

}  // namespace

Result<void> CheckVersion() {
  Version version;
  mdb_version(&version.major, &version.minor, &version.patch);
  if (std::find(kTested.begin(), kTested.end(), version) != kTested.end()) return {};
  if (untested_allowed.load(std::memory_order_relaxed)) return {};
  std::string tested;
  for (const Version& known : kTested) tested += (tested.empty() ? "" : ", ") + ToString(known);
  return Error{ErrorCode::kInvalidArgument,
               "waybill was not tested with LMDB " + ToString(version) +
                   ", which this process has, but with " + tested + "; nothing was changed",
               {},
               Hint::kAllowUntestedLmdb};
}

}  // namespace lmdb

void AllowUntestedLmdb(bool allow) {
  lmdb::untested_allowed.store(allow, std::memory_order_relaxed);
}

}  // namespace waybill
