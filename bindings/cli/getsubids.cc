#include "bindings/cli/getsubids.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/try.h"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace waybill::cli {
namespace {

Error Failed(std::string message, std::string hint) {
  return {ErrorCode::kIo, std::move(message), std::move(hint)};
}

Result<bool> UserExists(const std::string& user) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  for (std::vector<char> buffer(4096);; buffer.resize(buffer.size() * 4)) {
    struct passwd entry = {};
    struct passwd* found = nullptr;
    const int error = ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error == 0 || error == ENOENT) return found != nullptr;
    if (error == EINTR) continue;
    if (error == ERANGE && buffer.size() < kMostBytes) continue;
    return Failed(fmt::format("cannot look up the user {}: {}", user, ::strerror(error)),
                  "or say what the pool is with --pool FIRST:COUNT");
  }
}

// Empty: it is not installed. Relative directories of PATH are not the node's.
std::string PathOfTool() {
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    std::string file = std::string(path.substr(0, end)) + "/getsubids";
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
  Child child;
  std::string out;
  if (const int error = child.Start(std::move(arguments)); error != 0) {
    return failed(::strerror(error));
  }
  if (const int error = child.Read(kMaxSubordinateIdBytes, out); error != 0) {
    return failed(::strerror(error));
  }
  if (out.size() > kMaxSubordinateIdBytes) {
    return failed(fmt::format("it printed more than {} bytes", kMaxSubordinateIdBytes));
  }
  const int status = child.Wait();
  if (WIFSIGNALED(status)) return failed(fmt::format("signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return failed(fmt::format("exit status {}", WEXITSTATUS(status)));
  return out;
}

}  // namespace

Result<SubordinateIds> FindSubordinateIds(const std::string& user) {
  SubordinateIds found;
  found.user_exists = TRY(UserExists(user));
  if (!found.user_exists) return found;
  const std::string tool = PathOfTool();
  found.tool_exists = !tool.empty();
  if (!found.tool_exists) return found;
  auto uids = TRY(OutputOf({tool, user}, "uids"));
  found.uids = std::move(uids);
  auto gids = TRY(OutputOf({tool, "-g", user}, "gids"));
  found.gids = std::move(gids);
  return found;
}

}  // namespace waybill::cli
