#include "bindings/cli/getsubids.h"

#include <fmt/core.h>

#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/run_program.h"
#include "store/base/try.h"

namespace waybill::cli {
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
