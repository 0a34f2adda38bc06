// The tables of user namespaces by pod UID: a mapping and the blocks that it occupies come and go
// together.

#ifndef WAYBILL_STORE_DATABASE_USERNS_TABLES_H_
#define WAYBILL_STORE_DATABASE_USERNS_TABLES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "store/database/userns_records.h"
#include "waybill/result.h"

namespace waybill::internal {

// nullopt: none. kDamaged: unreadable. kConflict: the key holds another pod.
Result<std::optional<UsernsMapping>> FindMapping(const StoreTxn& txn, std::string_view pod_uid);
// The pod must have none. Stamped with the commit that is being made. The pod that has one of the
// blocks already, and then nothing was changed; nullopt: it is stored.
Result<std::optional<std::string>> StoreMapping(StoreTxn& txn, std::string_view pod_uid,
                                                HostIdRange range);
// As if it had been stored by the commit that is being made.
Result<void> StampAnew(StoreTxn& txn, UsernsMapping mapping);
// Whether there was one. Of one that can't be read every block that is the pod's goes.
Result<bool> EraseMapping(StoreTxn& txn, std::string_view pod_uid);

// kDamaged: one can't be read.
Result<std::vector<UsernsMapping>> ReadMappings(const StoreTxn& txn);
Result<std::vector<UsernsBlock>> ReadBlocks(const StoreTxn& txn);
Result<std::vector<UsernsHeld>> ReadHeld(const StoreTxn& txn);

// nullopt: not held. kDamaged, kConflict as above.
Result<std::optional<UsernsHeld>> FindHeld(const StoreTxn& txn, std::string_view pod_uid);
// Replaces what is there; stamped as above. Nothing is written where the same is there.
Result<void> StoreHeld(StoreTxn& txn, HeldPod pod);
Result<bool> EraseHeld(StoreTxn& txn, std::string_view pod_uid);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_USERNS_TABLES_H_
