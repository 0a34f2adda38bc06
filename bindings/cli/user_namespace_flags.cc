#include "bindings/cli/user_namespace_flags.h"

#include <fmt/core.h>

#include "bindings/cli/getsubids.h"
#include "bindings/cli/input.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// A file with the output of getsubids.
Result<std::string> ReadOutput(std::string_view flag, const std::string& path) {
  if (path == "-") return BadFlag(flag, "it takes a file, not standard input");
  return ReadInput(path, kMaxSubordinateIdBytes);
}

}  // namespace

void UserNamespaceFlags::Declare(Flags& flags, const std::vector<std::string>& only_with) {
  flags.Value("--ids-per-pod", &ids_per_pod_, "N",
              "host IDs of each new range (65536), the kubelet's\nuserNamespaces.idsPerPod");
  flags.Value("--max-pods", &max_pods_, "N",
              "pods that the pool must have room for (110), the kubelet's maxPods");
  flags.Value("--pool", &pool_, "FIRST:COUNT",
              "the host IDs to take ranges from; else it is what getsubids says of the\n"
              "user kubelet, or all but the host's own");
  flags.Value("--subuids", &subuids_, "FILE",
              "what `getsubids kubelet` printed, without running it");
  flags.Value("--subgids", &subgids_, "FILE", "what `getsubids -g kubelet` printed");
  flags.Switch("--no-user-namespaces", &off_, "the feature is off: no new ranges");
  const std::vector<std::string> pools = {"--pool", "--subuids", "--subgids",
                                          "--no-user-namespaces"};
  flags.TakesSetting("--pool", {.unless = pools, .only_with = only_with});
  for (const char* flag : {"--ids-per-pod", "--max-pods"}) {
    flags.TakesSetting(flag, {.unless = {"--no-user-namespaces"}, .only_with = only_with});
  }
}

std::string UserNamespaceFlags::Given() const {
  if (ids_per_pod_) return "--ids-per-pod";
  if (max_pods_) return "--max-pods";
  if (pool_) return "--pool";
  if (subuids_) return "--subuids";
  if (subgids_) return "--subgids";
  return off_ ? "--no-user-namespaces" : "";
}

Result<void> UserNamespaceFlags::Parse(bool hands_out) {
  if (off_) {
    if (const std::string given = Given(); given != "--no-user-namespaces") {
      return BadFlag("--no-user-namespaces", "it excludes " + given);
    }
    options.enabled = false;
    return {};
  }
  std::uint64_t ids_per_pod = options.pool.ids_per_pod;
  TRY(ParseNumber("--ids-per-pod", ids_per_pod_, ids_per_pod));
  std::uint64_t max_pods = options.pool.max_pods;
  TRY(ParseNumber("--max-pods", max_pods_, max_pods));
  if (!hands_out) max_pods = 0;
  if (pool_ && (subuids_ || subgids_)) {
    return BadFlag("--pool", "it excludes --subuids and --subgids");
  }
  if (subuids_.has_value() != subgids_.has_value()) {
    return BadFlag(subuids_ ? "--subgids" : "--subuids", "it is missing",
                   "give both outputs: of `getsubids kubelet` and of `getsubids -g kubelet`");
  }
  auto pool = TRY(ParsePool(ids_per_pod, max_pods));
  options.pool = pool;
  return {};
}

Result<UserNamespacePool> UserNamespaceFlags::ParsePool(std::uint64_t ids_per_pod,
                                                        std::uint64_t max_pods) const {
  if (pool_) {
    const std::size_t colon = pool_->find(':');
    if (colon == std::string::npos) {
      return BadFlag("--pool", fmt::format("'{}' has no colon", pool_->substr(0, 200)),
                     "the form is FIRST:COUNT, for example 65536:7208960");
    }
    auto first = TRY(ParseNumber("--pool", pool_->substr(0, colon)));
    auto count = TRY(ParseNumber("--pool", pool_->substr(colon + 1)));
    const UserNamespacePool pool{first, count, ids_per_pod, max_pods};
    TRY(CheckUserNamespacePool(pool));
    return pool;
  }
  if (!subuids_) {
    auto found = TRY(FindSubordinateIds());
    return PoolOfSubordinateIds(found, ids_per_pod, max_pods);
  }
  auto uids = TRY(ReadOutput("--subuids", *subuids_));
  auto gids = TRY(ReadOutput("--subgids", *subgids_));
  SubordinateIds given;
  given.user_exists = true;
  given.tool_exists = true;
  given.uids = std::move(uids);
  given.gids = std::move(gids);
  return PoolOfSubordinateIds(given, ids_per_pod, max_pods);
}

}  // namespace waybill::cli
