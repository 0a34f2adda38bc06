#include "store/disk/key.h"

// The streaming state is on the stack, so its layout must match the code that uses it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/disk/tables.h"

namespace waybill::internal {

Key16 Key16::From(std::span<const std::byte, 16> from) {
  Key16 key;
  std::memcpy(key.bytes.data(), from.data(), key.bytes.size());
  return key;
}

Key16 Key16::Next() const {
  Key16 next = *this;
  for (auto at = next.bytes.rbegin(); at != next.bytes.rend(); ++at) {
    *at = static_cast<std::byte>(std::to_integer<unsigned>(*at) + 1);
    if (*at != std::byte{0}) break;
  }
  return next;
}

Key16 HashKey(std::string_view identity, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(identity.data(), identity.size(), seed);
  Key16 key;
  PutBigEndian(hash.high64, key.bytes.data());
  PutBigEndian(hash.low64, key.bytes.data() + 8);
  return key;
}

Key16 QuarantineKey(QuarantineKind kind, std::span<const std::uint8_t, 32> sha256,
                    std::uint64_t seed) {
  char identity[33];
  identity[0] = static_cast<char>(kind);
  std::memcpy(identity + 1, sha256.data(), sha256.size());
  return HashKey({identity, sizeof(identity)}, seed);
}

Key16 IntentKey(std::string_view image, PullId pull, std::uint64_t seed) {
  Key16 key;
  PutBigEndian(~pull.value, key.bytes.data());
  key.bytes[0] |= kPullBit;
  PutBigEndian(XXH3_64bits_withSeed(image.data(), image.size(), seed), key.bytes.data() + 8);
  return key;
}

}  // namespace waybill::internal
