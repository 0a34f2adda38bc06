#include "bindings/c/result.h"

#include <openssl/crypto.h>

#include <cstring>

namespace waybill::c {

void* WipingMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  return std::pmr::new_delete_resource()->allocate(bytes, alignment);
}

void WipingMemory::do_deallocate(void* p, std::size_t bytes, std::size_t alignment) {
  OPENSSL_cleanse(p, bytes);
  std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
}

Memory* Wiping() {
  static WipingMemory wiping;
  return &wiping;
}

waybill_string Copy(std::string_view text, Memory& memory) {
  char* const bytes = static_cast<char*>(memory.allocate(text.size() + 1, 1));
  if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
  bytes[text.size()] = '\0';
  return {bytes, text.size()};
}

waybill_strings CopyStrings(const std::vector<std::string>& strings, Memory& memory) {
  return {
      CopyEach<waybill_string>(
          strings, memory, [](const std::string& text, Memory& into) { return Copy(text, into); }),
      strings.size()};
}

}  // namespace waybill::c

waybill_code waybill_free(void* result) {
  if (result == nullptr) return WAYBILL_OK;
  using waybill::c::ResultHeader;
  auto* const header = static_cast<ResultHeader*>(result) - 1;
  if (header->mark != waybill::c::kResultMark) return WAYBILL_INVALID_ARGUMENT;
  // Volatile, since the compiler sees no reader and would drop the write.
  *const_cast<volatile std::uint64_t*>(&header->mark) = 0;
  header->destroy(header);
  return WAYBILL_OK;
}
