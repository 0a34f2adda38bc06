#include "store/database/credential_index.h"

#include <flatbuffers/flatbuffers.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "schema/v6/pulled_record_generated.h"
#include "schema/v6/revocation_generated.h"
#include "store/base/hex.h"
#include "store/database/flatbuffer.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

namespace v1 = schema::v1;
namespace v6 = schema::v6;

std::uint64_t Hash(const void* data, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}
std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  return Hash(text.data(), text.size(), seed);
}

void PutHalf(std::uint64_t value, std::byte* out) {
  for (int i = 7; i >= 0; --i, value >>= 8) out[i] = static_cast<std::byte>(value & 0xff);
}
void PutQuarter(std::uint64_t value, std::byte* out) {
  for (int i = 3; i >= 0; --i, value >>= 8) out[i] = static_cast<std::byte>(value & 0xff);
}

std::uint64_t SeedOf(RevocationKind kind, std::uint64_t seed) {
  return seed + static_cast<std::uint64_t>(kind);
}

// A UID or a hash: its bytes where it is stored as such, else its text.
template <typename RawBytes>
std::uint64_t HashOf(const RawBytes* raw, const flatbuffers::String* text, std::uint64_t seed) {
  if (raw != nullptr) return Hash(raw->bytes()->data(), raw->bytes()->size(), seed);
  return Hash(Text(text), ~seed);
}

std::uint64_t RecordSeed(const Key16& record, std::uint64_t seed) {
  return Hash(record.bytes.data(), record.bytes.size(), seed);
}

template <typename T>
Key16 KeyOfName(RevocationKind kind, const T& stored, const Key16& record, std::uint64_t seed) {
  Key16 key = FirstUseKeyOfName(kind, Text(stored.namespace_name()), Text(stored.name()), seed);
  PutHalf(HashOf(stored.uid_raw(), stored.uid_text(), RecordSeed(record, seed)),
          key.bytes.data() + kCoordinateKeyBytes);
  return key;
}

template <typename T>
Key16 KeyOfHash(const T& stored, const Key16& record, std::uint64_t seed) {
  Key16 key;
  PutHalf(HashOf(stored.hash_raw(), stored.hash_text(), SeedOf(RevocationKind::kCredential, seed)),
          key.bytes.data());
  PutHalf(RecordSeed(record, seed), key.bytes.data() + kHashKeyBytes);
  return key;
}

template <typename T>
bool HasHash(const T& stored) {
  return stored.hash_raw() != nullptr || !Text(stored.hash_text()).empty();
}

// Calls `visit` with the key of each row, its kind and a Secret or service account that needs it.
template <typename Visit>
void ForEachUse(std::span<const std::uint8_t> payload, const Key16& record, std::uint64_t seed,
                const Visit& visit) {
  for (const v6::Entry* entry :
       *flatbuffers::GetRoot<v6::PulledRecord>(payload.data())->entries()) {
    if (entry->secrets() != nullptr) {
      for (const v6::Secret* secret : *entry->secrets()) {
        visit(KeyOfName(RevocationKind::kSecret, *secret, record, seed), RevocationKind::kSecret,
              *secret);
        if (!HasHash(*secret)) continue;
        visit(KeyOfHash(*secret, record, seed), RevocationKind::kCredential, *secret);
      }
    }
    if (entry->service_accounts() == nullptr) continue;
    for (const v6::ServiceAccount* account : *entry->service_accounts()) {
      visit(KeyOfName(RevocationKind::kServiceAccount, *account, record, seed),
            RevocationKind::kServiceAccount, *account);
    }
  }
}

template <typename T>
std::vector<std::uint8_t> EncodeUse(RevocationKind kind, const T& stored, const Key16& record) {
  flatbuffers::FlatBufferBuilder builder(256);
  flatbuffers::Offset<flatbuffers::String> namespace_name;
  flatbuffers::Offset<flatbuffers::String> name;
  flatbuffers::Offset<flatbuffers::String> uid_text;
  flatbuffers::Offset<flatbuffers::String> hash_text;
  const v1::Sha256* hash_raw = nullptr;
  const bool is_hash = kind == RevocationKind::kCredential;
  if (!is_hash) {
    namespace_name = builder.CreateString(stored.namespace_name());
    name = builder.CreateString(stored.name());
    if (stored.uid_text() != nullptr) uid_text = builder.CreateString(stored.uid_text());
  } else if constexpr (requires { stored.hash_raw(); }) {
    hash_raw = stored.hash_raw();
    if (stored.hash_text() != nullptr) hash_text = builder.CreateString(stored.hash_text());
  }
  const auto at = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(record.bytes.data()),
                                       record.bytes.size());
  v6::CredentialUseBuilder use(builder);
  use.add_kind(static_cast<std::uint8_t>(kind));
  if (!is_hash) {
    use.add_namespace_name(namespace_name);
    use.add_name(name);
    if (stored.uid_raw() != nullptr) use.add_uid_raw(stored.uid_raw());
    if (!uid_text.IsNull()) use.add_uid_text(uid_text);
  }
  if (hash_raw != nullptr) use.add_hash_raw(hash_raw);
  if (!hash_text.IsNull()) use.add_hash_text(hash_text);
  use.add_record(at);
  return Finish(builder, use.Finish());
}

// nullptr: the FlatBuffer does not verify, is incomplete or above limits.h.
const v6::CredentialUse* ValidUse(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v6::CredentialUse>(payload);
  if (root == nullptr || root->record() == nullptr ||
      root->record()->size() != sizeof(Key16::bytes)) {
    return nullptr;
  }
  switch (static_cast<RevocationKind>(root->kind())) {
    case RevocationKind::kSecret:
    case RevocationKind::kServiceAccount:
      return HasOneUid(*root, kMaxCoordinateBytes) && root->namespace_name() != nullptr &&
                     root->name() != nullptr && Fits(root->namespace_name(), kMaxCoordinateBytes) &&
                     Fits(root->name(), kMaxCoordinateBytes)
                 ? root
                 : nullptr;
    case RevocationKind::kCredential:
      return (root->hash_raw() == nullptr) != (root->hash_text() == nullptr) &&
                     Fits(root->hash_text(), kMaxCoordinateBytes)
                 ? root
                 : nullptr;
    default:
      return nullptr;
  }
}

Key16 RecordOf(const v6::CredentialUse& use) {
  Key16 key;
  std::memcpy(key.bytes.data(), use.record()->data(), key.bytes.size());
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

std::optional<CredentialUse> DecodeCredentialUse(std::span<const std::uint8_t> payload) {
  const auto* root = ValidUse(payload);
  if (root == nullptr) return std::nullopt;
  CredentialUse use;
  use.kind = static_cast<RevocationKind>(root->kind());
  use.record = RecordOf(*root);
  if (use.kind != RevocationKind::kCredential) {
    use.who = {root->namespace_name()->str(), root->name()->str(), UidOf(*root)};
  } else if (root->hash_raw() != nullptr) {
    use.hash = HexEncode({root->hash_raw()->bytes()->data(), 32});
  } else {
    use.hash = root->hash_text()->str();
  }
  return use;
}

std::optional<Key16> KeyOfCredentialUse(std::span<const std::uint8_t> payload, std::uint64_t seed) {
  const auto* root = ValidUse(payload);
  if (root == nullptr) return std::nullopt;
  const auto kind = static_cast<RevocationKind>(root->kind());
  return kind == RevocationKind::kCredential ? KeyOfHash(*root, RecordOf(*root), seed)
                                             : KeyOfName(kind, *root, RecordOf(*root), seed);
}

std::vector<Key16> IndexKeysOf(std::span<const std::uint8_t> payload, const Key16& record,
                               std::uint64_t seed) {
  std::vector<Key16> keys;
  ForEachUse(payload, record, seed,
             [&](const Key16& key, RevocationKind, const auto&) { keys.push_back(key); });
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<IndexRow> IndexRowsOf(std::span<const std::uint8_t> payload, const Key16& record,
                                  std::uint64_t seed) {
  std::vector<IndexRow> rows;
  ForEachUse(payload, record, seed, [&](const Key16& key, RevocationKind kind, const auto& stored) {
    rows.push_back({key, EncodeUse(kind, stored, record)});
  });
  const auto by_key = [](const IndexRow& a, const IndexRow& b) { return a.key < b.key; };
  std::stable_sort(rows.begin(), rows.end(), by_key);
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const IndexRow& a, const IndexRow& b) { return a.key == b.key; }),
             rows.end());
  return rows;
}

}  // namespace waybill::internal
