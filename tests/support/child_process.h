// Parts of a test that must happen in another process: LMDB does not survive two environments on
// one store in the same process.

#ifndef WAYBILL_TESTS_SUPPORT_CHILD_PROCESS_H_
#define WAYBILL_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace waybill::testing {

// A child that answers each line with a line: `serve` gets one and returns the other. Destroying
// the object ends it.
class ChildProcess {
 public:
  // `begin` runs in the child and makes `serve`.
  using Serve = std::function<std::string(const std::string&)>;
  explicit ChildProcess(const std::function<Serve()>& begin) {
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    signal(SIGPIPE, SIG_IGN);  // a child that died is an answer
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      close(down[1]);
      close(up[0]);
      Run(begin, down[0], up[1]);
      _exit(0);
    }
    close(down[0]);
    close(up[1]);
    down_ = down[1];
    up_ = up[0];
  }
  ~ChildProcess() { Wait(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // "died": the child is gone.
  std::string Ask(const std::string& line) {
    const std::string sent = line + "\n";
    if (write(down_, sent.data(), sent.size()) != static_cast<ssize_t>(sent.size())) return "died";
    return ReadLine(up_).value_or("died");
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Wait();
  }
  // Lets it end.
  void Wait() {
    if (pid_ <= 0) return;
    // Closing the pipe is not enough: a later child holds it, too.
    const std::string sent = std::string(kQuit) + "\n";
    static_cast<void>(!write(down_, sent.data(), sent.size()));
    close(down_);
    close(up_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

 private:
  static constexpr const char* kQuit = "quit";

  static std::optional<std::string> ReadLine(int fd) {
    std::string line;
    char c = 0;
    while (read(fd, &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return std::nullopt;
  }

  static void Run(const std::function<Serve()>& begin, int in, int out) {
    Serve serve;
    std::string failure;
    try {
      serve = begin();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    for (auto line = ReadLine(in); line && *line != kQuit; line = ReadLine(in)) {
      std::string answer = failure;
      try {
        if (failure.empty()) answer = serve(*line);
      } catch (const std::exception& error) {
        answer = error.what();
      }
      answer += "\n";
      if (write(out, answer.data(), answer.size()) < 0) return;
    }
  }

  pid_t pid_ = -1;
  int down_ = -1;
  int up_ = -1;
};

// Runs `work` in a child. What it returned or threw, or "died".
inline std::string InChild(const std::function<std::string()>& work) {
  ChildProcess child([&] { return [&](const std::string&) { return work(); }; });
  return child.Ask("go");
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_CHILD_PROCESS_H_
