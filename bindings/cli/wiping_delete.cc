// Every block of memory that this program frees is overwritten first. It reads Secrets, and copies
// of them stay in blocks that nothing else wipes: the text in which the JSON parser collects a
// token, buffers that grew.

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <new>

void* operator new(std::size_t size) {
  for (;;) {
    if (void* const block = ::malloc(size == 0 ? 1 : size)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  ::explicit_bzero(block, ::malloc_usable_size(block));
  ::free(block);
}

void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
