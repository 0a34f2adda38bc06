#include "store/node/userns/allocator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/node/records/keys.h"
#include "store/node/records/userns_tables.h"

namespace waybill::internal {

namespace {

std::string Name(const QuarantinedPod& held) {
  return held.pod_uid.empty() ? "unknown pods" : "pod " + ShownPodUid(held.pod_uid);
}

Error Full(const IdPool& pool, const Slots& slots) {
  return {ErrorCode::kLimitExceeded,
          "could not find an empty slot to allocate a user namespace: all " +
              std::to_string(slots.count) + " ranges of the pool from host ID " +
              std::to_string(pool.first_id) + " are taken; nothing was changed",
          {},
          Hint::kFreeRanges};
}

Error Taken(std::string_view pod_uid, HostIdRange range, const std::string& by) {
  return {ErrorCode::kConflict,
          "pod " + ShownPodUid(pod_uid) + " can't be given " + ShownRange(range) + ": " + by +
              " has or may have some of them; nothing was changed",
          {},
          Hint::kReleasePod};
}

// The pod has `what` already, and the call asks for another mapping.
Error HasAnother(std::string_view pod_uid, const std::string& what) {
  return {ErrorCode::kConflict,
          "pod " + ShownPodUid(pod_uid) + " has " + what + "; nothing was changed",
          "a mapping can't change under its pod: release it once the pod is gone"};
}

// The first held pod, other than `pod_uid` itself, whose ranges overlap `blocks`.
const QuarantinedPod* Overlapping(const std::vector<UsernsHeld>& held, BlockRange blocks,
                                  std::string_view pod_uid) {
  for (const UsernsHeld& one : held) {
    if (one.pod.pod_uid == pod_uid) continue;
    for (const HostIdRange& range : one.pod.ranges) {
      if (BlocksOf(range.first, range.length).Overlaps(blocks)) return &one.pod;
    }
  }
  return nullptr;
}

}  // namespace

Error IsHeld(const QuarantinedPod& held) {
  std::string message = "the host IDs of pod " + ShownPodUid(held.pod_uid) +
                        " are unverified: " + held.reason +
                        "; it gets no user namespace, and no other pod gets its ranges";
  if (!held.source.empty()) {
    message += "; the next opening reads " + held.source +
               " in the kubelet directory again, so repair or remove that file if it is wrong";
  }
  return {ErrorCode::kConflict, std::move(message), {}, Hint::kSettleHeldPods};
}

Result<void> CheckLength(const UserNamespaceRequest& request, const IdMapping& mapping) {
  if (!request.length || *request.length == mapping.length) return {};
  return HasAnother(request.pod_uid, "an ID mapping of length " + std::to_string(mapping.length) +
                                         ", not " + std::to_string(*request.length));
}

std::string WhyRefused(const std::vector<UsernsHeld>& held) {
  for (const UsernsHeld& one : held) {
    if (!one.pod.ranges.empty()) continue;
    return "the range of " + Name(one.pod) + " is not known (" + one.pod.reason +
           "), and could be handed out twice";
  }
  return {};
}

void AddHeld(const std::vector<UsernsHeld>& held, BlockSet& blocks) {
  for (const UsernsHeld& one : held) {
    for (const HostIdRange& range : one.pod.ranges) {
      blocks.Add(BlocksOf(range.first, range.length));
    }
  }
}

Allocator::Allocator(const UserNamespaceOptions& options, std::uint64_t start)
    : pool_(options.pool) {
  // If user namespaces are off, it only releases.
  if (!options.enabled) return;
  slots_ = SlotsOf(pool_);
  if (slots_.count > 0) next_ = static_cast<std::uint32_t>(start % slots_.count);
}

Result<IdMapping> Allocator::GetOrCreate(StoreTxn& txn, const UserNamespaceRequest& request,
                                         std::uint64_t token) {
  auto held = TRY(FindHeld(txn, request.pod_uid));
  if (held) return IsHeld(held->pod);
  auto found = TRY(FindMapping(txn, request.pod_uid));
  if (found) {
    const IdMapping mapping{found->host_id, 0, found->length};
    TRY(CheckLength(request, mapping));
    if (found->stamp <= token) TRY(StampAnew(txn, *std::move(found)));
    return mapping;
  }
  if (request.length && *request.length != pool_.ids_per_pod) {
    return Error{ErrorCode::kInvalidArgument,
                 "a new ID mapping has length " + std::to_string(pool_.ids_per_pod) + ", not " +
                     std::to_string(*request.length) + "; nothing was changed",
                 "the pool's IDs per pod decide"};
  }
  return Create(txn, request.pod_uid);
}

// The table is read in order, so the blocks between two entries are free.
Result<std::optional<std::uint32_t>> Allocator::FindFree(const StoreTxn& txn,
                                                         const BlockSet& held_blocks,
                                                         std::uint32_t from,
                                                         std::uint32_t end) const {
  std::uint32_t slot = from;
  // Whether a slot before `block` is not held; `slot` is then the first of them.
  const auto is_free_before = [&](std::uint32_t block) {
    for (; slot < end && slots_.At(slot).end() <= block; ++slot) {
      if (!held_blocks.HasAnyOf(slots_.At(slot))) return true;
    }
    return false;
  };
  bool found = false;
  const auto visit = [&](const Key16& key, Payload) -> Result<bool> {
    const auto block = BlockOf(key);
    if (!block) return true;
    found = is_free_before(*block);
    if (found || slot >= end) return false;
    if (slots_.At(slot).first <= *block) ++slot;
    return true;
  };
  TRY(txn.ForEachFrom(Table::kUsernsBlocks, BlockKey(slots_.At(from).first), visit));
  if (!found && !is_free_before(kBlocks)) return std::optional<std::uint32_t>();
  return std::optional(slot);
}

Result<IdMapping> Allocator::Create(StoreTxn& txn, std::string_view pod_uid) {
  BlockSet held_blocks;
  if (txn.state().digest(Table::kUsernsHeld).count > 0) {
    auto held = TRY(ReadHeld(txn));
    if (const std::string why = WhyRefused(held); !why.empty()) {
      return Error{ErrorCode::kConflict,
                   "no new ID mapping can be handed out: " + why,
                   {},
                   Hint::kSettleHeldPods};
    }
    AddHeld(held, held_blocks);
  }
  auto slot = FindFree(txn, held_blocks, next_, slots_.count);
  if (slot && !*slot) slot = FindFree(txn, held_blocks, 0, next_);
  if (!slot) return slot.error();
  if (!*slot) return Full(pool_, slots_);
  const BlockRange blocks = slots_.At(**slot);
  const HostIdRange range{blocks.first * kIdsPerBlock, blocks.count * kIdsPerBlock};
  auto tenant = TRY(StoreMapping(txn, pod_uid, range));
  if (tenant) return Taken(pod_uid, range, "pod " + ShownPodUid(*tenant));
  next_ = **slot + 1 < slots_.count ? **slot + 1 : 0;
  return IdMapping{static_cast<std::uint32_t>(range.first), 0,
                   static_cast<std::uint32_t>(range.length)};
}

Result<void> Allocator::Adopt(StoreTxn& txn, std::string_view pod_uid, HostIdRange range) {
  auto own = TRY(FindHeld(txn, pod_uid));
  auto found = TRY(FindMapping(txn, pod_uid));
  const bool has_it = found && found->host_id == range.first && found->length == range.length;
  if (found && !has_it && !own) {
    return HasAnother(pod_uid, ShownRange({found->host_id, found->length}));
  }
  auto held = TRY(ReadHeld(txn));
  const BlockRange blocks = BlocksOf(range.first, range.length);
  if (const QuarantinedPod* other = Overlapping(held, blocks, pod_uid)) {
    return Taken(pod_uid, range, Name(*other));
  }
  if (!has_it) {
    if (found) TRY(EraseMapping(txn, pod_uid));
    auto tenant = TRY(StoreMapping(txn, pod_uid, range));
    if (tenant) return Taken(pod_uid, range, "pod " + ShownPodUid(*tenant));
  }
  if (own) TRY(EraseHeld(txn, pod_uid));
  return {};
}

Result<bool> Allocator::Release(StoreTxn& txn, std::string_view pod_uid) {
  auto erased = TRY(EraseMapping(txn, pod_uid));
  auto freed = TRY(EraseHeld(txn, pod_uid));
  return erased || freed;
}

Result<CleanUpReport> Allocator::CleanUp(StoreTxn& txn,
                                         const std::unordered_set<std::string_view>& pods,
                                         std::uint64_t token, std::size_t most) {
  auto mappings = TRY(ReadMappings(txn));
  auto held = TRY(ReadHeld(txn));
  // A pod may have a mapping and be held: the later of the two counts.
  std::map<std::string, std::uint64_t> stamps;
  for (UsernsMapping& mapping : mappings) stamps[std::move(mapping.pod_uid)] = mapping.stamp;
  for (UsernsHeld& one : held) {
    if (one.pod.pod_uid.empty()) continue;
    std::uint64_t& stamp = stamps[std::move(one.pod.pod_uid)];
    stamp = std::max(stamp, one.stamp);
  }
  CleanUpReport report;
  report.examined = stamps.size();
  for (const auto& [pod_uid, stamp] : stamps) {
    if (pods.contains(pod_uid)) {
      ++report.kept_in_lists;
      continue;
    }
    if (stamp > token) {
      ++report.kept_newer;
      continue;
    }
    if (report.released == most) return report;
    TRY(Release(txn, pod_uid));
    ++report.released;
    if (report.released_pods.size() < kMaxNamedPods) report.released_pods.push_back(pod_uid);
  }
  return report;
}

}  // namespace waybill::internal
