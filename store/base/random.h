// Random bytes of the kernel's.

#ifndef WAYBILL_STORE_BASE_RANDOM_H_
#define WAYBILL_STORE_BASE_RANDOM_H_

#include <cstddef>

namespace waybill::internal {

// At most 256 bytes. False: the kernel gave none. Not libcrypto's, which allocates at its first
// use, and crashes if that fails.
bool Randomise(void* bytes, std::size_t count);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_RANDOM_H_
