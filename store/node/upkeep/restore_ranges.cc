#include "store/node/upkeep/restore_ranges.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/node/upkeep/carry_over.h"
#include "store/node/userns/lost_ranges.h"

namespace waybill::internal {

namespace {

bool Overlap(HostIdRange a, HostIdRange b) {
  return a.first < b.first + b.length && b.first < a.first + a.length;
}

class Ranges {
 public:
  Ranges(StoreTxn& txn, ReplacedRanges known, RestoreReport& report)
      : txn_(txn),
        are_all_known_(known == ReplacedRanges::kWhole),
        may_be_lost_(!are_all_known_),
        may_be_older_(known == ReplacedRanges::kMayBeOlder),
        report_(report) {}

  Result<void> ReadStore() {
    auto held = TRY(ReadHeld(txn_));
    for (UsernsHeld& one : held) {
      const std::string pod_uid = one.pod.pod_uid;
      held_.emplace(pod_uid, std::move(one.pod));
    }
    const auto lost = held_.find("");
    if (lost == held_.end()) return {};
    are_all_known_ = false;
    if (!IsUntilImport(lost->second)) may_be_lost_ = true;
    return {};
  }

  bool are_all_known() const { return are_all_known_; }
  // False: what is not known lies in a kubelet's files.
  bool may_be_lost() const { return may_be_lost_; }

  Result<void> Add(const UsernsMapping& mapping) {
    const HostIdRange range{mapping.host_id, mapping.length};
    auto now = TRY(FindMapping(txn_, mapping.pod_uid));
    if (held_.contains(mapping.pod_uid)) {
      ++report_.id_mappings_held;
      return are_all_known_ ? Result<void>() : Hold(mapping.pod_uid, {range});
    }
    if (now) {
      const bool is_same = now->host_id == mapping.host_id && now->length == mapping.length;
      if (!is_same && may_be_older_) {
        ++report_.id_mappings_held;
        TRY(TakeAndHold(mapping.pod_uid));
        return Hold(mapping.pod_uid, {range});
      }
      ++(is_same ? report_.id_mappings_kept : report_.id_mappings_dropped);
      return {};
    }
    if (are_all_known_) {
      ++report_.id_mappings_dropped;
      return {};
    }
    const bool may_be_anothers = std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
      return std::any_of(held.second.ranges.begin(), held.second.ranges.end(),
                         [&](HostIdRange other) { return Overlap(range, other); });
    });
    if (!may_be_anothers) {
      if (TRY(StoreIfFree(mapping.pod_uid, range))) {
        ++report_.id_mappings_kept;
        return StampAnew(txn_, mapping);
      }
    }
    ++report_.id_mappings_held;
    return Hold(mapping.pod_uid, {range});
  }

  // Adds `ranges` to those that the pod is held with. An unknown range stays unknown.
  Result<void> Hold(const std::string& pod_uid, const std::vector<HostIdRange>& ranges) {
    const auto [at, is_new] = held_.try_emplace(pod_uid);
    QuarantinedPod& held = at->second;
    if (is_new) {
      held.pod_uid = pod_uid;
      held.reason =
          may_be_older_
              ? "its range is that of a backup, or of the store that it replaced, and may "
                "be another pod's by now"
              : "its range is that of a backup, and may be another pod's by now";
      held.kind = PodQuarantineKind::kFromBackup;
    } else if (held.ranges.empty()) {
      return {};
    }
    if (ranges.empty()) held.ranges.clear();
    for (const HostIdRange range : ranges) {
      if (std::find(held.ranges.begin(), held.ranges.end(), range) == held.ranges.end()) {
        held.ranges.push_back(range);
      }
    }
    return StoreHeld(txn_, held);
  }

 private:
  // Stores the mapping. False: another pod has some of the range. If that pod's mapping may be the
  // older one, it is held.
  Result<bool> StoreIfFree(const std::string& pod_uid, HostIdRange range) {
    bool is_free = true;
    while (true) {
      auto tenant = TRY(StoreMapping(txn_, pod_uid, range));
      if (!tenant) break;
      is_free = false;
      if (!may_be_older_) return false;
      auto taken = TakeAndHold(*tenant);
      if (!taken || !*taken) return taken;
    }
    if (is_free) return true;
    auto erased = EraseMapping(txn_, pod_uid);
    return erased ? Result<bool>(false) : erased.error();
  }

  // False: the pod has no mapping.
  Result<bool> TakeAndHold(const std::string& pod_uid) {
    auto mapping = TRY(FindMapping(txn_, pod_uid));
    if (!mapping) return false;
    if (auto erased = EraseMapping(txn_, pod_uid); !erased) return erased;
    auto held = Hold(pod_uid, {{mapping->host_id, mapping->length}});
    return held ? Result<bool>(true) : held.error();
  }

  StoreTxn& txn_;
  bool are_all_known_;
  bool may_be_lost_;
  const bool may_be_older_;
  RestoreReport& report_;
  std::map<std::string, QuarantinedPod> held_;
};

}  // namespace

Result<void> RestoreIdRanges(StoreTxn& txn, const Salvaged& replaced, ReplacedRanges known,
                             const Salvaged& backup, std::string_view reason,
                             RestoreReport& report) {
  if (auto r = CarryIdRanges(txn, replaced); !r) return r;
  Ranges ranges(txn, known, report);
  if (auto r = ranges.ReadStore(); !r) return r;
  std::map<std::string, HostIdRange> of_backup;
  for (const auto& mapping : backup.All(Table::kUsernsMappings, DecodeUsernsMapping)) {
    of_backup[mapping.pod_uid] = {mapping.host_id, mapping.length};
    if (auto r = ranges.Add(mapping); !r) return r;
  }
  if (ranges.are_all_known()) return {};
  for (const auto& [pod, stamp] : backup.All(Table::kUsernsHeld, DecodeUsernsHeld)) {
    if (pod.pod_uid.empty()) continue;
    if (TRY(FindMapping(txn, pod.pod_uid))) continue;
    if (auto r = ranges.Hold(pod.pod_uid, pod.ranges); !r) return r;
  }
  // Blocks without a matching mapping: the backup's tables contradict each other.
  for (const auto& block : backup.All(Table::kUsernsBlocks, DecodeUsernsBlock)) {
    const HostIdRange range{std::uint64_t{block.block} * kIdsPerBlock, kIdsPerBlock};
    const auto mapping = of_backup.find(block.pod_uid);
    if (mapping != of_backup.end() && Overlap(mapping->second, range)) continue;
    if (auto r = ranges.Hold(block.pod_uid, {range}); !r) return r;
  }
  return ranges.may_be_lost() ? HoldLostRanges(txn, reason) : Result<void>();
}

}  // namespace waybill::internal
