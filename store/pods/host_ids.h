// What is known of each pod's host IDs: one row a pod (schema/v1/host_ids.fbs). A row without a pod
// UID stands for ranges of pods that nobody knows: lost, or not yet imported from a kubelet.

#ifndef WAYBILL_STORE_PODS_HOST_IDS_H_
#define WAYBILL_STORE_PODS_HOST_IDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/options.h"
#include "store/disk/store_txn.h"
#include "store/pods/pool.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A report names this many pods that something is wrong with.
inline constexpr std::size_t kMaxNamedProblems = 100;

struct HostIds {
  std::string pod_uid;
  HostIdRange range = {};  // length 0: it has none
  Timestamp created = {};  // when it got the range
  std::uint64_t stamp = 0;
  // Why nobody can vouch for them, and which it may have beside `range`.
  std::optional<QuarantinedPod> held = {};

  bool has_range() const { return range.length > 0; }
  // If it has a range.
  IdMapping mapping() const {
    return {static_cast<std::uint32_t>(range.first), 0, static_cast<std::uint32_t>(range.length)};
  }
  // It may have any.
  bool may_have_any() const { return held && held->ranges.empty(); }
};

// What a pod gets that has a range, and is not held.
struct GivenRange {
  IdMapping mapping;
  std::uint64_t stamp = 0;
};
// In place; `payload` must come from an envelope that verified. nullopt: DecodeHostIds tells why.
std::optional<GivenRange> GivenIn(Payload payload, std::string_view pod_uid);

std::vector<std::uint8_t> EncodeHostIds(const HostIds& row);
// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, it says nothing of
// its pod, or the range may not be handed out: it is not made of whole blocks, or contains the
// first or the last block.
std::optional<HostIds> DecodeHostIds(Payload payload);

// nullopt: nothing is known of the pod. kDamaged: unreadable. kConflict: the key is another pod's.
Result<std::optional<HostIds>> FindHostIds(const StoreTxn& txn, std::string_view pod_uid);
// Sorted by UID. kDamaged: a row can't be read, or is missing.
Result<std::vector<HostIds>> ReadHostIds(const StoreTxn& txn);
// Stamps the row with the commit under way, and stores it.
Result<void> PutHostIds(StoreTxn& txn, HostIds row);
// Whether there was a row, readable or not.
Result<bool> EraseHostIds(StoreTxn& txn, std::string_view pod_uid);

// The range, and all that the pod may have.
std::vector<HostIdRange> RangesOf(const HostIds& row);
void AddTo(BlockSet& blocks, const std::vector<HostIdRange>& ranges);
bool HaveAnyOf(const BlockSet& blocks, const std::vector<HostIdRange>& ranges);

// Holds the pod for `held`: also with the ranges that it was held with before, and an unknown range
// stays unknown. Writes nothing if it is held so already.
Result<void> Hold(StoreTxn& txn, HostIds& row, QuarantinedPod held);

// Of rows that overlap, one at least is not what its pod uses, and what that pod uses is not known.
// So all of them are held, with unknown ranges. That only a bug, or another program, can cause.
Result<void> HoldOverlapping(StoreTxn& txn, IdMappingReport& report);

// Ranges of unknown pods may have been lost: no new range is handed out until an operator allows
// it.
Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason);
// The same until the ID mappings of a kubelet's pods are imported. Changes nothing if ranges were
// lost otherwise.
Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why);
// Whether the row is that one: all ranges are in the kubelet's files, and the store has handed out
// none.
bool IsUntilImport(const HostIds& row);

// Why no new range can be handed out; empty: ranges can.
std::string WhyRefused(const std::vector<HostIds>& rows);
PoolUse UseOf(const std::vector<HostIds>& rows, const UserNamespaceOptions& options);

// "pod a", or "unknown pods".
std::string NameOfPod(std::string_view pod_uid);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PODS_HOST_IDS_H_
