// Counts the calls of operator new, for tests of functions that promise to allocate nothing.

#ifndef WAYBILL_TESTS_SUPPORT_ALLOCATIONS_H_
#define WAYBILL_TESTS_SUPPORT_ALLOCATIONS_H_

#include <cstddef>

namespace waybill::testing {

// Since the program started, on the calling thread.
std::size_t AllocationsOfThread();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_ALLOCATIONS_H_
