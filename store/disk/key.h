// The 16-byte keys of every table.
// A table says how its keys are made (store/disk/keys.h). Those of the header's records, in the main
// table, are fixed names of 16 bytes.
//
// All hashes are seeded with Identity.hash_seed and written big-endian, as XXH128_canonical does.

#ifndef WAYBILL_STORE_DISK_KEY_H_
#define WAYBILL_STORE_DISK_KEY_H_

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace waybill::internal {

struct Key16 {
  std::array<std::byte, 16> bytes{};

  std::span<const std::byte> span() const { return bytes; }
  static Key16 From(std::span<const std::byte, 16> from);
  static constexpr Key16 OfName(std::string_view name) {
    Key16 key;
    for (std::size_t i = 0; i < key.bytes.size() && i < name.size(); ++i) {
      key.bytes[i] = static_cast<std::byte>(name[i]);
    }
    return key;
  }
  static constexpr Key16 Last() {
    Key16 key;
    key.bytes.fill(std::byte{0xff});
    return key;
  }
  // The next key in LMDB's order. The last one's is the first.
  Key16 Next() const;
  friend auto operator<=>(const Key16&, const Key16&) = default;
};
static_assert(sizeof(Key16) == 16);

Key16 HashKey(std::string_view identity, std::uint64_t seed);

inline void PutBigEndian(std::uint64_t value, std::byte* out) {
  static_assert(std::endian::native == std::endian::little);
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof(value));
}
}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_KEY_H_
