// The same work in several threads, which begin together; whether a thread sleeps.

#ifndef WAYBILL_TESTS_SUPPORT_IN_THREADS_H_
#define WAYBILL_TESTS_SUPPORT_IN_THREADS_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace waybill::testing {

// How many of them threw; what they threw is on stderr.
inline std::size_t InThreads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::latch start(static_cast<std::ptrdiff_t>(count));
  std::atomic<std::size_t> failed{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        work(i);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "thread %zu: %s\n", i, error.what());
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed;
}

// Whether a thread of this process sleeps.
inline bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(") ");
  return name_ends != std::string::npos && text[name_ends + 2] == 'S';
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_IN_THREADS_H_
