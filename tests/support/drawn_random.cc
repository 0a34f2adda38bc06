#include "tests/support/drawn_random.h"

#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <random>

namespace waybill::testing {

namespace {

std::mutex mutex;  // guards what follows
std::optional<std::mt19937_64> generator;

}  // namespace

DrawnRandom::DrawnRandom(std::uint64_t seed) {
  const std::lock_guard lock(mutex);
  generator.emplace(seed);
}

DrawnRandom::~DrawnRandom() {
  const std::lock_guard lock(mutex);
  generator.reset();
}

}  // namespace waybill::testing

// Takes the place of libc's.
extern "C" ssize_t getrandom(void* bytes, std::size_t count, unsigned int flags) {
  {
    const std::lock_guard lock(waybill::testing::mutex);
    if (auto& generator = waybill::testing::generator) {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>((*generator)());
      }
      return static_cast<ssize_t>(count);
    }
  }
  return syscall(SYS_getrandom, bytes, count, flags);
}
