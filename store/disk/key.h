// The 16-byte keys of every table.
//
//   images---------1   XXH3-128 of the image's subject; for a runtime handler that is not the
//                      default, the last 4 bytes XOR a hash of its name. An image's copies lie side
//                      by side, so "was it pulled for any handler" is one seek
//   quarantine-----1   XXH3-128 of kind (1 byte) and SHA-256 (32 bytes)
//   observed-preload   XXH3-128 of the image ref
//   kubelet-files--1   XXH3-128 of the path below image_manager/
//   runtime-handlers   XXH3-128 of the name
//   revocations----1   XXH3-128 of the kind and three parts, each after its length
//   streaming-tokens   the first 16 bytes of the token's SHA-256. Not hashed: tokens are random
//   host-ids-------1   XXH3-128 of the pod UID
//   main table         a fixed name of 16 bytes; of an open pull its ID, every bit turned, and
//                      XXH3-64 of its image string. The highest bit is set, which names have not
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

#include "waybill/values.h"

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
Key16 QuarantineKey(QuarantineKind kind, std::span<const std::uint8_t, 32> sha256,
                    std::uint64_t seed);
// See AreOfOneImage.
Key16 IntentKey(std::string_view image, PullId pull, std::uint64_t seed);

inline void PutBigEndian(std::uint64_t value, std::byte* out) {
  static_assert(std::endian::native == std::endian::little);
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof(value));
}
}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_KEY_H_
