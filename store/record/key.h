// The 16-byte keys of every table.
//
//   pulled-records-1   XXH3-128 of the image ref
//   pull-intents---1   8 bytes XXH3-64 of the repository, 8 bytes XXH3-64 of the image string:
//   intents
//                      of one repository lie side by side, so that rule 3 is one seek
//   quarantine-----1   XXH3-128 of kind (1 byte) and SHA-256 (32 bytes)
//   observed-preload   XXH3-128 of the image ref
//   imported-files-1   XXH3-128 of the path below image_manager/
//   main table         a fixed name of 16 bytes
//
// All hashes are seeded with Identity.hash_seed and written big-endian, as XXH128_canonical does.

#ifndef WAYBILL_STORE_RECORD_KEY_H_
#define WAYBILL_STORE_RECORD_KEY_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "waybill/types.h"

namespace waybill::internal {

struct Key16 {
  std::array<std::byte, 16> bytes{};

  std::span<const std::byte> span() const { return bytes; }
  // nullopt-free: the caller has checked that `from` holds 16 bytes.
  static Key16 From(std::span<const std::byte> from);
  static constexpr Key16 OfName(std::string_view name) {
    Key16 key;
    for (std::size_t i = 0; i < key.bytes.size() && i < name.size(); ++i) {
      key.bytes[i] = static_cast<std::byte>(name[i]);
    }
    return key;
  }
  friend auto operator<=>(const Key16&, const Key16&) = default;
};
static_assert(sizeof(Key16) == 16);

Key16 HashKey(std::string_view identity, std::uint64_t seed);
Key16 QuarantineKey(QuarantineKind kind, std::span<const std::uint8_t, 32> sha256,
                    std::uint64_t seed);

// Of an intent. Allocates nothing for images within limits.h; longer ones must not come here.
Key16 IntentKey(std::string_view image, std::uint64_t seed);
// The first key that an intent of the same repository can have; its first 8 bytes are common to
// all.
Key16 FirstIntentKeyOfRepository(std::string_view image, std::uint64_t seed);
bool SameRepositoryPrefix(std::span<const std::byte> key, const Key16& first);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECORD_KEY_H_
