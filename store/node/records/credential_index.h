// Which records mention a Secret, a service account or a hash (table "credential-index",
// schema/v6/revocation.fbs). StoreTxn keeps it with each write of a record. It only says where to
// look: a record that it names wrongly is looked at in vain, and opening rebuilds it if it has not
// as many rows as the records need (Inspection).
//
//   first half of the key    of a Secret or service account: 4 bytes of XXH3-64(namespace), then 4
//                            of XXH3-64(name), seeded by the kind; of a hash: XXH3-64(hash)
//   second half              XXH3-64(the record's key)
//
// So those of a namespace, of a name in it, and of a hash lie side by side. Two credentials may
// share a first half: the record says which of them it mentions. The names and hashes are in the
// record only, since rows with them took as much room as the records.

#ifndef WAYBILL_STORE_NODE_RECORDS_CREDENTIAL_INDEX_H_
#define WAYBILL_STORE_NODE_RECORDS_CREDENTIAL_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "store/engine/database/key.h"
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

// The record's key. nullopt: not a FlatBuffer of that table, or a field is missing.
std::optional<Key16> RecordOfCredentialUse(std::span<const std::uint8_t> payload);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_CREDENTIAL_INDEX_H_
