#include "bindings/cli/user_namespace_flags.h"

#include <fmt/core.h>

#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/input.h"
#include "bindings/cli/kubelet_config.h"
#include "bindings/cli/run_program.h"
#include "store/base/try.h"
#include "store/pods/pool.h"

namespace waybill::cli {
namespace {

// A file, and not standard input.
Result<std::string> ParseOutputFile(std::string_view flag, const std::string& path) {
  if (path == "-") return BadFlag(flag, "it takes a file, not standard input");
  return path;
}

// FIRST:COUNT.
Result<IdPool> ParsePool(std::string_view flag, const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return BadFlag(flag, fmt::format("'{}' has no colon", text.substr(0, 200)),
                   "the form is FIRST:COUNT, for example 65536:7208960");
  }
  const std::uint64_t first = TRY(Number()(flag, text.substr(0, colon)));
  const std::uint64_t count = TRY(Number()(flag, text.substr(colon + 1)));
  return IdPool{.first_id = first, .id_count = count};
}

}  // namespace

void UserNamespaceFlags::Declare(Flags& flags) {
  Flag* kubelet_config = flags.Find("--kubelet-config");
  if (kubelet_config == nullptr) {
    kubelet_config = &DeclareKubeletConfig(flags);
    kubelet_config->seldom = true;
  }
  // Also beside a policy that is typed: the sizes are still its.
  kubelet_config->TakesSetting({.beside_excluded = true});
  const FromSettings unless = {.unless = {"--kubelet-config"}};
  flags
      .Value("--ids-per-pod", &ids_per_pod_, "N", "host IDs of each new range; 65536", Number(),
             kSeldom)
      .TakesSetting(unless);
  flags
      .Value("--max-pods", &max_pods_, "N",
             "pods that the pool must have room for (110), the kubelet's maxPods", Number(),
             kSeldom)
      .TakesSetting(unless);
  flags.Value("--pool", &pool_, "FIRST:COUNT",
              "the host IDs to take ranges from; else it is what getsubids says of the\n"
              "user kubelet, or all but the host's own",
              ParsePool, kSeldom | kTakesSetting);
  flags.Value("--subuids", &subuids_, "FILE",
              "what `getsubids kubelet` printed, without running it", ParseOutputFile, kSeldom);
  flags.Value("--subgids", &subgids_, "FILE", "what `getsubids -g kubelet` printed",
              ParseOutputFile, kSeldom);
  flags.Switch("--no-user-namespaces", &off_, "the feature is off: no new ranges", kSeldom);
  flags.Excludes("--no-user-namespaces",
                 {"--ids-per-pod", "--max-pods", "--pool", "--subuids", "--subgids"});
  flags.Excludes("--pool", {"--subuids", "--subgids"});
  const std::string both =
      "give both outputs: of `getsubids kubelet` and of `getsubids -g kubelet`";
  flags.Needs("--subuids", {"--subgids"}, both);
  flags.Needs("--subgids", {"--subuids"}, both);
}

Result<UserNamespaceOptions> UserNamespaceFlags::Read() const {
  if (off_) return UserNamespaceOptions{.enabled = false};
  if (pool_) {
    const IdPool pool{pool_->first_id, pool_->id_count, ids_per_pod_, max_pods_};
    TRY(CheckIdPool(pool));
    return UserNamespaceOptions{.pool = pool};
  }
  SubordinateIds ids;
  if (subuids_) {
    ids.user_exists = true;
    ids.tool_exists = true;
    ids.uids = TRY(ReadInput(*subuids_, kMaxSubordinateIdBytes));
    ids.gids = TRY(ReadInput(*subgids_, kMaxSubordinateIdBytes));
  } else {
    ids = TRY(FindSubordinateIds());
  }
  const auto pool = TRY(PoolOfSubordinateIds(ids, ids_per_pod_, max_pods_));
  return UserNamespaceOptions{.pool = pool};
}

namespace {

Error Failed(std::string message, std::string hint) {
  return {ErrorCode::kIo, std::move(message), std::move(hint)};
}

// By getent, since a user's name may come from other places than a file, and a program without
// shared libraries can't ask those. Without getent by /etc/passwd.
Result<bool> UserExists(const std::string& user) {
  const auto failed = [&](std::string_view why) {
    return Failed(fmt::format("cannot look up the user {}: {}", user, why),
                  "or say what the pool is with --pool FIRST:COUNT");
  };
  if (const std::string getent = FindProgram("getent"); !getent.empty()) {
    constexpr int kNotFound = 2;
    const auto ended = RunProgram({getent, "passwd", user});
    if (!ended) return failed("getent: " + ended.error());
    if (ended->status == 0 || ended->status == kNotFound) return ended->status == 0;
    return failed(fmt::format("getent ends with exit status {}", ended->status));
  }
  std::ifstream users("/etc/passwd");
  for (std::string line; std::getline(users, line);) {
    if (line.starts_with(user + ":")) return true;
  }
  return false;
}

// The tool's output.
Result<std::string> OutputOf(std::vector<std::string> arguments, std::string_view ids) {
  std::string command = "getsubids";
  for (std::size_t i = 1; i < arguments.size(); ++i) command += " " + arguments[i];
  const std::string user = arguments.back();
  const auto failed = [&](std::string_view why) {
    return Failed(
        fmt::format("error retrieving additional {} for user \"{}\": {}", ids, user, why),
        fmt::format("see what `{}` says, or give the pool with --pool FIRST:COUNT", command));
  };
  auto ended = RunProgram(std::move(arguments), {.max_bytes = kMaxSubordinateIdBytes});
  if (!ended) return failed(ended.error());
  if (ended->status != 0) return failed(fmt::format("exit status {}", ended->status));
  return std::move(ended->output);
}

}  // namespace

Result<SubordinateIds> FindSubordinateIds(const std::string& user) {
  SubordinateIds found;
  found.user_exists = TRY(UserExists(user));
  if (!found.user_exists) return found;
  const std::string tool = FindProgram("getsubids");
  found.tool_exists = !tool.empty();
  if (!found.tool_exists) return found;
  auto uids = TRY(OutputOf({tool, user}, "uids"));
  found.uids = std::move(uids);
  auto gids = TRY(OutputOf({tool, "-g", user}, "gids"));
  found.gids = std::move(gids);
  return found;
}

}  // namespace waybill::cli
