// Every stored value, little-endian:
//
//   offset  size
//        0     1  format          1
//        1     1  kind            RecordKind
//        2     2  schema version  of the record, not of the store
//        4     4  length          of the payload, padding not counted
//        8     8  checksum        XXH3-64, see below
//       16     n  payload         a FlatBuffer
//     16+n   0-7  padding         zeros, to a multiple of 8
//
// checksum = XXH3-64( key (16) | envelope's first 8 bytes | XXH3-64(payload and padding) ). So a
// value under another key, or with a changed envelope, does not verify.
//
// Keys of 16 bytes and sizes in multiples of 8 keep every value aligned to 8 bytes, so that
// FlatBuffers can be read in place.

#ifndef WAYBILL_STORE_DISK_ENVELOPE_H_
#define WAYBILL_STORE_DISK_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/disk/key.h"

namespace waybill::internal {

inline constexpr std::uint8_t kEnvelopeFormat = 1;
inline constexpr std::size_t kEnvelopeBytes = 16;

enum class RecordKind : std::uint8_t {
  kIdentity = 1,
  kState = 2,
  kTrustJournal = 3,
  kImage = 4,
  kPullIntent = 5,
  kQuarantine = 6,
  kPreloadedRecord = 7,
  kKubeletFile = 8,
  kRuntimeHandler = 9,
  kHostIds = 10,
  kRevocation = 13,
  kStreamingToken = 14,
};

using Value = std::span<const std::byte>;

// The value for `payload`, ready to store under `key`.
std::vector<std::byte> Seal(const Key16& key, RecordKind kind, std::uint16_t version,
                            std::span<const std::uint8_t> payload);

enum class EnvelopeState : std::uint8_t {
  kSound,
  kDamaged,
  kNewer,  // verifies, but its version is above ours: must be neither read nor lost
};

struct Opened {
  EnvelopeState state = EnvelopeState::kDamaged;
  std::span<const std::uint8_t> payload;
};

// Verifies the value under `key` as a record of `kind`.
Opened OpenEnvelope(const Key16& key, Value value, RecordKind kind, std::uint16_t newest_version);

// The checksum as stored, and as it should be. `value` has at least kEnvelopeBytes.
std::uint64_t StoredChecksum(Value value);
std::uint64_t ComputedChecksum(const Key16& key, Value value);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_ENVELOPE_H_
