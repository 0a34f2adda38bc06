// Turns an exception into an error before it leaves the library.

#ifndef WAYBILL_STORE_BASE_CAUGHT_H_
#define WAYBILL_STORE_BASE_CAUGHT_H_

#include "waybill/result.h"

namespace waybill::internal {

// For `catch (...)`: the current exception as an Error. kOutOfMemory, which itself takes
// no memory; kInternal for what is neither that nor the system's.
Error Caught() noexcept;

// Runs `work`, which returns a Result; no exception leaves it.
template <typename Work>
auto Guarded(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return Caught();
  }
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_CAUGHT_H_
