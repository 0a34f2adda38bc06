#include "store/database/userns_tables.h"

#include <utility>

#include "store/base/quote.h"
#include "store/database/typed_tables.h"

namespace waybill::internal {

namespace {

Error Unreadable(std::string_view what) {
  return {ErrorCode::kDamaged,
          std::string(what) + " can't be read; nothing was changed",
          {},
          Hint::kRecover};
}

Key16 PodKey(const StoreTxn& txn, std::string_view pod_uid) { return HashKey(pod_uid, txn.seed()); }

template <typename T>
Result<std::vector<T>> ReadAll(const StoreTxn& txn, Table table, std::string_view what,
                               std::optional<T> (*decode)(Payload)) {
  std::vector<T> all;
  auto walked = txn.ForEach(table, [&](const Key16&, Payload payload) -> Result<bool> {
    auto decoded = decode(payload);
    if (!decoded) return Unreadable(what);
    all.push_back(std::move(*decoded));
    return true;
  });
  if (!walked) return walked.error();
  return all;
}

// nullopt: nobody.
Result<std::optional<std::string>> TenantOf(const StoreTxn& txn, std::uint32_t block) {
  auto payload = txn.Get(Table::kUsernsBlocks, BlockKey(block));
  if (!payload) return payload.error();
  if (!*payload) return std::optional<std::string>();
  auto decoded = DecodeUsernsBlock(**payload);
  if (!decoded) return Unreadable("the block of host ID " + std::to_string(block * kIdsPerBlock));
  return std::optional(std::move(decoded->pod_uid));
}

}  // namespace

Result<std::optional<UsernsMapping>> FindMapping(const StoreTxn& txn, std::string_view pod_uid) {
  auto payload = txn.Get(Table::kUsernsMappings, PodKey(txn, pod_uid));
  if (!payload) return payload.error();
  if (!*payload) return std::optional<UsernsMapping>();
  auto mapping = DecodeUsernsMapping(**payload);
  if (!mapping) return Unreadable("the ID mapping of pod " + ShownPodUid(pod_uid));
  if (mapping->pod_uid != pod_uid) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
  return mapping;
}

Result<std::optional<std::string>> StoreMapping(StoreTxn& txn, std::string_view pod_uid,
                                                HostIdRange range) {
  const auto first = static_cast<std::uint32_t>(range.first / kIdsPerBlock);
  const auto end = static_cast<std::uint32_t>((range.first + range.length) / kIdsPerBlock);
  for (std::uint32_t block = first; block < end; ++block) {
    auto added = txn.PutNew(Table::kUsernsBlocks, BlockKey(block),
                            EncodeUsernsBlock({std::string(pod_uid), block}));
    if (!added) return added.error();
    if (*added) continue;
    auto tenant = TenantOf(txn, block);
    if (!tenant) return tenant.error();
    while (block-- > first) {
      if (auto r = txn.Delete(Table::kUsernsBlocks, BlockKey(block)); !r) return r.error();
    }
    return tenant;
  }
  const UsernsMapping mapping{std::string(pod_uid), static_cast<std::uint32_t>(range.first),
                              static_cast<std::uint32_t>(range.length), txn.now(), txn.sequence()};
  auto added =
      txn.PutNew(Table::kUsernsMappings, PodKey(txn, pod_uid), EncodeUsernsMapping(mapping));
  if (!added) return added.error();
  if (!*added) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
  return std::optional<std::string>();
}

Result<void> StampAnew(StoreTxn& txn, UsernsMapping mapping) {
  mapping.stamp = txn.sequence();
  return txn.Put(Table::kUsernsMappings, PodKey(txn, mapping.pod_uid),
                 EncodeUsernsMapping(mapping));
}

Result<bool> EraseMapping(StoreTxn& txn, std::string_view pod_uid) {
  auto found = FindMapping(txn, pod_uid);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  if (found && !*found) return false;
  std::vector<std::uint32_t> blocks;
  if (found) {
    const std::uint64_t first = (*found)->host_id / kIdsPerBlock;
    for (std::uint64_t i = 0; i < (*found)->length / kIdsPerBlock; ++i) {
      blocks.push_back(static_cast<std::uint32_t>(first + i));
    }
  } else {
    auto all = ReadBlocks(txn);
    if (!all) return all.error();
    for (const UsernsBlock& block : *all) {
      if (block.pod_uid == pod_uid) blocks.push_back(block.block);
    }
  }
  for (const std::uint32_t block : blocks) {
    auto tenant = TenantOf(txn, block);
    if (!tenant) return tenant.error();
    // Never another pod's, even where the tables contradict each other.
    if (*tenant != pod_uid) continue;
    if (auto r = txn.Delete(Table::kUsernsBlocks, BlockKey(block)); !r) return r.error();
  }
  return txn.Delete(Table::kUsernsMappings, PodKey(txn, pod_uid));
}

Result<std::vector<UsernsMapping>> ReadMappings(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsMappings, "an ID mapping", DecodeUsernsMapping);
}
Result<std::vector<UsernsBlock>> ReadBlocks(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsBlocks, "a block of host IDs", DecodeUsernsBlock);
}
Result<std::vector<UsernsHeld>> ReadHeld(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsHeld, "a held pod", DecodeUsernsHeld);
}

Result<std::optional<UsernsHeld>> FindHeld(const StoreTxn& txn, std::string_view pod_uid) {
  // Nor is there a table of them in an older version.
  if (txn.state().digest(Table::kUsernsHeld).count == 0) return std::optional<UsernsHeld>();
  auto payload = txn.Get(Table::kUsernsHeld, PodKey(txn, pod_uid));
  if (!payload) return payload.error();
  if (!*payload) return std::optional<UsernsHeld>();
  auto held = DecodeUsernsHeld(**payload);
  if (!held) return Unreadable("what is held for pod " + ShownPodUid(pod_uid));
  if (held->pod.pod_uid != pod_uid) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
  return held;
}

Result<void> StoreHeld(StoreTxn& txn, HeldPod pod) {
  auto found = FindHeld(txn, pod.pod_uid);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  pod.since = txn.now();
  if (found && *found) {
    HeldPod same = pod;
    same.since = (*found)->pod.since;
    if (same == (*found)->pod) return {};
  }
  const Key16 key = PodKey(txn, pod.pod_uid);
  return txn.Put(
      Table::kUsernsHeld, key,
      EncodeUsernsHeld({std::move(pod), txn.sequence()}, txn.schema().version(Table::kUsernsHeld)));
}

Result<bool> EraseHeld(StoreTxn& txn, std::string_view pod_uid) {
  if (txn.state().digest(Table::kUsernsHeld).count == 0) return false;
  auto found = FindHeld(txn, pod_uid);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  return txn.Delete(Table::kUsernsHeld, PodKey(txn, pod_uid));
}

}  // namespace waybill::internal
