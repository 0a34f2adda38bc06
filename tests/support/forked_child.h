// A process of the test's own: one that may be killed, that ends with an exit code, and that shares
// memory with the test.

#ifndef WAYBILL_TESTS_SUPPORT_FORKED_CHILD_H_
#define WAYBILL_TESTS_SUPPORT_FORKED_CHILD_H_

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <new>
#include <stdexcept>
#include <type_traits>

namespace waybill::testing {

// Memory that a parent and its children see.
template <typename T>
class Shared {
 public:
  Shared() {
    static_assert(std::is_trivially_destructible_v<T>);
    void* const place =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::runtime_error("mmap failed");
    value_ = new (place) T{};
  }
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

 private:
  T* value_;
};

// Runs `work` in a child, which ends with its result and runs nothing else of this program. This
// process must have no other threads.
class Child {
 public:
  explicit Child(const std::function<int()>& work) {
    std::fflush(nullptr);  // or the child says it, too
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever ends the test ends it, too
      signal(SIGABRT, SIG_DFL);          // Boost.Test would clean up, and report leaks
      _exit(work());
    }
  }
  ~Child() {
    Kill();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Kill() {
    if (pid_ > 0) kill(pid_, SIGKILL);
  }
  // The exit code, or minus the signal.
  int Wait() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_FORKED_CHILD_H_
