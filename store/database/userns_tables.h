// The tables of user namespaces (schema/v3/user_namespace.fbs, schema/v4/user_namespace.fbs): their
// records as plain structs, and the tables by pod UID. A mapping and the blocks that it occupies
// come and go together.

#ifndef WAYBILL_STORE_DATABASE_USERNS_TABLES_H_
#define WAYBILL_STORE_DATABASE_USERNS_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

struct UsernsMapping {
  std::string pod_uid;
  std::uint32_t host_id = 0;
  std::uint32_t length = 0;
  Timestamp created;
  std::uint64_t stamp = 0;
};

struct UsernsBlock {
  std::string pod_uid;
  std::uint32_t block = 0;
};

struct UsernsHeld {
  HeldPod pod;
  std::uint64_t stamp = 0;
};

std::vector<std::uint8_t> EncodeUsernsMapping(const UsernsMapping& mapping);
std::vector<std::uint8_t> EncodeUsernsBlock(const UsernsBlock& block);
// As a version of the record has it: 3 knows no kind, and looks for the one that matters to it in
// the reason's words.
std::vector<std::uint8_t> EncodeUsernsHeld(const UsernsHeld& held, std::uint16_t version);

// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, or the range is
// none that may be handed out (of blocks other than the first and the last).
std::optional<UsernsMapping> DecodeUsernsMapping(Payload payload);
std::optional<UsernsBlock> DecodeUsernsBlock(Payload payload);
std::optional<UsernsHeld> DecodeUsernsHeld(Payload payload);

// In place; nothing is checked but the envelope. nullopt: it is another pod's.
std::optional<IdMapping> MappingOf(Payload payload, std::string_view pod_uid);
// Of what MappingOf takes.
std::uint64_t StampOf(Payload payload);

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
