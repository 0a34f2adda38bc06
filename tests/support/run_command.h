// Runs a program and captures its output.

#ifndef WAYBILL_TESTS_SUPPORT_RUN_COMMAND_H_
#define WAYBILL_TESTS_SUPPORT_RUN_COMMAND_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace waybill::testing {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal, where one ended it
  std::string out;
  std::string err;
};

// Starts arguments[0] with the rest of `arguments`. Files stand in for the three streams, so that
// no pipe can fill up.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const std::string& input = {}) {
    WriteFile(streams_ / "in", input);
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) throw std::runtime_error("spawn actions");
    const auto redirect = [&](int fd, const std::string& name, int flags) {
      const std::string path = (streams_ / name).string();
      if (posix_spawn_file_actions_addopen(&actions, fd, path.c_str(), flags, 0600) != 0) {
        throw std::runtime_error("cannot redirect " + name);
      }
    };
    redirect(STDIN_FILENO, "in", O_RDONLY);
    redirect(STDOUT_FILENO, "out", O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, "err", O_WRONLY | O_CREAT | O_TRUNC);
    std::vector<std::string> copies = arguments;
    std::vector<char*> pointers;
    for (std::string& copy : copies) pointers.push_back(copy.data());
    pointers.push_back(nullptr);
    const int error = posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  }
  ~RunningCommand() {
    if (pid_ > 0) Wait();
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  pid_t pid() const { return pid_; }
  // What it wrote so far.
  std::string out() const { return ReadFile(streams_ / "out"); }
  std::string err() const { return ReadFile(streams_ / "err"); }
  bool Runs() const {
    siginfo_t info{};
    return pid_ > 0 &&
           waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

  CommandResult Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, ReadFile(streams_ / "out"), ReadFile(streams_ / "err")};
  }

 private:
  TempDir streams_;
  pid_t pid_ = -1;
};

inline CommandResult RunCommand(const std::vector<std::string>& arguments,
                                const std::string& input = {}) {
  return RunningCommand(arguments, input).Wait();
}

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// With `to` wherever `from` stands.
inline std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The `waybill` of this build.
inline CommandResult RunWaybill(std::vector<std::string> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(), WAYBILL_CLI);
  return RunCommand(arguments, input);
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_RUN_COMMAND_H_
