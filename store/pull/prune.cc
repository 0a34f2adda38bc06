#include "store/pull/prune.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"
#include "store/pull/clock_ahead.h"

namespace waybill::internal {

namespace {

bool OldEnough(const ImagePulledRecord& record, Rules rules, const PruneLimit& limit,
               Timestamp clock) {
  if (limit.by_stamp) return record.stamp <= limit.token;
  const bool younger = limit.mended_at != 0 && record.stamp >= limit.mended_at;
  if (younger && IsFromClockAhead(limit.until, clock)) return false;
  if (!record.last_updated) return true;
  Timestamp updated = *record.last_updated;
  // On disk the kubelet's times have whole seconds.
  if (rules == Rules::kKubelet) updated.nanoseconds = 0;
  return updated < limit.until;
}

Result<bool> NameHasIntent(const StoreTxn& txn, const ImagePulledRecord& record) {
  for (const auto& [name, credentials] : record.credential_mapping) {
    auto there = HasIntentOfRepository(txn, name);
    if (!there || *there) return there;
  }
  return false;
}

// Records to remove whose refs are on the node under other handlers.
struct OtherCopies {
  std::map<std::string, std::vector<ImagePulledRecord>> by_ref;
  std::set<std::string> known;  // refs that keep another record
};

// Removes them, except one for each ref that keeps no other record: without it the copies on the
// node would pass for preloaded.
// NOLINTNEXTLINE(performance-unnecessary-value-param): the records are moved from.
Result<void> RemoveCopies(StoreTxn& txn, OtherCopies copies, PruneReport& report) {
  for (auto& [ref, records] : copies.by_ref) {
    bool known = copies.known.contains(ref);
    // The record that was written last stays for the ref, whatever its key.
    const auto last =
        std::max_element(records.begin(), records.end(), [](const auto& x, const auto& y) {
          return x.stamp != y.stamp ? x.stamp < y.stamp : x.runtime_handler > y.runtime_handler;
        });
    std::iter_swap(records.begin(), last);
    for (ImagePulledRecord& record : records) {
      if (known) {
        auto erased = EraseRecord(txn, ref, record.runtime_handler);
        if (!erased) return erased.error();
        ++report.removed;
        continue;
      }
      known = true;
      ++report.kept_without_credentials;
      if (record.credential_mapping.empty()) continue;
      record.credential_mapping.clear();
      if (auto r = StoreRecord(txn, std::move(record)); !r) return r;
    }
  }
  return {};
}

}  // namespace

Result<PrunedPart> PruneRecords(StoreTxn& txn, Rules rules, const std::vector<PruneImage>& images,
                                const PruneLimit& limit, const PrunePart& part) {
  // The handlers under which each ref is on the node; nullopt: listed without a handler.
  std::unordered_map<std::string_view, std::set<std::optional<std::string_view>>> on_node;
  for (const PruneImage& image : images) on_node[image.image_ref].insert(image.runtime_handler);
  PrunedPart pruned;
  PruneReport& report = pruned.report;
  std::size_t changes = 0;
  Key16 last;
  std::vector<Key16> gone;
  OtherCopies copies;
  const auto keep = [&](std::uint64_t& counter, const ImagePulledRecord& record) {
    ++counter;
    copies.known.insert(record.image_ref);
    if (limit.met_ahead != nullptr && record.last_updated &&
        IsFromClockAhead(*record.last_updated, txn.clock())) {
      *limit.met_ahead = true;
    }
    return true;
  };
  const auto visit = [&](const Key16& key, Payload payload) -> Result<bool> {
    // Records of one ref are adjacent, and are judged together.
    if (changes >= part.most &&
        !std::equal(last.bytes.begin(), last.bytes.begin() + kRefKeyBytes, key.bytes.begin())) {
      pruned.next = key;
      return false;
    }
    last = key;
    ++report.examined;
    auto record = DecodePulledRecordValue(payload);
    if (!record) {  // unreadable, so it may be of an image in the list
      ++report.kept_in_list;
      return true;
    }
    const auto listed = on_node.find(record->image_ref);
    if (listed != on_node.end() && (listed->second.contains(std::nullopt) ||
                                    listed->second.contains(record->runtime_handler))) {
      return keep(report.kept_in_list, *record);
    }
    if (!OldEnough(*record, rules, limit, txn.clock())) return keep(report.kept_newer, *record);
    if (rules == Rules::kClosed) {
      auto pulling = NameHasIntent(txn, *record);
      if (!pulling) return pulling.error();
      if (*pulling) return keep(report.kept_intent, *record);
    }
    ++changes;
    if (listed == on_node.end()) {
      gone.push_back(key);
    } else {
      copies.by_ref[record->image_ref].push_back(std::move(*record));
    }
    return true;
  };
  if (auto r = txn.ForEachFrom(Table::kPulled, part.first, visit); !r) return r.error();
  for (const Key16& key : gone) {
    auto deleted = txn.Delete(Table::kPulled, key);
    if (!deleted) return deleted.error();
    ++report.removed;
  }
  if (auto r = RemoveCopies(txn, std::move(copies), report); !r) return r.error();
  return pruned;
}

}  // namespace waybill::internal
