// Random choices for property tests, repeatable from a printed seed.

#ifndef WAYBILL_TESTS_SUPPORT_DRAW_H_
#define WAYBILL_TESTS_SUPPORT_DRAW_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace waybill::testing {

// A whole number from the environment.
inline std::uint64_t NumberFromEnv(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// WAYBILL_SEED, or one that nobody chose.
inline std::uint64_t SeedOfThisRun() {
  return NumberFromEnv("WAYBILL_SEED", std::random_device{}());
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  // 0 <= result < count.
  std::size_t Below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  template <typename T>
  const T& From(const std::vector<T>& list) {
    return list[Below(list.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_DRAW_H_
