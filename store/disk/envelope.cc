#include "store/disk/envelope.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cassert>
#include <cstring>

#include "waybill/limits.h"

namespace waybill::internal {

static_assert(std::endian::native == std::endian::little,
              "the envelope is written in host order; add byte swaps for this host");

namespace {

struct Head {
  std::uint8_t format;
  std::uint8_t kind;
  std::uint16_t version;
  std::uint32_t length;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Head) == kEnvelopeBytes);
static_assert(offsetof(Head, version) == 2 && offsetof(Head, length) == 4 &&
              offsetof(Head, checksum) == 8);

std::size_t Padded(std::size_t length) { return (length + 7) & ~std::size_t{7}; }

}  // namespace

std::uint64_t StoredChecksum(Value value) {
  std::uint64_t checksum;
  std::memcpy(&checksum, value.data() + offsetof(Head, checksum), sizeof(checksum));
  return checksum;
}

std::uint64_t ComputedChecksum(const Key16& key, Value value) {
  std::byte covered[16 + 8 + 8];
  std::memcpy(covered, key.bytes.data(), 16);
  std::memcpy(covered + 16, value.data(), 8);
  const std::uint64_t body =
      XXH3_64bits(value.data() + kEnvelopeBytes, value.size() - kEnvelopeBytes);
  std::memcpy(covered + 24, &body, sizeof(body));
  return XXH3_64bits(covered, sizeof(covered));
}

std::vector<std::byte> Seal(const Key16& key, RecordKind kind, std::uint16_t version,
                            std::span<const std::uint8_t> payload) {
  std::vector<std::byte> value(kEnvelopeBytes + Padded(payload.size()));
  Head head{kEnvelopeFormat, static_cast<std::uint8_t>(kind), version,
            static_cast<std::uint32_t>(payload.size()), 0};
  std::memcpy(value.data(), &head, sizeof(head));
  std::memcpy(value.data() + kEnvelopeBytes, payload.data(), payload.size());
  head.checksum = ComputedChecksum(key, value);
  std::memcpy(value.data(), &head, sizeof(head));
  assert(OpenEnvelope(key, value, kind, version).state == EnvelopeState::kSound);
  return value;
}

Opened OpenEnvelope(const Key16& key, Value value, RecordKind kind, std::uint16_t newest_version) {
  if (value.size() < kEnvelopeBytes || value.size() % 8 != 0) return {};
  Head head{};
  std::memcpy(&head, value.data(), sizeof(head));
  if (head.length > kMaxValueBytes) return {};
  if (Padded(head.length) != value.size() - kEnvelopeBytes) return {};
  if (head.checksum != ComputedChecksum(key, value)) return {};
  if (head.format != kEnvelopeFormat || head.version > newest_version) {
    return {EnvelopeState::kNewer, {}};
  }
  if (head.kind != static_cast<std::uint8_t>(kind) || head.version == 0) return {};
  return {EnvelopeState::kSound,
          {reinterpret_cast<const std::uint8_t*>(value.data()) + kEnvelopeBytes, head.length}};
}

}  // namespace waybill::internal
