#include "bindings/cli/run_program.h"

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
#include <utility>

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace waybill::cli {
namespace {

// A program with its standard output in a pipe; its standard input is /dev/null.
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
  int Start(std::vector<std::string> arguments, bool errors_too) {
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
        error = Spawn(pointers.data(), ends[1], errors_too, actions, attributes);
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
  int Spawn(char** arguments, int output, bool errors_too, posix_spawn_file_actions_t& actions,
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
        errors_too ? ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
                   : ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                                        O_WRONLY, 0)};
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

}  // namespace

std::string FindProgram(std::string_view name) {
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

tl::expected<Ended, std::string> RunProgram(std::vector<std::string> arguments,
                                            const RunProgramOptions& options) {
  Child child;
  Ended ended;
  if (const int error = child.Start(std::move(arguments), options.errors_too); error != 0) {
    return tl::unexpected<std::string>(::strerror(error));
  }
  if (const int error = child.Read(options.max_bytes, ended.output); error != 0) {
    return tl::unexpected<std::string>(::strerror(error));
  }
  if (ended.output.size() > options.max_bytes) {
    return tl::unexpected(fmt::format("it printed more than {} bytes", options.max_bytes));
  }
  const int status = child.Wait();
  if (WIFSIGNALED(status)) return tl::unexpected(fmt::format("signal {}", WTERMSIG(status)));
  ended.status = WEXITSTATUS(status);
  return ended;
}

}  // namespace waybill::cli
