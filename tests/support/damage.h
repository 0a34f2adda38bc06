// Damage to the bytes of a database.

#ifndef WAYBILL_TESTS_SUPPORT_DAMAGE_H_
#define WAYBILL_TESTS_SUPPORT_DAMAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::testing {

inline constexpr std::size_t kPage = 4096;

// WAYBILL_TEST_FULL: nothing is left out.
inline bool Thorough() { return std::getenv("WAYBILL_TEST_FULL") != nullptr; }

// Bit 0 is the lowest of the first byte.
inline void FlipBit(std::string& bytes, std::size_t bit) {
  char& byte = bytes[bit / 8];
  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
}

inline std::vector<std::size_t> PlacesOf(const std::string& bytes, std::string_view what) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; (at = bytes.find(what, at)) != std::string::npos; ++at) {
    places.push_back(at);
  }
  return places;
}

// With `renumber` the page numbers are made right again: as if two child pointers had been swapped.
inline void SwapPages(std::string& bytes, std::size_t a, std::size_t b, bool renumber) {
  const auto at = [&](std::size_t page) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(page * kPage);
  };
  std::swap_ranges(at(a), at(a) + kPage, at(b));
  if (renumber) std::swap_ranges(at(a), at(a) + 8, at(b));
}

// Nothing happens where the older file is too short.
inline void PutPageBack(std::string& bytes, const std::string& older, std::size_t page) {
  const std::size_t at = page * kPage;
  if (at + kPage <= older.size()) bytes.replace(at, kPage, older, at, kPage);
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_DAMAGE_H_
