// What the library takes for random bytes of the kernel (store/base/random.h) is drawn from a seed:
// a store's UUID and hash seed, and with that the order of its keys. So a history replays exactly.

#ifndef WAYBILL_TESTS_SUPPORT_DRAWN_RANDOM_H_
#define WAYBILL_TESTS_SUPPORT_DRAWN_RANDOM_H_

#include <cstdint>

namespace waybill::testing {

// One at a time, for as long as it lives, in this process. Not for tests that fork: both processes
// would draw the same bytes.
class DrawnRandom {
 public:
  explicit DrawnRandom(std::uint64_t seed);
  ~DrawnRandom();
  DrawnRandom(const DrawnRandom&) = delete;
  DrawnRandom& operator=(const DrawnRandom&) = delete;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_DRAWN_RANDOM_H_
