#include "store/node/records/credential_index.h"

#include <flatbuffers/flatbuffers.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "schema/v6/revocation_generated.h"
#include "schema/v8/pulled_record_generated.h"
#include "store/base/hex.h"
#include "store/engine/database/flatbuffer.h"
#include "store/engine/database/tables.h"

namespace waybill::internal {

namespace {

namespace v6 = schema::v6;
namespace v8 = schema::v8;

constexpr std::size_t kHalfKeyBytes = sizeof(Key16) / 2;

std::uint64_t Hash(const void* data, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}
std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  return Hash(text.data(), text.size(), seed);
}

void PutHalf(std::uint64_t value, std::byte* out) {
  for (int i = 7; i >= 0; --i, value >>= 8) out[i] = static_cast<std::byte>(value & 0xff);
}
std::uint64_t GetHalf(const std::byte* in) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | std::to_integer<std::uint64_t>(in[i]);
  return value;
}
void PutQuarter(std::uint64_t value, std::byte* out) {
  for (int i = 3; i >= 0; --i, value >>= 8) out[i] = static_cast<std::byte>(value & 0xff);
}

std::uint64_t SeedOf(RevocationKind kind, std::uint64_t seed) {
  return seed + static_cast<std::uint64_t>(kind);
}

Key16 WithRecord(Key16 key, const Key16& record, std::uint64_t seed) {
  PutHalf(Hash(record.bytes.data(), record.bytes.size(), seed), key.bytes.data() + kHalfKeyBytes);
  return key;
}

template <typename T>
Key16 FirstKeyOfHash(const T& stored, std::uint64_t seed) {
  const std::uint64_t of_hashes = SeedOf(RevocationKind::kCredential, seed);
  const auto* raw = stored.hash_raw();
  Key16 key;
  PutHalf(raw != nullptr ? Hash(raw->bytes()->data(), raw->bytes()->size(), of_hashes)
                         : Hash(Text(stored.hash_text()), ~of_hashes),
          key.bytes.data());
  return key;
}

template <typename T>
bool HasHash(const T& stored) {
  return stored.hash_raw() != nullptr || !Text(stored.hash_text()).empty();
}

const v6::CredentialUse* ValidUse(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v6::CredentialUse>(payload);
  return root == nullptr || root->record() == nullptr ? nullptr : root;
}

Key16 RecordOf(const v6::CredentialUse& use) {
  Key16 key;
  std::memcpy(key.bytes.data(), use.record()->bytes()->data(), key.bytes.size());
  return key;
}

}  // namespace

Key16 FirstUseKeyOfNamespace(std::string_view namespace_name, std::uint64_t seed) {
  Key16 key;
  PutQuarter(Hash(namespace_name, seed), key.bytes.data());
  return key;
}

Key16 FirstUseKeyOfName(RevocationKind kind, std::string_view namespace_name, std::string_view name,
                        std::uint64_t seed) {
  Key16 key = FirstUseKeyOfNamespace(namespace_name, seed);
  PutQuarter(Hash(name, SeedOf(kind, seed)), key.bytes.data() + kNamespaceKeyBytes);
  return key;
}

Key16 FirstUseKeyOfHash(std::string_view hash, std::uint64_t seed) {
  Key16 key;
  const std::uint64_t of_hashes = SeedOf(RevocationKind::kCredential, seed);
  std::array<std::uint8_t, 32> raw{};
  PutHalf(HexDecode(hash, raw) ? Hash(raw.data(), raw.size(), of_hashes) : Hash(hash, ~of_hashes),
          key.bytes.data());
  return key;
}

std::vector<std::uint8_t> EncodeCredentialUse(const Key16& row, const Key16& record) {
  flatbuffers::FlatBufferBuilder builder(128);
  std::array<std::uint8_t, sizeof(Key16)> bytes{};
  std::memcpy(bytes.data(), record.bytes.data(), bytes.size());
  const v6::RecordKey key(bytes);
  return Finish(builder, v6::CreateCredentialUse(builder, GetHalf(row.bytes.data()), &key));
}

std::optional<Key16> RecordOfCredentialUse(std::span<const std::uint8_t> payload) {
  const auto* use = ValidUse(payload);
  return use == nullptr ? std::nullopt : std::optional(RecordOf(*use));
}

std::optional<Key16> KeyOfCredentialUse(std::span<const std::uint8_t> payload, std::uint64_t seed) {
  const auto* use = ValidUse(payload);
  if (use == nullptr) return std::nullopt;
  Key16 key;
  PutHalf(use->credential(), key.bytes.data());
  return WithRecord(key, RecordOf(*use), seed);
}

std::vector<Key16> IndexKeysOf(std::span<const std::uint8_t> payload, const Key16& record,
                               std::uint64_t seed) {
  std::vector<Key16> keys;
  const auto add = [&](const Key16& first) { keys.push_back(WithRecord(first, record, seed)); };
  const auto add_name = [&](RevocationKind kind, const auto& stored) {
    add(FirstUseKeyOfName(kind, Text(stored.namespace_name()), Text(stored.name()), seed));
  };
  for (const v8::Entry* entry :
       *flatbuffers::GetRoot<v8::PulledRecord>(payload.data())->entries()) {
    if (entry->secrets() != nullptr) {
      for (const v8::Secret* secret : *entry->secrets()) {
        add_name(RevocationKind::kSecret, *secret);
        if (HasHash(*secret)) add(FirstKeyOfHash(*secret, seed));
      }
    }
    if (entry->service_accounts() == nullptr) continue;
    for (const v8::ServiceAccount* account : *entry->service_accounts()) {
      add_name(RevocationKind::kServiceAccount, *account);
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Keys are hashes already.
std::uint64_t SumOfCredentialUse(const Key16& key, Payload, std::uint64_t) {
  std::uint64_t halves[2];
  std::memcpy(halves, key.bytes.data(), sizeof(halves));
  return (halves[0] ^ 0x9e3779b97f4a7c15) * (halves[1] | 1);
}

std::uint64_t SumOfIndexedRecord(const Key16& key, Payload payload, std::uint64_t seed) {
  std::uint64_t sum = 0;
  for (const Key16& row : IndexKeysOf(payload, key, seed)) sum += SumOfCredentialUse(row, {}, seed);
  return sum;
}

}  // namespace waybill::internal
