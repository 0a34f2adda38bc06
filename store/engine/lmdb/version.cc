#include "store/engine/lmdb/version.h"

#include <lmdb.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "waybill/maintenance.h"

namespace waybill {

namespace lmdb {
namespace {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend bool operator==(const Version&, const Version&) = default;
};

// Add a version when all of tests/ passes on it.
constexpr std::array<Version, 1> kTested = {{{0, 9, 24}}};

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
