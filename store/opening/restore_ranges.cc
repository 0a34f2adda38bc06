#include "store/opening/restore_ranges.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/pods/host_ids.h"

namespace waybill::internal {

namespace {

// What the rows of a replaced store say.
enum class ReplacedRanges : std::uint8_t {
  kWhole,       // it is sound, and no range was handed out since
  kNewer,       // they are newer than the backup's
  kMayBeOlder,  // its sequence is below the backup's: it was put back itself
};

class Restoration {
 public:
  Restoration(StoreTxn& txn, ReplacedRanges known, RestoreReport& report)
      : txn_(txn), known_(known), report_(report) {}

  Result<void> ReadReplaced() {
    auto rows = TRY(ReadHostIds(txn_));
    for (HostIds& row : rows) {
      AddTo(taken_, RangesOf(row));
      rows_.emplace(row.pod_uid, std::move(row));
    }
    unknown_ = rows_.find("");
    return {};
  }

  // False: what is not known lies in a kubelet's files.
  bool may_be_lost() const {
    return known_ != ReplacedRanges::kWhole ||
           (unknown_ != rows_.end() && !IsUntilImport(unknown_->second));
  }

  Result<void> Add(const HostIds& of_backup) {
    const auto at = rows_.find(of_backup.pod_uid);
    const bool is_new = at == rows_.end();
    HostIds made{.pod_uid = of_backup.pod_uid};
    HostIds& row = is_new ? made : at->second;
    const bool is_same = row.range == of_backup.range;
    std::uint64_t* counted = &report_.id_mappings_held;
    if (is_new && are_all_known()) {
      counted = &report_.id_mappings_dropped;
    } else if (is_new && !HaveAnyOf(taken_, RangesOf(of_backup))) {
      counted = &report_.id_mappings_kept;
      TRY(PutHostIds(txn_, of_backup));
    } else if (!is_new && !row.held && !(may_be_older() && (!is_same || of_backup.held))) {
      counted = is_same ? &report_.id_mappings_kept : &report_.id_mappings_dropped;
    } else if (!are_all_known()) {
      TRY(HoldAlsoWith(of_backup, row));
    }
    *counted += of_backup.has_range() ? 1 : 0;
    return {};
  }

  // Pods of ranges that are older than those of the backup that contradict them.
  Result<void> HoldContradicted() {
    if (!may_be_older()) return {};
    for (auto& [pod_uid, row] : rows_) {
      if (row.has_range() && !row.held && HaveAnyOf(contradicted_, RangesOf(row))) {
        TRY(HoldAlsoWith({.pod_uid = pod_uid}, row));
      }
    }
    return {};
  }

 private:
  bool are_all_known() const { return known_ == ReplacedRanges::kWhole && unknown_ == rows_.end(); }
  bool may_be_older() const { return known_ == ReplacedRanges::kMayBeOlder; }

  // A range of the row that may be the older one is no longer the pod's, but one that it may have.
  Result<void> HoldAlsoWith(const HostIds& of_backup, HostIds& row) {
    const std::vector<HostIdRange> ranges = RangesOf(of_backup);
    AddTo(contradicted_, ranges);
    QuarantinedPod held{
        .reason = may_be_older() ? "its range is that of a backup, or of the store that it "
                                   "replaced, and may be another pod's by now"
                                 : "its range is that of a backup, and may be another pod's by now",
        .kind = PodQuarantineKind::kFromBackup};
    if (row.held) held = *row.held;
    held.ranges = ranges;
    if (may_be_older() && row.has_range()) {
      held.ranges.push_back(row.range);
      row.range = {};
    }
    if (of_backup.may_have_any()) held.ranges.clear();
    return Hold(txn_, row, std::move(held));
  }

  StoreTxn& txn_;
  const ReplacedRanges known_;
  RestoreReport& report_;
  std::map<std::string, HostIds> rows_;  // of the replaced store
  std::map<std::string, HostIds>::iterator unknown_;
  BlockSet taken_;         // what its pods have or may have
  BlockSet contradicted_;  // by ranges of the backup
};

// Existing keys keep their values.
Result<void> CarryUnchanged(StoreTxn& txn, const Salvaged& of) {
  for (const auto& payload : of.of(Table::kHostIds)) {
    const auto key = SpecOf(Table::kHostIds).key_of(payload, txn.seed());
    if (key) TRY(txn.PutNew(Table::kHostIds, *key, payload));
  }
  return {};
}

Result<void> Restore(StoreTxn& txn, const Replacing& from, RestoreReport& report) {
  auto known = from.old->sequence() >= from.source.sequence() ? ReplacedRanges::kNewer
                                                              : ReplacedRanges::kMayBeOlder;
  if (from.old_is_newest) known = ReplacedRanges::kWhole;
  Restoration restoration(txn, known, report);
  TRY(restoration.ReadReplaced());
  for (const HostIds& row : from.source.All(Table::kHostIds, DecodeHostIds)) {
    if (!row.pod_uid.empty()) TRY(restoration.Add(row));
  }
  TRY(restoration.HoldContradicted());
  if (restoration.may_be_lost()) TRY(HoldLostRanges(txn, from.reason));
  const auto rows = TRY(ReadHostIds(txn));
  for (const HostIds& row : rows) {
    report.id_mappings += row.has_range() ? 1 : 0;
    report.id_ranges_lost = report.id_ranges_lost || row.pod_uid.empty();
  }
  return {};
}

}  // namespace

Result<void> CarryHostIds(StoreTxn& txn, const Replacing& from, Carried& carried) {
  TRY(CarryUnchanged(txn, from.old != nullptr ? *from.old : from.source));
  if (from.old != nullptr) return Restore(txn, from, carried);
  const bool has_all = from.is_newest && from.source.Has(Table::kHostIds);
  return has_all ? Result<void>() : HoldLostRanges(txn, from.reason);
}

}  // namespace waybill::internal
