// Image strings: no crash; the name is a prefix and parses to itself; the decision path's idea of a
// repository is the public one; the spellings of a ref have one spelling; a pull may give what it
// asked for.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view image(reinterpret_cast<const char*>(data), size);
  if (const auto name = waybill::ImageName(image)) {
    if (!image.starts_with(*name) || waybill::ImageName(*name) != name) std::abort();
  }
  // A decision compares parts without copying: same result as comparing the public strings.
  const std::string_view a = image.substr(0, image.find('\n'));
  const std::string_view b = a.size() < size ? image.substr(a.size() + 1) : a;
  const bool same = waybill::RepositoryOf(a) == waybill::RepositoryOf(b);
  using waybill::internal::RepositoryPartsOf;
  if ((RepositoryPartsOf(a) == RepositoryPartsOf(b)) != same) std::abort();
  namespace internal = waybill::internal;
  const std::string spelling = internal::SpellingOf(a);
  for (const std::string& plain : internal::PlainSpellings(a)) {
    if (internal::SpellingOf(plain) != spelling) std::abort();
  }
  const internal::NamedImage named = internal::ReadName(a);
  if (named.parses && !internal::CouldGive(named, named)) std::abort();
  const auto full = waybill::NormaliseImage(a);
  if (full && waybill::RepositoryOf(*full) != waybill::RepositoryOf(a)) std::abort();
  return 0;
}
