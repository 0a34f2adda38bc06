// Whether a stored value is all that it should be: what opening and `verify` ask of each.

#ifndef WAYBILL_STORE_DATABASE_VALIDATE_H_
#define WAYBILL_STORE_DATABASE_VALIDATE_H_

#include <cstdint>
#include <optional>

#include "store/database/store_txn.h"
#include "store/database/tables.h"

namespace waybill::internal {

// The key that `payload`, out of a sound envelope, belongs under; nullopt where it is no FlatBuffer
// of the table's record, not complete, or above limits.h. Readers may take the offsets of one that
// lies under its key as they are.
std::optional<Key16> KeyOfPayload(Table table, Payload payload, std::uint64_t seed);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_VALIDATE_H_
