// The 16-byte keys of every table.
//
//   images---------1   XXH3-128 of the image's subject; for another runtime handler than the
//   default,
//                      the last 4 bytes XOR a hash of its name. An image's copies lie side by side,
//                      so "was it pulled for any handler" is one seek
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

#ifndef WAYBILL_STORE_DISK_KEYS_H_
#define WAYBILL_STORE_DISK_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "store/disk/key.h"
#include "waybill/values.h"

namespace waybill::internal {

Key16 QuarantineKey(QuarantineKind kind, std::span<const std::uint8_t, 32> sha256,
                    std::uint64_t seed);

// See AreOfOneImage.
Key16 IntentKey(std::string_view image, PullId pull, std::uint64_t seed);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_KEYS_H_
