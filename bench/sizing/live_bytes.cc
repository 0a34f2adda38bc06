#include "bench/sizing/live_bytes.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t live = 0;

// The allocator keeps one word before each block.
std::int64_t SizeOf(void* memory) {
  return static_cast<std::int64_t>(malloc_usable_size(memory) + sizeof(void*));
}

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr) live += SizeOf(memory);
  return memory;
}
void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) live -= SizeOf(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace waybill::bench {

std::int64_t LiveHeapBytes() { return live; }

}  // namespace waybill::bench
