// Random choices for property tests, repeatable from a printed seed.

#ifndef WAYBILL_TESTS_SUPPORT_DRAW_H_
#define WAYBILL_TESTS_SUPPORT_DRAW_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

namespace waybill::testing {

// A whole number from the environment.
inline std::uint64_t NumberFromEnv(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// WAYBILL_SEED, or a random one. Printed, so that a failure can be played again.
inline std::uint64_t SeedOfThisRun() {
  const std::uint64_t seed = NumberFromEnv("WAYBILL_SEED", std::random_device{}());
  std::cerr << "play again with WAYBILL_SEED=" << seed << '\n';
  return seed;
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
  // One of `choices`, each as often as its weight says.
  template <typename T>
  const T& Weighted(const std::vector<std::pair<std::size_t, T>>& choices) {
    std::size_t total = 0;
    for (const auto& [weight, choice] : choices) total += weight;
    std::size_t at = Below(total);
    auto chosen = choices.begin();
    for (; at >= chosen->first; ++chosen) at -= chosen->first;
    return chosen->second;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_DRAW_H_
