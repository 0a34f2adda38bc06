// Image strings: no crash; the name is a prefix and parses to itself; the decision path's idea of a
// repository is the public one.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/base/repository.h"
#include "waybill/image_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view image(reinterpret_cast<const char*>(data), size);
  if (const auto name = waybill::ImageName(image)) {
    if (!image.starts_with(*name) || waybill::ImageName(*name) != name) std::abort();
  }
  static_cast<void>(waybill::NormaliseImage(image));
  std::string joined;
  for (const auto part : waybill::internal::RepositoryPartsOf(image)) joined += part;
  if (joined != waybill::RepositoryOf(image)) std::abort();
  return 0;
}
