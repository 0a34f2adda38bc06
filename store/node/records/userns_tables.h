// The tables of user namespaces: their records (schema/v1/user_namespace.fbs), found by pod UID. A
// mapping and the blocks that it occupies are stored and erased together.

#ifndef WAYBILL_STORE_NODE_RECORDS_USERNS_TABLES_H_
#define WAYBILL_STORE_NODE_RECORDS_USERNS_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/engine/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

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
  QuarantinedPod pod;
  std::uint64_t stamp = 0;
};

std::vector<std::uint8_t> EncodeUsernsMapping(const UsernsMapping& mapping);
std::vector<std::uint8_t> EncodeUsernsBlock(const UsernsBlock& block);
// `version` is the record's. Version 3 has no kinds: it reads the one that matters to it from the
// reason.
std::vector<std::uint8_t> EncodeUsernsHeld(const UsernsHeld& held);

// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, or the range may
// not be handed out: it is not made of whole blocks, or contains the first or the last block.
std::optional<UsernsMapping> DecodeUsernsMapping(Payload payload);
std::optional<UsernsBlock> DecodeUsernsBlock(Payload payload);
std::optional<UsernsHeld> DecodeUsernsHeld(Payload payload);

// In place, from an envelope that verified. nullopt: the mapping is another pod's.
std::optional<IdMapping> MappingOf(Payload payload, std::string_view pod_uid);
// The stamp of a mapping; `payload` as above.
std::uint64_t StampOf(Payload payload);

// nullopt: no such mapping. kDamaged: unreadable. kConflict: the key is another pod's.
Result<std::optional<UsernsMapping>> FindMapping(const StoreTxn& txn, std::string_view pod_uid);
// Stores a mapping, stamped with the commit under way, for a pod that has none. nullopt: it is
// stored. Otherwise the result is the pod that already has one of the blocks, and nothing was
// changed.
Result<std::optional<std::string>> StoreMapping(StoreTxn& txn, std::string_view pod_uid,
                                                HostIdRange range);
// Stamps the mapping with the commit under way.
Result<void> StampAnew(StoreTxn& txn, UsernsMapping mapping);
// Whether there was one. If it can't be read, every block of the pod is erased.
Result<bool> EraseMapping(StoreTxn& txn, std::string_view pod_uid);

// kDamaged: a record can't be read.
Result<std::vector<UsernsMapping>> ReadMappings(const StoreTxn& txn);
Result<std::vector<UsernsBlock>> ReadBlocks(const StoreTxn& txn);
Result<std::vector<UsernsHeld>> ReadHeld(const StoreTxn& txn);

// nullopt: not held. kDamaged, kConflict as above.
Result<std::optional<UsernsHeld>> FindHeld(const StoreTxn& txn, std::string_view pod_uid);
// Replaces the entry, stamped as above. Writes nothing if it is the same.
Result<void> StoreHeld(StoreTxn& txn, QuarantinedPod pod);
Result<bool> EraseHeld(StoreTxn& txn, std::string_view pod_uid);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_USERNS_TABLES_H_
