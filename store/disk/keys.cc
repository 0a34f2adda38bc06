#include "store/disk/keys.h"

// The streaming state is on the stack, so its layout must match the code that uses it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "store/disk/tables.h"

namespace waybill::internal {

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
