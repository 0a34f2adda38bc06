// Which records mention a Secret, a service account or a hash (table "credential-index",
// schema/v6/revocation.fbs). StoreTxn keeps it with each write of a record. It only says where to
// look: a record that it names wrongly is looked at in vain, and opening rebuilds it if it has not
// as many rows as the records need (Inspection).
//
//   key of a Secret or service account   4 bytes of XXH3-64(namespace), 4 of XXH3-64(name), seeded
//                                        by the kind, and XXH3-64(UID), seeded by the record's key
//   key of a hash                        XXH3-64(hash), and XXH3-64(record's key)
//
// So those of a namespace, of a name in it, and of a hash lie side by side.

#ifndef WAYBILL_STORE_DATABASE_CREDENTIAL_INDEX_H_
#define WAYBILL_STORE_DATABASE_CREDENTIAL_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/key.h"
#include "waybill/revocation.h"

namespace waybill::internal {

// How many bytes the keys of a namespace share, and those of a name in it, and those of a hash.
inline constexpr std::size_t kNamespaceKeyBytes = 4;
inline constexpr std::size_t kCoordinateKeyBytes = 8;
inline constexpr std::size_t kHashKeyBytes = 8;

// The first bytes of keys; the rest is 0. `kind` is kSecret or kServiceAccount.
Key16 FirstUseKeyOfNamespace(std::string_view namespace_name, std::uint64_t seed);
Key16 FirstUseKeyOfName(RevocationKind kind, std::string_view namespace_name, std::string_view name,
                        std::uint64_t seed);
Key16 FirstUseKeyOfHash(std::string_view hash, std::uint64_t seed);

// A row.
struct CredentialUse {
  RevocationKind kind = RevocationKind::kSecret;  // or kServiceAccount, kCredential
  CredentialName who;
  std::string hash;
  Key16 record;
};
// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<CredentialUse> DecodeCredentialUse(std::span<const std::uint8_t> payload);

// A row that a record needs.
struct IndexRow {
  Key16 key;
  std::vector<std::uint8_t> payload;
};
// The rows of a record, by key. `payload` is sound and decodes.
std::vector<IndexRow> IndexRowsOf(std::span<const std::uint8_t> payload, const Key16& record,
                                  std::uint64_t seed);
// The same, without payloads.
std::vector<Key16> IndexKeysOf(std::span<const std::uint8_t> payload, const Key16& record,
                               std::uint64_t seed);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_CREDENTIAL_INDEX_H_
