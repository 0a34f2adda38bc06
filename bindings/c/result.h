// Results: what comes out of a call and belongs to the caller. One allocation holds the struct that
// the caller sees, and owns the memory of all that it points to:
//
//   OwnedResult<T>   mark | destroy | value: T | memory
//                                     ^ what the caller gets, and passes to waybill_free

#ifndef WAYBILL_BINDINGS_C_RESULT_H_
#define WAYBILL_BINDINGS_C_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bindings/c/waybill.h"

namespace waybill::c {

using Memory = std::pmr::memory_resource;

// Wipes memory before it frees it: it may hold passwords.
class WipingMemory final : public Memory {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const Memory& other) const noexcept override { return this == &other; }
};
Memory* Wiping();

struct alignas(16) ResultHeader {
  std::uint64_t mark;
  void (*destroy)(ResultHeader*);
};
inline constexpr std::uint64_t kResultMark = 0x77617962696c6c01;  // "waybill", 1

template <typename T>
struct OwnedResult {
  explicit OwnedResult(Memory* upstream)
      : header{kResultMark, [](ResultHeader* h) { delete reinterpret_cast<OwnedResult*>(h); }},
        memory(upstream) {}

  ResultHeader header;
  T value{};
  std::pmr::monotonic_buffer_resource memory;
};

// A result, filled by `fill(T&, Memory&)`. Throws std::bad_alloc.
template <typename T, typename Fill>
T* NewResult(const Fill& fill, Memory* upstream = std::pmr::new_delete_resource()) {
  using Owned = OwnedResult<T>;
  static_assert(std::is_standard_layout_v<T> && alignof(T) <= sizeof(ResultHeader));
  auto owned = std::make_unique<Owned>(upstream);
  fill(owned->value, owned->memory);
  return &owned.release()->value;
}

// With a terminating zero that the length does not count.
waybill_string Copy(std::string_view text, Memory& memory);

// An array with `convert(element, memory)` of each element; nullptr for an empty range.
template <typename C, typename Range, typename Convert>
const C* CopyEach(const Range& range, Memory& memory, const Convert& convert) {
  if (range.empty()) return nullptr;
  C* const items = static_cast<C*>(memory.allocate(range.size() * sizeof(C), alignof(C)));
  C* next = items;
  for (const auto& element : range) ::new (next++) C(convert(element, memory));
  return items;
}

template <typename C>
const C* CopyOne(const C& value, Memory& memory) {
  return ::new (memory.allocate(sizeof(C), alignof(C))) C(value);
}

waybill_strings CopyStrings(const std::vector<std::string>& strings, Memory& memory);

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_RESULT_H_
