#include "store/node/images/spellings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/node/images/merge_credentials.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

using Digests = std::unordered_map<std::string, std::set<std::string>>;

// Those that become spellings.
std::span<const std::string> FirstOf(const std::vector<std::string>& digests) {
  return std::span(digests).first(std::min(digests.size(), kMaxSpellingsPerImage));
}

// The image that a listed ID is of: a runtime may list an image by another digest than before.
Result<std::string> ImageOfId(const StoreTxn& txn, const std::string& id,
                              const std::unordered_set<std::string>& listed) {
  const std::string own = SpellingOf(id);
  auto row = TRY(FindSpelling(txn, own));
  if (!row || row->image.empty() || listed.contains(row->image)) return own;
  return row->image;
}

// Stores the row if it says something new beside the one that is known. True: it does.
Result<bool> Learn(StoreTxn& txn, const std::optional<SpellingRow>& known, SpellingRow row) {
  if (known && known->image == row.image && known->refs == row.refs) return false;
  TRY(PutSpelling(txn, std::move(row)));
  return true;
}

// Of every handler. What can't be read is left out.
Result<std::vector<ImagePulledRecord>> RecordsUnder(const StoreTxn& txn, const std::string& ref) {
  std::vector<ImagePulledRecord> records;
  TRY(txn.ForEachWithPrefix(Table::kPulled, FirstPulledKeyOfRef(ref, txn.seed()), kRefKeyBytes,
                            [&](const Key16&, Payload payload) -> Result<bool> {
                              auto record = DecodePulledRecordValue(payload);
                              if (record && record->image_ref == ref) {
                                records.push_back(std::move(*record));
                              }
                              return true;
                            }));
  return records;
}

// Whether a pull of the digest's image was recorded since the digest became its own.
Result<bool> PulledSince(const StoreTxn& txn, const SpellingRow& digest) {
  auto refs = TRY(RefsOfImage(txn, digest.image));
  for (const std::string& ref : refs) {
    auto records = TRY(RecordsUnder(txn, ref));
    for (const ImagePulledRecord& record : records) {
      if (record.stamp > digest.stamp) return true;
    }
  }
  return false;
}

// Whether a record stands under the digest, in whatever repository.
Result<bool> AnyRecordSpelt(const StoreTxn& txn, const std::string& digest) {
  bool found = false;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    found = !payload.empty() && SpellingOf(PulledRecordView(payload).ref()) == digest;
    return !found;
  }));
  return found;
}

// As which images pulls of a digest were recorded, so far, that becomes another image's or two
// images' (`owner` empty). Two of them tell as much as more.
Result<std::vector<std::string>> RecordedAs(const StoreTxn& txn,
                                            const std::optional<SpellingRow>& before,
                                            const std::string& digest, const std::string& owner) {
  constexpr std::size_t kEnough = 2;
  // The row of an ID has the image's refs.
  if (!before || before->image == digest) return std::vector<std::string>();
  std::vector<std::string> images = before->refs;
  if (before->image == owner || images.size() >= kEnough) return images;
  const bool was_shared = before->image.empty();
  const bool any = TRY(was_shared ? AnyRecordSpelt(txn, digest) : PulledSince(txn, *before));
  const std::string& as = was_shared ? digest : before->image;
  if (any && std::find(images.begin(), images.end(), as) == images.end()) images.push_back(as);
  return images;
}

// The digest is another image's now, or two images': what is stored under it is not this one's.
Result<void> LoseRef(StoreTxn& txn, const std::string& image, const std::string& digest) {
  auto row = TRY(FindSpelling(txn, image));
  if (!row || row->image != image) return {};
  const auto lost =
      std::erase_if(row->refs, [&](const std::string& ref) { return SpellingOf(ref) == digest; });
  return lost == 0 ? Result<void>() : PutSpelling(txn, std::move(*row));
}

// An image may have more refs than are kept. Those that something is stored under are.
Result<std::vector<std::string>> AsManyAsAreKept(const StoreTxn& txn,
                                                 const std::set<std::string>& refs) {
  if (refs.size() <= kMaxSpellingsPerImage) return std::vector(refs.begin(), refs.end());
  std::vector<std::string> used;
  std::vector<std::string> unused;
  for (const std::string& ref : refs) {
    auto in_use = TRY(IsInUse(txn, ref));
    (in_use ? used : unused).push_back(ref);
  }
  used.insert(used.end(), unused.begin(), unused.end());
  used.resize(kMaxSpellingsPerImage);
  std::sort(used.begin(), used.end());
  return used;
}

// The images that have each digest, by this list and, unless it is whole, by earlier ones.
Result<Digests> CollectDigests(const StoreTxn& txn, const std::vector<ImageInList>& images,
                               bool is_whole) {
  Digests digests;
  for (const ImageInList& image : images) {
    digests[SpellingOf(image.id)].insert(image.image);
    for (const std::string& digest : FirstOf(image.digests)) {
      digests[SpellingOf(digest)].insert(image.image);
    }
  }
  if (is_whole) return digests;
  for (auto& [digest, of] : digests) {
    auto row = TRY(FindSpelling(txn, digest));
    if (!row) continue;
    // Two images had it: it stays shared.
    of.insert(row->image);
    if (row->image.empty()) of.insert("another");
  }
  return digests;
}

// An ID is at least its own image's, whoever has it as a repo digest.
bool IsShared(const Digests& digests, const std::string& digest) {
  return digests.at(digest).size() > 1;
}

// The refs under which records are stored, by the image that they spell.
Result<std::map<std::string, std::set<std::string>>> RefsOfRecords(const StoreTxn& txn) {
  std::map<std::string, std::set<std::string>> refs;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    if (payload.empty()) return true;
    std::string ref = PulledRecordView(payload).ref();
    auto image = TRY(ImageOf(txn, ref));
    refs[image].insert(std::move(ref));
    return true;
  }));
  return refs;
}

// The same, of these images only.
Result<std::map<std::string, std::set<std::string>>> RefsOfRecords(
    const StoreTxn& txn, const std::vector<ImageInList>& images) {
  std::map<std::string, std::set<std::string>> stored;
  for (const ImageInList& image : images) {
    auto refs = TRY(RefsOfImage(txn, image.id));
    for (const std::string& digest : image.digests) {
      auto of = TRY(ImageOf(txn, digest));
      if (of != image.image) continue;
      // A store that went down a version has records under these, too.
      for (std::string& ref : PlainSpellings(SpellingOf(digest))) refs.push_back(std::move(ref));
    }
    for (std::string& ref : refs) {
      if (TRY(AnyRecordOf(txn, ref))) stored[image.image].insert(std::move(ref));
    }
  }
  return stored;
}

// Makes one record, for each handler, of those under the refs: the newest takes the others in. It
// is stored under the ID by which the image is listed, if one of them was: that is asked for.
Result<std::uint64_t> UniteRecords(StoreTxn& txn, const std::set<std::string>& refs,
                                   const std::string& listed_id) {
  std::map<std::string, std::vector<ImagePulledRecord>> by_handler;
  for (const std::string& ref : refs) {
    auto records = TRY(RecordsUnder(txn, ref));
    for (ImagePulledRecord& record : records) {
      by_handler[record.runtime_handler].push_back(std::move(record));
    }
  }
  std::uint64_t united = 0;
  for (auto& [handler, records] : by_handler) {
    if (records.size() < 2) continue;
    std::stable_sort(records.begin(), records.end(),
                     [](const auto& a, const auto& b) { return a.stamp > b.stamp; });
    ImagePulledRecord one = records.front();
    bool has_id = false;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (i > 0) one = TRY(Unite(txn, std::move(one), records[i]));
      has_id = has_id || records[i].image_ref == listed_id;
      TRY(EraseRecord(txn, records[i].image_ref, handler));
    }
    united += records.size() - 1;
    if (has_id) one.image_ref = records.front().image_ref = listed_id;
    auto stored = StoreRecord(txn, std::move(one));
    if (!stored && stored.error().code == ErrorCode::kLimitExceeded) {
      // Together they have too many names: the newest alone opens less.
      stored = StoreRecord(txn, std::move(records.front()));
    }
    if (!stored) return stored.error();
  }
  return united;
}

// The image may have been forgotten under a spelling that was not known to be its own.
Result<void> DropForgottenUnder(StoreTxn& txn, const std::string& ref) {
  if (txn.state().digest(Table::kRevocations).count == 0) return {};
  auto records = TRY(RecordsUnder(txn, ref));
  for (ImagePulledRecord& record : records) {
    if (!TRY(DropForgotten(txn, record))) continue;
    if (auto r = StoreRecord(txn, std::move(record)); !r) return r;
  }
  return {};
}

Result<std::vector<PreloadedImage>> EntriesUnder(const StoreTxn& txn, const std::string& digest) {
  std::vector<PreloadedImage> entries;
  TRY(txn.ForEachWithPrefix(Table::kLedger, FirstPulledKeyOfRef(digest, txn.seed()), kRefKeyBytes,
                            [&](const Key16&, Payload payload) -> Result<bool> {
                              auto entry = DecodeLedgerEntry(payload);
                              if (entry && entry->image_ref == digest)
                                entries.push_back(std::move(*entry));
                              return true;
                            }));
  return entries;
}

// Ledger entries under a digest that is now known to be of another ID.
Result<void> UniteLedger(StoreTxn& txn, const std::string& digest) {
  auto entries = TRY(EntriesUnder(txn, digest));
  auto image = TRY(ImageOf(txn, digest));
  for (PreloadedImage& entry : entries) {
    auto payload =
        TRY(txn.Get(Table::kLedger, PulledKey(image, entry.runtime_handler, txn.seed())));
    if (const auto other = payload ? DecodeLedgerEntry(*payload) : std::nullopt) {
      std::set<std::string> names(entry.names.begin(), entry.names.end());
      names.insert(other->names.begin(), other->names.end());
      entry.names.assign(names.begin(), names.end());
      if (!other->absent_since) entry.absent_since.reset();
      if (entry.names.size() > kMaxNamesPerImage) entry.names.resize(kMaxNamesPerImage);
    }
    if (auto r = PutLedgerEntry(txn, std::move(entry)); !r) return r;
  }
  return {};
}

}  // namespace

Result<ImagePulledRecord> Unite(const StoreTxn& txn, ImagePulledRecord newer,
                                ImagePulledRecord older) {
  // What was forgotten must not take the place of what was not.
  for (ImagePulledRecord* const record : {&newer, &older}) {
    TRY(DropForgotten(txn, *record));
  }
  // A record that a list only closed does not have its handler's guest: the other one tells it.
  const auto only_closed = [](const ImagePulledRecord& record) {
    return !record.guest_platform && record.credential_mapping.empty() &&
           record.manifest_digest.empty();
  };
  if (only_closed(newer)) newer.guest_platform = older.guest_platform;
  if (!older.absent_since) newer.absent_since.reset();
  newer.closed_by_list = newer.closed_by_list && older.closed_by_list;
  newer.closed_by_operator = newer.closed_by_operator || older.closed_by_operator;
  if (newer.guest_platform != older.guest_platform && !only_closed(older)) {
    newer.credential_mapping.clear();
    return newer;
  }
  const bool other_manifest = !newer.manifest_digest.empty() && !older.manifest_digest.empty() &&
                              newer.manifest_digest != older.manifest_digest;
  if (other_manifest) return newer;
  // The newer hash of a Secret wins, so it is added last.
  for (const auto& [name, credentials] : newer.credential_mapping) {
    MergeCredentials(older, name, credentials, AgingIn(txn));
    older.credential_mapping.try_emplace(name, credentials);
  }
  newer.credential_mapping = std::move(older.credential_mapping);
  newer.last_updated = std::max(newer.last_updated, older.last_updated);
  if (newer.manifest_digest.empty()) {
    newer.manifest_digest = older.manifest_digest;
    newer.platform = older.platform;
  }
  if (!newer.credential_mapping.empty()) newer.closed_because.clear();
  return newer;
}

Result<void> FindFormer(const StoreTxn& txn, std::vector<ImageInList>& images) {
  std::unordered_set<std::string> listed;
  for (const ImageInList& image : images) listed.insert(SpellingOf(image.id));
  for (ImageInList& image : images) image.image = TRY(ImageOfId(txn, image.id, listed));
  for (const ImageInList& image : images) listed.insert(image.image);
  for (ImageInList& image : images) {
    std::vector<std::string> own{image.id};
    own.insert(own.end(), image.digests.begin(), image.digests.end());
    auto of_id = TRY(FindSpelling(txn, SpellingOf(image.id)));
    for (const std::string& ref : own) {
      auto row = TRY(FindSpelling(txn, SpellingOf(ref)));
      if (!row) continue;
      image.was_shared = image.was_shared || (row->image.empty() && !of_id);
      if (!row->image.empty() && !listed.contains(row->image)) {
        image.formerly.push_back(std::move(row->image));
      }
    }
  }
  return {};
}

Result<Learnt> LearnSpellings(StoreTxn& txn, std::vector<ImageInList>& images,
                              const ListScope& scope) {
  Learnt learnt;
  auto digests = TRY(CollectDigests(txn, images, scope.is_whole));

  bool any_new = false;
  std::vector<std::string> new_digests;
  std::map<std::string, std::set<std::string>> refs;  // by image
  for (ImageInList& image : images) {
    std::set<std::string>& of_image = refs[image.image];
    if (SpellingOf(image.id) != image.image || image.id != image.image) {
      const auto plain = PlainSpellings(image.image);
      if (std::find(plain.begin(), plain.end(), image.id) == plain.end() &&
          !IsShared(digests, SpellingOf(image.id))) {
        of_image.insert(image.id);
      }
    }
    for (const std::string& digest : FirstOf(image.digests)) {
      if (IsShared(digests, SpellingOf(digest))) {
        image.shared.push_back(digest);
      } else {
        of_image.insert(digest);
      }
    }
  }
  for (const auto& [digest, of] : digests) {
    if (of.size() > 1) learnt.shared_digests.push_back(digest);
    auto before = TRY(FindSpelling(txn, digest));
    const bool had_owner = before && !before->image.empty() && before->image != digest;
    // The row of an ID has the image's refs, below.
    if (refs.contains(digest) && of.size() == 1 && *of.begin() == digest) continue;
    const std::string owner = of.size() > 1 ? "" : *of.begin();
    auto recorded_as = TRY(RecordedAs(txn, before, digest, owner));
    auto is_new = TRY(Learn(txn, before, {digest, owner, std::move(recorded_as)}));
    any_new = any_new || is_new;
    if (!is_new) continue;
    if (had_owner) TRY(LoseRef(txn, before->image, digest));
    if (of.size() == 1) new_digests.push_back(digest);
    // What was known under it is neither's.
    const bool is_id = refs.contains(digest);
    if (of.size() == 1 || is_id) continue;
    auto entries = TRY(EntriesUnder(txn, digest));
    for (const PreloadedImage& entry : entries) {
      TRY(EraseLedgerEntry(txn, digest, entry.runtime_handler));
    }
  }
  std::sort(learnt.shared_digests.begin(), learnt.shared_digests.end());

  for (auto& [image, of_image] : refs) {
    // An ID that another image has as a repo digest is known by itself only.
    if (const auto at = digests.find(image); at != digests.end() && at->second.size() > 1) {
      continue;
    }
    auto row = TRY(FindSpelling(txn, image));
    if (row && row->image == image) {
      for (const std::string& ref : row->refs) {
        const auto at = digests.find(SpellingOf(ref));
        const bool is_own =
            at == digests.end() || (at->second.size() == 1 && at->second.contains(image));
        if (is_own) of_image.insert(ref);
      }
    }
    auto all = TRY(AsManyAsAreKept(txn, of_image));
    auto is_new = TRY(Learn(txn, row, {image, image, std::move(all)}));
    any_new = any_new || is_new;
  }
  if (!any_new && !scope.is_whole) return learnt;

  for (const std::string& digest : new_digests) TRY(UniteLedger(txn, digest));
  auto stored = TRY(scope.one_pull ? RefsOfRecords(txn, images) : RefsOfRecords(txn));
  std::unordered_map<std::string, std::string> ids;  // as listed
  for (const ImageInList& image : images) ids.try_emplace(image.image, image.id);
  for (const auto& [image, of_records] : stored) {
    const auto id = ids.find(image);
    if (of_records.size() > 1 && id != ids.end()) {
      auto united = TRY(UniteRecords(txn, of_records, id->second));
      learnt.united += united;
    }
    for (const std::string& ref : of_records) {
      if (!TRY(AnyRecordOf(txn, ref))) continue;
      TRY(LearnRef(txn, ref));
      TRY(DropForgottenUnder(txn, ref));
    }
  }
  return learnt;
}

Result<void> TakeOverRecord(StoreTxn& txn, std::string_view image_ref,
                            std::string_view runtime_handler) {
  auto refs = TRY(RefsOfImage(txn, image_ref));
  if (auto r = LearnRef(txn, image_ref); !r) return r;
  for (const std::string& ref : refs) {
    if (ref == image_ref) continue;
    auto other = FindRecord(txn, ref, runtime_handler);
    if (!other && other.error().code == ErrorCode::kDamaged) continue;
    if (!other) return other.error();
    if (!*other) continue;
    auto own = FindRecord(txn, image_ref, runtime_handler);
    if (!own && own.error().code != ErrorCode::kDamaged) return own.error();
    ImagePulledRecord record = std::move(**other);
    record.image_ref = image_ref;
    if (own && *own) record = TRY(Unite(txn, std::move(**own), std::move(record)));
    TRY(EraseRecord(txn, ref, runtime_handler));
    if (auto r = StoreRecord(txn, std::move(record)); !r) return r;
  }
  return {};
}

}  // namespace waybill::internal
