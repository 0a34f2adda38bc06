// A database file of any bytes: the inspection before LMDB opens it never crashes.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "store/opening/inspect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const waybill::internal::Fd file(memfd_create("database", MFD_CLOEXEC));
  if (!file.valid()) std::abort();
  if (size > 0 && pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  static_cast<void>(waybill::internal::InspectFile(file));
  return 0;
}
