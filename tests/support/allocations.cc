#include "tests/support/allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

// The other forms of new and delete call these, but for the over-aligned. AddressSanitizer has
// forms of its own that don't, so the one whose memory comes back to a delete from here is here,
// too.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace waybill::testing {

std::size_t AllocationsOfThread() { return allocations; }

}  // namespace waybill::testing
