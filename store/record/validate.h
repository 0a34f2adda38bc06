// Whether a stored value is all that it should be: what opening and `verify` ask of each.

#ifndef WAYBILL_STORE_RECORD_VALIDATE_H_
#define WAYBILL_STORE_RECORD_VALIDATE_H_

#include <cstdint>

#include "store/record/store_txn.h"
#include "store/record/tables.h"

namespace waybill::internal {

// `payload` came out of a sound envelope under `key`. True where it is a FlatBuffer of the table's
// record, complete, and its identity hashes to `key`. After that, readers may take its offsets as
// they are.
bool PayloadIsSound(Table table, const Key16& key, Payload payload, std::uint64_t seed);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECORD_VALIDATE_H_
