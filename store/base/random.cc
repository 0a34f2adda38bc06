#include "store/base/random.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>

namespace waybill::internal {

// getrandom returns so few bytes all at once.
bool Randomise(void* bytes, std::size_t count) {
  ssize_t got = -1;
  do {
    got = getrandom(bytes, count, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(count);
}

}  // namespace waybill::internal
