#include "store/pods/allocator.h"

#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

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

Allocator::Allocator(const UserNamespaceOptions& options, std::uint64_t start)
    : pool_(options.pool) {
  // If user namespaces are off, it only releases.
  if (!options.enabled) return;
  slots_ = SlotsOf(pool_);
  if (slots_.count > 0) next_ = static_cast<std::uint32_t>(start % slots_.count);
}

Result<IdMapping> Allocator::GetOrCreate(StoreTxn& txn, const UserNamespaceRequest& request,
                                         std::uint64_t token) {
  auto found = TRY(FindHostIds(txn, request.pod_uid));
  if (found) {
    if (found->held) return IsHeld(*found->held);
    const IdMapping mapping = found->mapping();
    TRY(CheckLength(request, mapping));
    if (found->stamp > token) return mapping;
    const bool is_seen = of_ == txn.state().digest(Table::kHostIds);
    TRY(PutHostIds(txn, *std::move(found)));
    // The stamp is all that changed.
    if (is_seen) of_ = txn.state().digest(Table::kHostIds);
    return mapping;
  }
  if (request.length && *request.length != pool_.ids_per_pod) {
    return Error{ErrorCode::kInvalidArgument,
                 "a new ID mapping has length " + std::to_string(pool_.ids_per_pod) + ", not " +
                     std::to_string(*request.length) + "; nothing was changed",
                 "the pool's IDs per pod decide"};
  }
  return Create(txn, std::string(request.pod_uid));
}

Result<void> Allocator::SeeWhatIsTaken(const StoreTxn& txn) {
  const TableDigest& now = txn.state().digest(Table::kHostIds);
  if (of_ == now) return {};
  of_.reset();
  const auto rows = TRY(ReadHostIds(txn));
  taken_ = {};
  for (const HostIds& row : rows) AddTo(taken_, RangesOf(row));
  refused_because_ = WhyRefused(rows);
  of_ = now;
  return {};
}

Result<IdMapping> Allocator::Create(StoreTxn& txn, std::string pod_uid) {
  TRY(SeeWhatIsTaken(txn));
  if (!refused_because_.empty()) {
    return Error{ErrorCode::kConflict,
                 "no new ID mapping can be handed out: " + refused_because_,
                 {},
                 Hint::kSettleHeldPods};
  }
  for (std::uint32_t i = 0; i < slots_.count; ++i) {
    const std::uint32_t slot = (next_ + i) % slots_.count;
    const BlockRange blocks = slots_.At(slot);
    if (taken_.HasAnyOf(blocks)) continue;
    const HostIds row{.pod_uid = std::move(pod_uid),
                      .range = {std::uint64_t{blocks.first} * kIdsPerBlock,
                                std::uint64_t{blocks.count} * kIdsPerBlock},
                      .created = txn.now()};
    TRY(PutHostIds(txn, row));
    taken_.Add(blocks);
    of_ = txn.state().digest(Table::kHostIds);
    next_ = slot + 1;
    return row.mapping();
  }
  return Full(pool_, slots_);
}

Result<void> Allocator::Adopt(StoreTxn& txn, std::string_view pod_uid, HostIdRange range) {
  auto found = TRY(FindHostIds(txn, pod_uid));
  const bool has_it = found && found->range == range;
  if (found && !has_it && !found->held) return HasAnother(pod_uid, ShownRange(found->range));
  BlockSet blocks;
  AddTo(blocks, {range});
  const auto rows = TRY(ReadHostIds(txn));
  for (const HostIds& other : rows) {
    if (other.pod_uid == pod_uid || !HaveAnyOf(blocks, RangesOf(other))) continue;
    return Taken(pod_uid, range, NameOfPod(other.pod_uid));
  }
  if (has_it && !found->held) return {};
  const Timestamp created = has_it ? found->created : txn.now();
  return PutHostIds(txn, {.pod_uid = std::string(pod_uid), .range = range, .created = created});
}

Result<CleanUpReport> Allocator::CleanUp(StoreTxn& txn,
                                         const std::unordered_set<std::string_view>& pods,
                                         std::uint64_t token, std::size_t most) {
  auto rows = TRY(ReadHostIds(txn));
  std::erase_if(rows, [](const HostIds& row) { return row.pod_uid.empty(); });
  CleanUpReport report;
  report.examined = rows.size();
  for (const HostIds& row : rows) {
    if (pods.contains(row.pod_uid)) {
      ++report.kept_in_lists;
      continue;
    }
    if (row.stamp > token) {
      ++report.kept_newer;
      continue;
    }
    if (report.released == most) return report;
    TRY(EraseHostIds(txn, row.pod_uid));
    ++report.released;
    if (report.released_pods.size() < kMaxNamedPods) report.released_pods.push_back(row.pod_uid);
  }
  return report;
}

}  // namespace waybill::internal
