#include "store/node/evidence/prune.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/node/records/clock_ahead.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool OldEnough(const ImagePulledRecord& record, Mode rules, const PruneLimit& limit,
               Timestamp clock) {
  if (limit.by_stamp) return record.stamp <= limit.token;
  const bool younger = limit.mended_at != 0 && record.stamp >= limit.mended_at;
  if (younger && IsFromClockAhead(limit.until, clock)) return false;
  if (!record.last_updated) return true;
  Timestamp updated = *record.last_updated;
  // On disk the kubelet's times have whole seconds.
  if (rules == Mode::kKubelet) updated.nanoseconds = 0;
  return updated < limit.until;
}

// Since when an image that is gone is not on the node: whole seconds, never 0.
Timestamp AbsentFrom(const StoreTxn& txn) {
  return {std::max<std::int64_t>(txn.now().seconds, 1), 0};
}

template <typename T>
void BeginAbsence(const StoreTxn& txn, T& one) {
  one.absent_since = AbsentFrom(txn);
  one.absent_ran = txn.clocks().RanSeconds();
}

std::atomic<std::size_t> most_remembered = kMaxRemembered;

// What is remembered by a whole walk. Beyond the bound the oldest go.
struct Remembered {
  std::vector<std::pair<std::uint64_t, Key16>> all;  // since when, by what the node ran

  std::vector<Key16> BeyondBound() {
    std::vector<Key16> beyond;
    const std::size_t most = most_remembered;
    if (all.size() <= most) return beyond;
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(all.size() - most);
    std::nth_element(all.begin(), last, all.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(all.begin(), last, std::back_inserter(beyond),
                   [](const auto& one) { return one.second; });
    return beyond;
  }
};

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
        TRY(EraseRecord(txn, ref, record.runtime_handler));
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

// Whether anything is known of an image that is not on the node.
Result<bool> IsRemembered(const StoreTxn& txn, const std::string& image) {
  if (TRY(AnyRecordOfImage(txn, image))) return true;
  bool found = false;
  TRY(txn.ForEachWithPrefix(Table::kLedger, FirstPulledKeyOfRef(image, txn.seed()), kRefKeyBytes,
                            [&](const Key16&, Payload) -> Result<bool> {
                              found = true;
                              return false;
                            }));
  return found;
}

}  // namespace

void SetMostRememberedForTests(std::size_t most) { most_remembered = most; }

Result<void> ImagesOnNode::Add(const std::string& ref,
                               const std::optional<std::string>& runtime_handler) {
  if (rules_ == Mode::kKubelet) {
    handlers_[ref].insert(runtime_handler);
    return {};
  }
  auto image = TRY(ImageOf(txn_, ref));
  handlers_[SpellingOf(ref)].insert(runtime_handler);
  handlers_[image].insert(runtime_handler);
  return {};
}

void ImagesOnNode::AddDigest(const std::string& digest,
                             const std::optional<std::string>& runtime_handler) {
  if (rules_ == Mode::kStrict) handlers_[SpellingOf(digest)].insert(runtime_handler);
}

Result<ImagesOnNode::Handlers> ImagesOnNode::Find(const std::string& ref) const {
  Handlers found;
  const auto add = [&](const std::string& key) {
    const auto at = handlers_.find(key);
    if (at != handlers_.end()) found.insert(at->second.begin(), at->second.end());
  };
  if (rules_ == Mode::kKubelet) {
    add(ref);
    return found;
  }
  auto image = TRY(ImageOf(txn_, ref));
  add(SpellingOf(ref));
  add(image);
  return found;
}

Result<PrunedPart> PruneRecords(StoreTxn& txn, Mode rules, const ImagesOnNode& images,
                                const PruneLimit& limit, const PrunePart& part) {
  PrunedPart pruned = {.report = part.before, .next = {}};
  PruneReport& report = pruned.report;
  std::size_t changes = 0;
  Key16 last;
  std::vector<Key16> gone;
  std::vector<ImagePulledRecord> turned;  // left the node, or came back
  Remembered remembered;
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
    const auto listed = TRY(images.Find(record->image_ref));
    if (listed.contains(std::nullopt) || listed.contains(record->runtime_handler)) {
      keep(report.kept_in_list, *record);
      if (record->absent_since) {
        ++changes;
        record->absent_since.reset();
        turned.push_back(std::move(*record));
      }
      return true;
    }
    // An operator's closing waits for its image, however long that is gone. What pulls proved goes.
    const bool stays = rules == Mode::kStrict && record->closed_by_operator;
    const bool is_over = txn.clocks().HasRunSince(record->absent_ran, limit.remember);
    if (record->absent_since && listed.empty() && (stays || !is_over)) {
      if (!stays) remembered.all.emplace_back(record->absent_ran, key);
      if (stays && is_over && !record->credential_mapping.empty()) {
        record->credential_mapping.clear();
        turned.push_back(std::move(*record));
      }
      return true;
    }
    if (!OldEnough(*record, rules, limit, txn.clock())) return keep(report.kept_newer, *record);
    if (stays && !listed.empty()) return keep(report.kept_in_list, *record);
    if (rules == Mode::kStrict && listed.empty()) {
      auto was_listed = TRY(WasListed(txn, record->image_ref));
      if (limit.spared != nullptr) {
        auto image = TRY(ImageOf(txn, record->image_ref));
        if (!was_listed || limit.spared->images.contains(image)) {
          return keep(report.kept_in_list, *record);
        }
      }
      pruned.never_listed = pruned.never_listed || !was_listed;
    }
    ++changes;
    if (listed.empty() && (stays || limit.remember.count() > 0) && !record->absent_since) {
      ++report.removed;
      BeginAbsence(txn, *record);
      if (limit.remember.count() == 0) record->credential_mapping.clear();
      if (!stays) remembered.all.emplace_back(record->absent_ran, key);
      turned.push_back(std::move(*record));
    } else if (listed.empty()) {
      if (!record->absent_since || limit.remember.count() == 0) ++report.removed;
      gone.push_back(key);
    } else {
      copies.by_ref[record->image_ref].push_back(std::move(*record));
    }
    return true;
  };
  TRY(txn.ForEachFrom(Table::kPulled, part.first, visit));
  for (ImagePulledRecord& record : turned) TRY(StoreAbsence(txn, std::move(record)));
  // In parts only a full store is pruned.
  if (part.first == Key16() && !pruned.next) {
    const auto beyond = remembered.BeyondBound();
    gone.insert(gone.end(), beyond.begin(), beyond.end());
    pruned.dropped = !beyond.empty();
  }
  for (const Key16& key : gone) TRY(txn.Delete(Table::kPulled, key));
  TRY(RemoveCopies(txn, std::move(copies), report));
  if (report.removed > part.before.removed || pruned.dropped) NoteEvidenceRemoved(txn);
  return pruned;
}

Result<PrunedLedger> PruneLedger(StoreTxn& txn, const ImagesOnNode& images, const PruneLimit& limit,
                                 std::size_t most) {
  PrunedLedger pruned;
  std::vector<PreloadedImage> gone;
  std::vector<PreloadedImage> unlisted;
  Remembered remembered;
  TRY(txn.ForEach(Table::kLedger, [&](const Key16& key, Payload payload) -> Result<bool> {
    auto entry = DecodeLedgerEntry(payload);
    if (!entry || entry->stamp > limit.token) return true;
    auto found = TRY(images.Find(entry->image_ref));
    if (found.contains(entry->runtime_handler) || found.contains(std::nullopt)) return true;
    if (entry->absent_since && !txn.clocks().HasRunSince(entry->absent_ran, limit.remember)) {
      remembered.all.emplace_back(entry->absent_ran, key);
      return true;
    }
    if (limit.only_recorded && !TRY(AnyRecordOfImage(txn, entry->image_ref))) return true;
    const bool is_remembered = limit.remember.count() > 0 && !entry->absent_since && found.empty();
    if (!entry->absent_since) ++pruned.entries;
    (is_remembered ? unlisted : gone).push_back(std::move(*entry));
    pruned.more = unlisted.size() + gone.size() >= most;
    return !pruned.more;
  }));
  for (PreloadedImage& entry : unlisted) {
    BeginAbsence(txn, entry);
    TRY(StoreAbsence(txn, std::move(entry)));
  }
  for (const Key16& key : remembered.BeyondBound()) TRY(txn.Delete(Table::kLedger, key));
  for (const PreloadedImage& entry : gone) {
    TRY(EraseLedgerEntry(txn, entry.image_ref, entry.runtime_handler));
    // They tell it under another ID: of an image with a record they stay, and for what is judged
    // later.
    if (limit.spared != nullptr && limit.spared->images.contains(entry.image_ref)) continue;
    if (TRY(AnyRecordOfImage(txn, entry.image_ref))) continue;
    TRY(EraseSpellings(txn, entry.image_ref));
  }
  if (pruned.entries > 0) NoteEvidenceRemoved(txn);
  return pruned;
}

Result<void> PruneSpellings(StoreTxn& txn, const ImagesOnNode& images, std::uint64_t token) {
  std::vector<Key16> rows;
  TRY(txn.ForEach(Table::kSpellings, [&](const Key16& key, Payload payload) -> Result<bool> {
    const auto row = DecodeSpelling(payload);
    if (!row || row->stamp > token) return true;
    auto found = TRY(images.Find(row->spelling));
    if (!found.empty()) return true;
    auto remembered = TRY(IsRemembered(txn, row->image.empty() ? row->spelling : row->image));
    if (!remembered) rows.push_back(key);
    return true;
  }));
  for (const Key16& key : rows) TRY(txn.Delete(Table::kSpellings, key));
  return {};
}

}  // namespace waybill::internal
