#include "bindings/cli/getsubids.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "store/base/try.h"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace waybill::cli {
namespace {

Error Failed(std::string message, std::string hint) {
  return {ErrorCode::kIo, std::move(message), std::move(hint)};
}

// Empty: it is not installed. Relative directories of PATH are not the node's.
std::string PathOfTool(std::string_view name) {
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    std::string file = fmt::format("{}/{}", path.substr(0, end), name);
    path.remove_prefix(std::min(end + 1, path.size()));
    struct stat status = {};
    if (file[0] != '/' || ::stat(file.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

// A program with its standard output in a pipe; its standard input and error are /dev/null.
class Child {
 public:
  ~Child() {
    CloseOutput();
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      (void)Wait();
    }
  }

  // 0, or an errno.
  int Start(std::vector<std::string> arguments) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    output_ = ends[0];
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = ::posix_spawn_file_actions_init(&actions);
    if (error == 0) {
      error = ::posix_spawnattr_init(&attributes);
      if (error == 0) {
        error = Spawn(pointers.data(), ends[1], actions, attributes);
        ::posix_spawnattr_destroy(&attributes);
      }
      ::posix_spawn_file_actions_destroy(&actions);
    }
    ::close(ends[1]);
    return error;
  }

  // Up to `most` bytes and one more. 0, or an errno.
  int Read(std::size_t most, std::string& out) {
    char buffer[1024];
    while (out.size() <= most) {
      const ssize_t got = ::read(output_, buffer, std::min(sizeof buffer, most + 1 - out.size()));
      if (got == 0) return 0;
      if (got < 0 && errno != EINTR) return errno;
      out.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    return 0;
  }

  // The status as waitpid has it.
  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  int Spawn(char** arguments, int output, posix_spawn_file_actions_t& actions,
            posix_spawnattr_t& attributes) {
    // This process ignores SIGPIPE, which the child would inherit.
    sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    const int errors[] = {
        ::posix_spawnattr_setsigdefault(&attributes, &defaults),
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF),
        ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0),
        ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO),
        ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)};
    for (const int error : errors) {
      if (error != 0) return error;
    }
    return ::posix_spawn(&pid_, arguments[0], &actions, &attributes, arguments, environ);
  }

  void CloseOutput() {
    if (output_ >= 0) ::close(output_);
    output_ = -1;
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

struct Ended {
  std::string output;
  int status = 0;  // as waitpid has it
};

// Runs a program. The error says why it could not be run to its end.
tl::expected<Ended, std::string> RunTool(std::vector<std::string> arguments) {
  Child child;
  Ended ended;
  if (const int error = child.Start(std::move(arguments)); error != 0) {
    return tl::unexpected<std::string>(::strerror(error));
  }
  if (const int error = child.Read(kMaxSubordinateIdBytes, ended.output); error != 0) {
    return tl::unexpected<std::string>(::strerror(error));
  }
  if (ended.output.size() > kMaxSubordinateIdBytes) {
    return tl::unexpected(fmt::format("it printed more than {} bytes", kMaxSubordinateIdBytes));
  }
  ended.status = child.Wait();
  if (WIFSIGNALED(ended.status)) {
    return tl::unexpected(fmt::format("signal {}", WTERMSIG(ended.status)));
  }
  return ended;
}

// By getent, since a user's name may come from other places than a file, and a program without
// shared libraries can't ask those. Without getent by /etc/passwd.
Result<bool> UserExists(const std::string& user) {
  const auto failed = [&](std::string_view why) {
    return Failed(fmt::format("cannot look up the user {}: {}", user, why),
                  "or say what the pool is with --pool FIRST:COUNT");
  };
  if (const std::string getent = PathOfTool("getent"); !getent.empty()) {
    constexpr int kNotFound = 2;
    const auto ended = RunTool({getent, "passwd", user});
    if (!ended) return failed("getent: " + ended.error());
    const int status = WEXITSTATUS(ended->status);
    if (status == 0 || status == kNotFound) return status == 0;
    return failed(fmt::format("getent ends with exit status {}", status));
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
  auto ended = RunTool(std::move(arguments));
  if (!ended) return failed(ended.error());
  if (const int status = WEXITSTATUS(ended->status); status != 0) {
    return failed(fmt::format("exit status {}", status));
  }
  return std::move(ended->output);
}

}  // namespace

Result<SubordinateIds> FindSubordinateIds(const std::string& user) {
  SubordinateIds found;
  found.user_exists = TRY(UserExists(user));
  if (!found.user_exists) return found;
  const std::string tool = PathOfTool("getsubids");
  found.tool_exists = !tool.empty();
  if (!found.tool_exists) return found;
  auto uids = TRY(OutputOf({tool, user}, "uids"));
  found.uids = std::move(uids);
  auto gids = TRY(OutputOf({tool, "-g", user}, "gids"));
  found.gids = std::move(gids);
  return found;
}

}  // namespace waybill::cli
