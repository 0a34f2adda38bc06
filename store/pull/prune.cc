#include "store/pull/prune.h"

#include <unordered_set>

#include "store/record/pulled_record.h"

namespace waybill::internal {

namespace {

bool OldEnough(const ImagePulledRecord& record, Rules rules, const PruneLimit& limit) {
  if (limit.by_stamp) return record.stamp <= limit.token;
  if (!record.last_updated) return true;
  Timestamp updated = *record.last_updated;
  // The kubelet's times have whole seconds once they were on disk.
  if (rules == Rules::kKubelet) updated.nanoseconds = 0;
  return updated < limit.until;
}

Result<bool> NameHasIntent(const StoreTxn& txn, const ImagePulledRecord& record) {
  for (const auto& [name, credentials] : record.credential_mapping) {
    auto there = txn.HasIntentOfRepository(name);
    if (!there || *there) return there;
  }
  return false;
}

}  // namespace

Result<PruneReport> PruneRecords(StoreTxn& txn, Rules rules,
                                 const std::vector<std::string>& image_refs,
                                 const PruneLimit& limit) {
  const std::unordered_set<std::string_view> listed(image_refs.begin(), image_refs.end());
  PruneReport report;
  std::vector<Key16> gone;
  auto walked = txn.ForEach(Table::kPulled, [&](const Key16& key, Payload payload) -> Result<bool> {
    ++report.examined;
    const auto record = DecodePulledRecordValue(payload);
    if (!record) {  // nobody knows whose it is, so nobody can say that its image is gone
      ++report.kept_in_list;
      return true;
    }
    if (listed.contains(record->image_ref)) {
      ++report.kept_in_list;
      return true;
    }
    if (!OldEnough(*record, rules, limit)) {
      ++report.kept_newer;
      return true;
    }
    if (rules == Rules::kClosed) {
      auto pulling = NameHasIntent(txn, *record);
      if (!pulling) return pulling.error();
      if (*pulling) {
        ++report.kept_intent;
        return true;
      }
    }
    gone.push_back(key);
    return true;
  });
  if (!walked) return walked.error();
  for (const Key16& key : gone) {
    auto deleted = txn.Delete(Table::kPulled, key);
    if (!deleted) return deleted.error();
    ++report.removed;
  }
  return report;
}

}  // namespace waybill::internal
