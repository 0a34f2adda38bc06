#include "store/node/records/userns_tables.h"

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <cstring>
#include <utility>

#include "schema/v1/user_namespace_generated.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/engine/database/flatbuffer.h"
#include "store/engine/database/uuid.h"
#include "store/node/records/keys.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace v1 = schema::v1;

namespace {

// A UID in the form in which it is stored.
struct StoredUid {
  StoredUid(flatbuffers::FlatBufferBuilder& builder, std::string_view pod_uid) {
    std::array<std::uint8_t, 16> bytes{};
    is_raw = DecodeUuid(pod_uid, bytes);
    uuid = v1::Uuid(Raw(bytes));
    if (!is_raw) text = builder.CreateString(pod_uid.data(), pod_uid.size());
  }
  const v1::Uuid* raw() const { return is_raw ? &uuid : nullptr; }

  bool is_raw = false;
  v1::Uuid uuid;
  flatbuffers::Offset<flatbuffers::String> text;
};

// nullptr: the FlatBuffer does not verify, or its UID is missing, given twice or longer than a
// directory's name may be.
template <typename T>
const T* RootWithUid(Payload payload) {
  const auto* root = Root<T>(payload);
  return root != nullptr && HasOneUid(*root, kMaxFileNameBytes) ? root : nullptr;
}

bool MayBeHandedOut(std::uint64_t host_id, std::uint64_t length) {
  return host_id % kIdsPerBlock == 0 && length % kIdsPerBlock == 0 && host_id >= kIdsPerBlock &&
         length > 0 && host_id + length < kHostIds;
}

Error Unreadable(std::string_view what) {
  return {ErrorCode::kDamaged,
          std::string(what) + " can't be read; nothing was changed",
          {},
          Hint::kRecover};
}

Key16 PodKey(const StoreTxn& txn, std::string_view pod_uid) { return HashKey(pod_uid, txn.seed()); }

// The pod that has the block; nullopt: it is free.
Result<std::optional<std::string>> TenantOf(const StoreTxn& txn, std::uint32_t block) {
  auto payload = TRY(txn.Get(Table::kUsernsBlocks, BlockKey(block)));
  if (!payload) return std::optional<std::string>();
  auto decoded = DecodeUsernsBlock(*payload);
  if (!decoded) return Unreadable("the block of host ID " + std::to_string(block * kIdsPerBlock));
  return std::optional(std::move(decoded->pod_uid));
}

}  // namespace

std::vector<std::uint8_t> EncodeUsernsMapping(const UsernsMapping& mapping) {
  flatbuffers::FlatBufferBuilder builder(256);
  const StoredUid uid(builder, mapping.pod_uid);
  const v1::Time created = ToTime(mapping.created);
  return Finish(builder, v1::CreateUsernsMapping(builder, uid.raw(), uid.text, mapping.host_id,
                                                 mapping.length, &created, mapping.stamp));
}

std::optional<UsernsMapping> DecodeUsernsMapping(Payload payload) {
  const auto* root = RootWithUid<v1::UsernsMapping>(payload);
  if (root == nullptr || root->created() == nullptr ||
      !MayBeHandedOut(root->host_id(), root->length())) {
    return std::nullopt;
  }
  return UsernsMapping{UidOf(*root), root->host_id(), root->length(), FromTime(*root->created()),
                       root->stamp()};
}

std::vector<std::uint8_t> EncodeUsernsBlock(const UsernsBlock& block) {
  flatbuffers::FlatBufferBuilder builder(128);
  const StoredUid uid(builder, block.pod_uid);
  return Finish(builder, v1::CreateUsernsBlock(builder, uid.raw(), uid.text,
                                               static_cast<std::uint16_t>(block.block)));
}

std::optional<UsernsBlock> DecodeUsernsBlock(Payload payload) {
  const auto* root = RootWithUid<v1::UsernsBlock>(payload);
  if (root == nullptr || !MayBeHandedOut(root->block() * kIdsPerBlock, kIdsPerBlock)) {
    return std::nullopt;
  }
  return UsernsBlock{UidOf(*root), root->block()};
}

std::vector<std::uint8_t> EncodeUsernsHeld(const UsernsHeld& held) {
  flatbuffers::FlatBufferBuilder builder(256);
  const StoredUid uid(builder, held.pod.pod_uid);
  std::vector<v1::IdRange> ranges;
  ranges.reserve(held.pod.ranges.size());
  for (const HostIdRange& range : held.pod.ranges) ranges.emplace_back(range.first, range.length);
  const auto ranges_at = builder.CreateVectorOfStructs(ranges);
  const auto source = builder.CreateString(held.pod.source);
  const auto reason = builder.CreateString(held.pod.reason);
  const v1::Time since = ToTime(held.pod.since);
  return Finish(
      builder, v1::CreateUsernsHeld(builder, uid.raw(), uid.text, ranges_at, source, reason, &since,
                                    held.stamp, static_cast<std::uint8_t>(held.pod.kind)));
}

std::optional<UsernsHeld> DecodeUsernsHeld(Payload payload) {
  const auto* root = RootWithUid<v1::UsernsHeld>(payload);
  if (root == nullptr || root->ranges() == nullptr || root->source() == nullptr ||
      root->reason() == nullptr || root->since() == nullptr || root->kind() == 0) {
    return std::nullopt;
  }
  UsernsHeld held;
  held.pod.pod_uid = UidOf(*root);
  held.pod.source = root->source()->str();
  held.pod.reason = root->reason()->str();
  held.pod.since = FromTime(*root->since());
  held.pod.kind = static_cast<PodQuarantineKind>(root->kind());
  held.stamp = root->stamp();
  for (const v1::IdRange* range : *root->ranges()) {
    if (range->first() > kHostIds || range->length() > kHostIds) return std::nullopt;
    held.pod.ranges.push_back({range->first(), range->length()});
  }
  return held;
}

std::optional<IdMapping> MappingOf(Payload payload, std::string_view pod_uid) {
  const auto* root = flatbuffers::GetRoot<v1::UsernsMapping>(payload.data());
  if (root->uid_raw() != nullptr) {
    std::array<std::uint8_t, 16> raw{};
    if (!DecodeUuid(pod_uid, raw) ||
        std::memcmp(root->uid_raw()->bytes()->data(), raw.data(), raw.size()) != 0) {
      return std::nullopt;
    }
  } else if (Text(root->uid_text()) != pod_uid) {
    return std::nullopt;
  }
  return IdMapping{root->host_id(), 0, root->length()};
}

std::uint64_t StampOf(Payload payload) {
  return flatbuffers::GetRoot<v1::UsernsMapping>(payload.data())->stamp();
}

std::optional<Key16> KeyOfUsernsMapping(Payload payload, std::uint64_t seed) {
  const auto mapping = DecodeUsernsMapping(payload);
  return mapping ? std::optional(HashKey(mapping->pod_uid, seed)) : std::nullopt;
}

std::optional<Key16> KeyOfUsernsBlock(Payload payload, std::uint64_t /*seed*/) {
  const auto block = DecodeUsernsBlock(payload);
  return block ? std::optional(BlockKey(block->block)) : std::nullopt;
}

std::optional<Key16> KeyOfUsernsHeld(Payload payload, std::uint64_t seed) {
  const auto held = DecodeUsernsHeld(payload);
  return held ? std::optional(HashKey(held->pod.pod_uid, seed)) : std::nullopt;
}

Result<std::optional<UsernsMapping>> FindMapping(const StoreTxn& txn, std::string_view pod_uid) {
  auto payload = TRY(txn.Get(Table::kUsernsMappings, PodKey(txn, pod_uid)));
  if (!payload) return std::optional<UsernsMapping>();
  auto mapping = DecodeUsernsMapping(*payload);
  if (!mapping) return Unreadable("the ID mapping of pod " + ShownPodUid(pod_uid));
  if (mapping->pod_uid != pod_uid) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
  return mapping;
}

Result<std::optional<std::string>> StoreMapping(StoreTxn& txn, std::string_view pod_uid,
                                                HostIdRange range) {
  const auto first = static_cast<std::uint32_t>(range.first / kIdsPerBlock);
  const auto end = static_cast<std::uint32_t>((range.first + range.length) / kIdsPerBlock);
  for (std::uint32_t block = first; block < end; ++block) {
    auto added = TRY(txn.PutNew(Table::kUsernsBlocks, BlockKey(block),
                                EncodeUsernsBlock({std::string(pod_uid), block})));
    if (added) continue;
    auto tenant = TRY(TenantOf(txn, block));
    while (block-- > first) TRY(txn.Delete(Table::kUsernsBlocks, BlockKey(block)));
    return tenant;
  }
  const UsernsMapping mapping{std::string(pod_uid), static_cast<std::uint32_t>(range.first),
                              static_cast<std::uint32_t>(range.length), txn.now(), txn.sequence()};
  auto added =
      TRY(txn.PutNew(Table::kUsernsMappings, PodKey(txn, pod_uid), EncodeUsernsMapping(mapping)));
  if (!added) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
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
    auto all = TRY(ReadBlocks(txn));
    for (const UsernsBlock& block : all) {
      if (block.pod_uid == pod_uid) blocks.push_back(block.block);
    }
  }
  for (const std::uint32_t block : blocks) {
    auto tenant = TRY(TenantOf(txn, block));
    // Never erase another pod's block, even if the tables contradict each other.
    if (tenant != pod_uid) continue;
    TRY(txn.Delete(Table::kUsernsBlocks, BlockKey(block)));
  }
  return txn.Delete(Table::kUsernsMappings, PodKey(txn, pod_uid));
}

Result<std::vector<UsernsMapping>> ReadMappings(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsMappings, DecodeUsernsMapping, Unreadable("an ID mapping"));
}
Result<std::vector<UsernsBlock>> ReadBlocks(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsBlocks, DecodeUsernsBlock, Unreadable("a block of host IDs"));
}
Result<std::vector<UsernsHeld>> ReadHeld(const StoreTxn& txn) {
  return ReadAll(txn, Table::kUsernsHeld, DecodeUsernsHeld, Unreadable("a held pod"));
}

Result<std::optional<UsernsHeld>> FindHeld(const StoreTxn& txn, std::string_view pod_uid) {
  if (txn.state().digest(Table::kUsernsHeld).count == 0) return std::optional<UsernsHeld>();
  auto payload = TRY(txn.Get(Table::kUsernsHeld, PodKey(txn, pod_uid)));
  if (!payload) return std::optional<UsernsHeld>();
  auto held = DecodeUsernsHeld(*payload);
  if (!held) return Unreadable("what is held for pod " + ShownPodUid(pod_uid));
  if (held->pod.pod_uid != pod_uid) return KeyIsTaken("pod " + ShownPodUid(pod_uid));
  return held;
}

Result<void> StoreHeld(StoreTxn& txn, QuarantinedPod pod) {
  auto found = FindHeld(txn, pod.pod_uid);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  pod.since = txn.now();
  if (found && *found) {
    QuarantinedPod same = pod;
    same.since = (*found)->pod.since;
    if (same == (*found)->pod) return {};
  }
  const Key16 key = PodKey(txn, pod.pod_uid);
  return txn.Put(Table::kUsernsHeld, key, EncodeUsernsHeld({std::move(pod), txn.sequence()}));
}

Result<bool> EraseHeld(StoreTxn& txn, std::string_view pod_uid) {
  if (txn.state().digest(Table::kUsernsHeld).count == 0) return false;
  auto found = FindHeld(txn, pod_uid);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  return txn.Delete(Table::kUsernsHeld, PodKey(txn, pod_uid));
}

namespace {

// Which pod has which block.
std::uint64_t SumOf(std::string_view pod_uid, std::uint64_t block) {
  const Key16 key = HashKey(pod_uid, block);
  std::uint64_t sum = 0;
  std::memcpy(&sum, key.bytes.data(), sizeof(sum));
  return sum;
}

}  // namespace

std::uint64_t SumOfUsernsMapping(const Key16&, Payload payload, std::uint64_t) {
  const auto mapping = DecodeUsernsMapping(payload);
  std::uint64_t sum = 0;
  for (std::uint64_t id = mapping->host_id; id < mapping->host_id + std::uint64_t{mapping->length};
       id += kIdsPerBlock) {
    sum += SumOf(mapping->pod_uid, id / kIdsPerBlock);
  }
  return sum;
}

std::uint64_t SumOfUsernsBlock(const Key16&, Payload payload, std::uint64_t) {
  const auto block = DecodeUsernsBlock(payload);
  return SumOf(block->pod_uid, block->block);
}

}  // namespace waybill::internal
