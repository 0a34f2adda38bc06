// What the model makes of a whole store: garbage collection, starting, backups and older versions.

#include <algorithm>
#include <utility>

#include "tests/support/model.h"
#include "tests/support/model_proofs.h"

namespace waybill::testing {

namespace {

std::vector<std::string> NamesOf(const ListedImage& image) {
  std::vector<std::string> names = image.repo_tags;
  names.insert(names.end(), image.repo_digests.begin(), image.repo_digests.end());
  return names;
}

bool SaysMoreThanVersionOne(const ImagePulledRecord& record) {
  return !record.manifest_digest.empty() || record.platform || record.guest_platform;
}

}  // namespace

// Whether the list has the image, for this handler if it names one; nullopt: for any. Under the
// closed rules by any spelling.
bool Model::IsListed(const std::vector<ListedImage>& images, const std::string& ref,
                     const std::optional<std::string>& stored) const {
  const std::set<std::string> known = {SpellingOf(ref), ImageOf(ref)};
  return std::any_of(images.begin(), images.end(), [&](const ListedImage& image) {
    const auto& digests = image.repo_digests;
    const bool is_it = closed_ ? known.contains(SpellingOf(image.id)) ||
                                     known.contains(ImageOf(image.id)) ||
                                     std::any_of(digests.begin(), digests.end(),
                                                 [&](const std::string& digest) {
                                                   return known.contains(SpellingOf(digest));
                                                 })
                               : image.id == ref;
    const std::string& handler = image.runtime_handler;
    return is_it && (!stored || handler.empty() || Stored(handler).value_or(handler) == *stored);
  });
}

// Part of a write to come, if there is anything to write.
PruneReport Model::PruneRecords(const std::vector<ListedImage>& images, const OldEnough& old_enough,
                                const EntryOldEnough& entry_old_enough, bool& wrote) {
  PruneReport report;
  std::vector<CopyKey> gone;
  std::map<std::string, std::vector<CopyKey>> surplus;  // by refs that others are listed for
  std::set<std::string> spoken_for;                     // refs of which a record stays
  const bool remembers = closed_ && evidence_.remember.count() > 0;
  for (auto& [copy, record] : records_) {
    const std::string& ref = record.image_ref;
    const auto entry = ledger_.find(copy);
    ++report.examined;
    std::uint64_t* kept = nullptr;
    if (IsListed(images, ref, copy.second)) {
      kept = &report.kept_in_list;
      if (record.absent_since) {
        record.absent_since.reset();
        record.stamp = writes_ + 1;
        wrote = true;
      }
    } else if (closed_ && record.absent_since && !IsListed(images, ref, std::nullopt) &&
               (record.closed_by_operator || (remembers && !IsOver(record.absent_ran)))) {
      // What pulls proved of it goes in its time.
      if ((!remembers || IsOver(record.absent_ran)) && !record.credential_mapping.empty()) {
        DropCredentials(record);
        record.stamp = writes_ + 1;
        wrote = true;
      }
      continue;
    } else if (!old_enough(record) ||
               (entry != ledger_.end() && !entry_old_enough(entry->second))) {
      kept = &report.kept_newer;
    } else if (closed_ && record.closed_by_operator && IsListed(images, ref, std::nullopt)) {
      kept = &report.kept_in_list;
    }
    if (kept != nullptr) {
      ++*kept;
      spoken_for.insert(copy.first);
    } else if (IsListed(images, ref, std::nullopt)) {
      surplus[copy.first].push_back(copy);
    } else {
      gone.push_back(copy);
    }
  }
  for (auto& [ref, copies] : surplus) {
    if (!spoken_for.contains(ref)) {
      // The one that was written last goes on saying that the ref was pulled.
      const auto last =
          std::max_element(copies.begin(), copies.end(), [&](const CopyKey& a, const CopyKey& b) {
            return records_.at(a).stamp < records_.at(b).stamp;
          });
      ImagePulledRecord& record = records_.at(*last);
      ++report.kept_without_credentials;
      if (!record.credential_mapping.empty()) {
        DropCredentials(record);
        record.stamp = writes_ + 1;
        wrote = true;
      }
      copies.erase(last);
    }
    gone.insert(gone.end(), copies.begin(), copies.end());
  }
  never_listed_went_ = false;
  for (const CopyKey& copy : gone) {
    const bool goes = std::none_of(surplus.begin(), surplus.end(),
                                   [&](const auto& one) { return one.first == copy.first; });
    ImagePulledRecord& record = records_.at(copy);
    never_listed_went_ = never_listed_went_ || (closed_ && goes && !WasListed(record.image_ref));
    const bool stays = closed_ && record.closed_by_operator;
    const bool was_absent = (remembers || stays) && goes && record.absent_since;
    report.removed += was_absent ? 0 : 1;
    if (goes && !was_absent && (stays || remembers)) {
      record.absent_since = AbsentFrom();
      if (!remembers) DropCredentials(record);
      record.absent_ran = RanSeconds();
      record.stamp = writes_ + 1;
      // What comes back may be what the pull brought.
      report.preloaded_removed += ledger_.erase(copy);
    } else {
      Unrecord(copy);
    }
  }
  wrote = wrote || !gone.empty();
  if (report.removed > 0) EvidenceRemoved();
  return report;
}

PruneReport Model::Prune(const std::vector<ListedImage>& images, std::uint64_t token) {
  const Model before = *this;
  const bool keeps_time = closed_ && MustKeepTime();
  bool wrote = false;
  const auto is_old = [&](const auto& one) { return one.stamp <= token; };
  PruneReport report = PruneRecords(images, is_old, is_old, wrote);
  if (never_listed_went_) PullOfAnything();
  if (closed_) {
    report.preloaded_removed += PruneLedger(images, token);
    last_list_ = std::max(last_list_, token);
  }
  KeepWithinBound();
  changed_ = wrote || before.Evidence() != Evidence() || keeps_time;
  if (changed_) Written();
  return report;
}

PruneReport Model::PruneBefore(const std::vector<ListedImage>& images, Timestamp until) {
  bool wrote = false;
  const PruneReport report = PruneRecords(
      images,
      [&](const ImagePulledRecord& record) {
        if (!record.last_updated) return true;
        Timestamp time = *record.last_updated;
        time.nanoseconds = 0;  // what a kubelet's file keeps
        return time < until;
      },
      [](const PreloadedImage&) { return true; }, wrote);
  const auto before = records_.size() + ledger_.size();
  KeepWithinBound();
  if (wrote || before != records_.size() + ledger_.size()) Written();
  return report;
}

// A record without credentials, where there is none. Part of a write to come.
bool Model::Close(const std::string& ref, const std::string& stored, Timestamp time, bool by_list) {
  const CopyKey copy{ImageOf(ref), stored};
  if (records_.contains(copy)) return false;
  ImagePulledRecord& record = records_[copy];
  record.image_ref = ref;
  record.runtime_handler = stored;
  if (closed_) record.closed_because = "a list";
  record.closed_by_list = by_list;
  record.last_updated = time;
  record.stamp = writes_ + 1;
  return true;
}

void Model::TakeBroken(const ModelOpening& opening) {
  if (opening.broken_refs.empty() && opening.broken_images.empty()) return;
  for (const std::string& ref : opening.broken_refs) {
    if (broken_refs_.insert(ref).second && closed_) PullOfAnything();
  }
  for (const std::string& image : opening.broken_images) {
    // The closed rules: nobody can read what it pulls.
    if (broken_images_.insert(image).second && closed_) PullOfAnything();
  }
  Written();
}

// The kubelet's: each image with the name of an intent gets a record, and the intent goes.
void Model::Replay(const std::vector<ListedImage>& images, ModelOpened& opened) {
  const Timestamp time = now_;
  bool wrote = false;
  std::map<IntentKey, ModelPull> intents;
  for (const ModelPull& one : pulls_) {
    intents.emplace(IntentKey(one.pull.image, one.pull.runtime_handler), one);
  }
  for (const auto& [key, one] : intents) {
    const UnresolvedPull& intent = one.pull;
    if (!one.image.name) continue;
    bool matches = false;
    for (const ListedImage& image : images) {
      // What is listed for one handler is not what another one's pull brings; but intents of the
      // default one may be of a time without handlers.
      const std::string& handler = image.runtime_handler;
      const bool named = !handler.empty() && !intent.runtime_handler.empty();
      if (named && Stored(handler).value_or(handler) != intent.runtime_handler) continue;
      for (const std::string& listed : NamesOf(image)) {
        if (intent.image != listed) continue;
        matches = true;
        wrote = Close(image.id, intent.runtime_handler, time) || wrote;
      }
    }
    if (!matches) continue;
    ++opened.intents_replayed;
    wrote = EraseIntents(key) || wrote;
  }
  // What an unreadable intent may stand for is closed likewise.
  for (const ListedImage& image : images) {
    const std::string& handler = image.runtime_handler;
    for (const std::string& listed : NamesOf(image)) {
      if (!broken_images_.contains(listed)) continue;
      wrote = Close(image.id, Stored(handler).value_or(handler), time) || wrote;
    }
  }
  if (wrote) Written();
}

void Model::CloseGap(const std::vector<ListedImage>& images, ModelOpened& opened) {
  const Timestamp time = now_;
  for (const ListedImage& image : images) {
    const std::string& handler = image.runtime_handler;
    if (AnyRecordOf(image.id)) continue;
    Close(image.id, Stored(handler).value_or(handler), time);
    ++opened.gap_closed;
  }
  if (gap_ || opened.gap_closed > 0) Written();
  gap_ = false;
}

ModelOpened Model::Restart(const ModelOpening& opening) {
  ModelOpened opened;
  in_flight_.clear();
  metrics_ = {};
  last_token_ = 0;
  preloaded_ = opening.preloaded.value_or(std::vector<ListedImage>());
  if (opening.max_age && *opening.max_age != max_age_) {
    max_age_ = *opening.max_age;
    Written();
  }
  if (opening.handlers) opened.runtimes = Replace(*opening.handlers);
  // What follows is another commit.
  const bool replaced = std::any_of(records_.begin(), records_.end(),
                                    [&](const auto& one) { return one.second.stamp > writes_; });
  if (replaced && !counts_) ++writes_;
  TakeBroken(opening);
  // An opening that names no directory of a kubelet does not know what its files say, nor does one
  // that can't read a record there.
  const bool names_it = !opening.broken_refs.empty() || !opening.broken_images.empty();
  took_files_over_ = took_files_over_ || names_it;
  if (!opening.continues_pulls && opening.broken_refs.empty() && (names_it || !took_files_over_)) {
    DropOldRevocations(opening.revocations_kept, opening.oldest_backup);
  }
  opened.intents_found = CountPulls();
  if (closed_ && !opening.continues_pulls) EndRunningPulls();
  const bool after_gap =
      opening.gap == Gap::kYes || (opening.gap != Gap::kNo && gap_) ||
      (closed_ && awaits_first_list_ && opening.first_start == FirstStart::kClose);
  if (opening.images && closed_) {
    opened.observed =
        ObserveAt({.images = *opening.images, .complete = true}, preloaded_, after_gap, true);
    if (after_gap) opened.gap_closed = opened.observed->closed;
  } else if (opening.images) {
    opened.intents_found = intents().size();
    Replay(*opening.images, opened);
    if (after_gap) CloseGap(*opening.images, opened);
  } else if (after_gap && !gap_) {
    gap_ = true;
    Written();
  }
  return opened;
}

bool Model::DownLoses() const {
  const auto of_other = [](const auto& one) { return !one.first.second.empty(); };
  return std::any_of(records_.begin(), records_.end(),
                     [&](const auto& record) {
                       return of_other(record) || SaysMoreThanVersionOne(record.second);
                     }) ||
         std::any_of(ledger_.begin(), ledger_.end(), of_other) ||
         std::any_of(pulls_.begin(), pulls_.end(),
                     [](const ModelPull& one) { return !one.pull.runtime_handler.empty(); }) ||
         std::any_of(revocations_.begin(), revocations_.end(),
                     [](const Revocation& one) { return !one.runtime_handler.empty(); }) ||
         // The default handler's name alone is given again at the next start.
         std::any_of(handlers_.begin(), handlers_.end(), [](const RuntimeHandler& known) {
           return !known.is_default || known.guest_platform;
         });
}

void Model::Down() {
  RuntimesReport ignored;
  // Nobody tells a migration the rules, so it takes the later time.
  Fold([](const std::string&) { return true; }, now_, ignored);
  for (auto& [copy, record] : records_) {
    if (!SaysMoreThanVersionOne(record)) continue;
    DropCredentials(record);
    record.manifest_digest.clear();
    record.platform.reset();
    record.guest_platform.reset();
  }
  handlers_.clear();
  Written();
}

void Model::Up() { Written(); }

// A record of the store that a backup replaces: it closes what the backup has no record of. An
// operator's word stays, and of two closings that of another kind.
void Model::KeepRecorded(const CopyKey& copy, const ImagePulledRecord& old) {
  const std::string stored = Stored(old.runtime_handler).value_or(old.runtime_handler);
  const CopyKey own{ImageOf(copy.first), stored};
  const auto at = records_.find(own);
  const auto entry = ledger_.find(own);
  const bool is_new = at == records_.end();
  bool closes = is_new || old.closed_by_operator;
  bool by_list = old.closed_by_list;
  if (!is_new) {
    const ImagePulledRecord& kept = at->second;
    const bool none = kept.credential_mapping.empty() && old.credential_mapping.empty();
    const bool is_guess = kept.closed_by_list && !old.closed_by_list;
    closes =
        closes || (none && (kept.closed_because.empty() != old.closed_because.empty() || is_guess));
    by_list = by_list && kept.closed_by_list;
  }
  if (!is_new) StaysPrivate(old, at->second);
  if (!closes) return;
  ImagePulledRecord& kept = records_[own];
  StaysPrivate(old, kept);
  if (is_new) {
    kept.image_ref = old.image_ref;
    kept.runtime_handler = stored;
    kept.last_updated = old.last_updated;
    kept.absent_since = entry == ledger_.end() ? old.absent_since : entry->second.absent_since;
    kept.guest_platform = old.guest_platform;
  }
  kept.closed_because = old.closed_because;
  if (closed_ && kept.closed_because.empty() && kept.credential_mapping.empty()) {
    kept.closed_because = "a restore";
  }
  kept.closed_by_list = by_list;
  kept.closed_by_operator = old.closed_by_operator;
  kept.stamp = writes_ + 1;
  if (kept.absent_since || kept.closed_by_operator) ledger_.erase(own);
}

// Of an image with a record, whose a digest is stays known: it may come back with another ID.
void Model::KeepRefs(const Model& replaced) {
  for (const auto& [copy, row] : replaced.rows_) {
    if (!replaced.AnyRecordOf(copy.first)) continue;
    const std::string image = ImageOf(copy.first);
    const CopyKey own{image, Stored(copy.second).value_or(copy.second)};
    const auto is_anothers = [&](const std::string& ref) {
      const std::string digest = SpellingOf(ref);
      const auto has = [&](const auto& all) {
        return std::any_of(all.begin(), all.end(),
                           [&](const auto& one) { return one.first.first == digest; });
      };
      return digest != image && (has(records_) || has(ledger_) || has(rows_));
    };
    std::set<std::string> refs = row.refs;
    std::erase_if(refs, is_anothers);
    Row& kept = rows_[own];
    kept.listed = kept.listed || row.listed;
    kept.refs.merge(refs);
    TidyRow(own);
  }
  for (auto& [copy, record] : records_) {
    if (ImageOf(record.image_ref) != copy.first) record.image_ref = copy.first;
  }
}

std::uint64_t Model::Restore(const Model& backup) {
  const Model before_restore = *this;
  const auto replaced = std::move(records_);
  committed_.clear();
  std::uint64_t without_credentials = 0;
  records_ = backup.records_;
  for (auto& [copy, record] : records_) {
    record.stamp = writes_ + 1;
    const auto before = replaced.find(copy);
    // What this store does not say as well may have been taken back since.
    if (record.credential_mapping.empty()) continue;
    if (before != replaced.end() &&
        before->second.credential_mapping == record.credential_mapping) {
      record.credential_mapping = before->second.credential_mapping;  // proven when it says
      continue;
    }
    DropCredentials(record);
    ++without_credentials;
  }
  handlers_ = backup.handlers_;
  // Another image may have one of the digests since.
  rows_ = backup.rows_;
  for (auto& [copy, row] : rows_) {
    const auto there = before_restore.rows_.find(copy);
    const Row known = there == before_restore.rows_.end() ? Row() : there->second;
    row.listed = row.listed && known.listed;
    std::erase_if(row.refs, [&](const std::string& ref) { return !known.refs.contains(ref); });
  }
  for (const Revocation& one : backup.revocations_) PutRevocation(one);
  // How long they and what is remembered last begins anew.
  for (Revocation& one : revocations_) one.ran = static_cast<std::uint64_t>(TimesNow().ran);
  last_truth_ = std::max(last_truth_, backup.last_truth_);
  RestoreEvidence(backup);
  for (const auto& [copy, record] : replaced) KeepRecorded(copy, record);
  for (const auto& [copy, row] : backup.rows_) TidyRow(copy);
  KeepRefs(before_restore);
  // What either could not read stays closed.
  broken_refs_.insert(backup.broken_refs_.begin(), backup.broken_refs_.end());
  broken_images_.insert(backup.broken_images_.begin(), backup.broken_images_.end());
  gap_ = gap_ || backup.gap_;
  loss_ = true;
  in_flight_.clear();
  times_.ages = std::max(times_.ages, backup.times_.ages);
  took_files_over_ = backup.took_files_over_;
  for (auto& [copy, row] : rows_) row.stamp = writes_ + 1;
  for (auto& [copy, record] : records_) record.absent_ran = RanSeconds();
  for (auto& [copy, entry] : ledger_) {
    if (entry.absent_since) entry.absent_ran = RanSeconds();
  }
  EvidenceRemoved();
  Written();
  return without_credentials;
}

}  // namespace waybill::testing
