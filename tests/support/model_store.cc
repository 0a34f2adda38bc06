// What the model makes of a whole store: garbage collection, starting, backups and older versions.

#include <algorithm>
#include <utility>

#include "tests/support/model.h"

namespace waybill::testing {

namespace {

std::vector<std::string> NamesOf(const ImageOnNode& image) {
  std::vector<std::string> names = image.repo_tags;
  names.insert(names.end(), image.repo_digests.begin(), image.repo_digests.end());
  return names;
}

std::optional<std::string> FullForm(const std::string& listed) {
  for (const KnownImage& image : KnownImages()) {
    if (image.image == listed) return image.normalised;
  }
  return std::nullopt;
}

bool SaysMoreThanVersionOne(const ImagePulledRecord& record) {
  return !record.manifest_digest.empty() || record.platform || record.guest_platform;
}

}  // namespace

bool Model::RuleFourSpares(const ImagePulledRecord& record) const {
  for (const auto& [name, credentials] : record.credential_mapping) {
    for (const auto& [key, intent] : intents_) {
      // The repository of a name is that of any image of that name.
      for (const KnownImage& known : KnownImages()) {
        if (known.name == name && known.repository == intent.repository) return true;
      }
      if (intent.name == name) return true;
    }
  }
  return false;
}

PruneReport Model::PruneIf(const std::vector<ListedImage>& images, const auto& old_enough) {
  PruneReport report;
  std::vector<CopyKey> gone;
  std::map<std::string, std::vector<CopyKey>> surplus;  // by refs that others are listed for
  std::set<std::string> spoken_for;                     // refs of which a record stays
  for (const auto& [copy, record] : records_) {
    ++report.examined;
    bool ref_listed = false;
    bool copy_listed = false;
    for (const ListedImage& image : images) {
      if (image.image_ref != copy.first) continue;
      ref_listed = true;
      const bool any = image.runtime_handler.empty();
      const std::string stored = Stored(image.runtime_handler).value_or(image.runtime_handler);
      copy_listed = copy_listed || any || stored == copy.second;
    }
    std::uint64_t* kept = nullptr;
    if (copy_listed) {
      kept = &report.kept_in_list;
    } else if (!old_enough(record)) {
      kept = &report.kept_newer;
    } else if (closed_ && RuleFourSpares(record)) {
      kept = &report.kept_intent;
    }
    if (kept != nullptr) {
      ++*kept;
      spoken_for.insert(copy.first);
    } else if (ref_listed) {
      surplus[copy.first].push_back(copy);
    } else {
      gone.push_back(copy);
    }
  }
  bool wrote = false;
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
        record.credential_mapping.clear();
        record.stamp = writes_ + 1;
        wrote = true;
      }
      copies.erase(last);
    }
    gone.insert(gone.end(), copies.begin(), copies.end());
  }
  for (const CopyKey& copy : gone) records_.erase(copy);
  report.removed = gone.size();
  if (wrote || !gone.empty()) Written();
  return report;
}

PruneReport Model::Prune(const std::vector<ListedImage>& images, std::uint64_t token) {
  return PruneIf(images, [&](const ImagePulledRecord& record) { return record.stamp <= token; });
}

PruneReport Model::PruneBefore(const std::vector<ListedImage>& images, Timestamp until) {
  return PruneIf(images, [&](const ImagePulledRecord& record) {
    if (!record.last_updated) return true;
    Timestamp time = *record.last_updated;
    if (!closed_) time.nanoseconds = 0;  // what a kubelet's file keeps
    return time < until;
  });
}

// A record without credentials, where there is none. Part of a write to come.
bool Model::Close(const std::string& ref, const std::string& stored, Timestamp time) {
  if (records_.contains({ref, stored})) return false;
  ImagePulledRecord& record = records_[{ref, stored}];
  record.image_ref = ref;
  record.runtime_handler = stored;
  record.last_updated = time;
  record.stamp = writes_ + 1;
  return true;
}

void Model::TakeBroken(const ModelOpening& opening) {
  if (opening.broken_refs.empty() && opening.broken_images.empty()) return;
  broken_refs_.insert(opening.broken_refs.begin(), opening.broken_refs.end());
  broken_images_.insert(opening.broken_images.begin(), opening.broken_images.end());
  Written();
}

void Model::Replay(const std::vector<ImageOnNode>& images, ModelOpened& opened) {
  // Closed rule 1: compared in full, closed, kept.
  const auto same = [&](const KnownImage& intent, const std::string& listed) {
    if (!closed_) return intent.image == listed;
    return intent.normalised.value_or(intent.image) == FullForm(listed).value_or(listed);
  };
  const Timestamp time = TimeOfWriting();
  bool wrote = false;
  std::vector<IntentKey> matched;
  for (const auto& [key, intent] : intents_) {
    // The kubelet makes no record for what has no name.
    if (!closed_ && !intent.name) continue;
    bool matches = false;
    for (const ImageOnNode& image : images) {
      // What is listed for one handler is not what another one's pull brings; but intents of the
      // default one may be of a time without handlers.
      const std::string& handler = image.runtime_handler;
      const bool named = !handler.empty() && !key.second.empty();
      if (named && Stored(handler).value_or(handler) != key.second) continue;
      for (const std::string& listed : NamesOf(image)) {
        if (!same(intent, listed)) continue;
        matches = true;
        wrote = Close(image.id, key.second, time) || wrote;
      }
    }
    if (matches) matched.push_back(key);
  }
  // What an unreadable intent may stand for is closed likewise.
  for (const ImageOnNode& image : images) {
    const std::string& handler = image.runtime_handler;
    for (const std::string& listed : NamesOf(image)) {
      for (const std::string& broken : broken_images_) {
        const auto full = FullForm(listed);
        const bool equivalent = closed_ && full && FullForm(broken) == full;
        if (broken != listed && !equivalent) continue;
        wrote = Close(image.id, Stored(handler).value_or(handler), time) || wrote;
      }
    }
  }
  for (const IntentKey& key : matched) {
    if (!closed_) wrote = intents_.erase(key) != 0 || wrote;
  }
  opened.intents_replayed = matched.size();
  if (wrote) Written();
}

void Model::CloseGap(const std::vector<ImageOnNode>& images, ModelOpened& opened) {
  const Timestamp time = TimeOfWriting();
  for (const ImageOnNode& image : images) {
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
  if (opening.handlers) opened.runtimes = Replace(*opening.handlers);
  TakeBroken(opening);
  opened.intents_found = intents_.size();
  const bool after_gap = opening.gap == Gap::kYes || (opening.gap != Gap::kNo && gap_);
  if (opening.images) {
    Replay(*opening.images, opened);
    if (after_gap) CloseGap(*opening.images, opened);
  } else if (after_gap && !gap_) {
    gap_ = true;
    Written();
  }
  return opened;
}

bool Model::DownLoses() const {
  const bool records = std::any_of(records_.begin(), records_.end(), [](const auto& record) {
    return !record.first.second.empty() || SaysMoreThanVersionOne(record.second);
  });
  const bool intents = std::any_of(intents_.begin(), intents_.end(),
                                   [](const auto& intent) { return !intent.first.second.empty(); });
  // The default handler's name alone is given again at the next start.
  const bool handlers = std::any_of(
      handlers_.begin(), handlers_.end(),
      [](const RuntimeHandler& known) { return !known.is_default || known.guest_platform; });
  return records || intents || handlers;
}

void Model::Down() {
  CollapseReport ignored;
  // Nobody tells a migration the rules, so it takes the later time.
  Fold([](const std::string&) { return true; }, std::max(now_, latest_), ignored);
  for (auto& [copy, record] : records_) {
    if (!SaysMoreThanVersionOne(record)) continue;
    record.credential_mapping.clear();
    record.manifest_digest.clear();
    record.platform.reset();
    record.guest_platform.reset();
  }
  handlers_.clear();
  Written();
}

std::uint64_t Model::Restore(const Model& backup, std::uint32_t version) {
  const auto replaced = std::move(records_);
  std::uint64_t without_credentials = 0;
  records_ = backup.records_;
  for (auto& [copy, record] : records_) {
    record.stamp = writes_ + 1;
    const auto before = replaced.find(copy);
    // What this store does not say as well may have been taken back since.
    if (record.credential_mapping.empty() ||
        (before != replaced.end() &&
         before->second.credential_mapping == record.credential_mapping)) {
      continue;
    }
    record.credential_mapping.clear();
    ++without_credentials;
  }
  handlers_ = backup.handlers_;
  // What either was about to pull, or could not read, stays closed.
  const auto intents = std::move(intents_);
  intents_ = backup.intents_;
  for (const auto& [key, intent] : intents) {
    const std::string stored = version == 1 ? "" : Stored(key.second).value_or(key.second);
    intents_[{key.first, stored}] = intent;
  }
  broken_refs_.insert(backup.broken_refs_.begin(), backup.broken_refs_.end());
  broken_images_.insert(backup.broken_images_.begin(), backup.broken_images_.end());
  gap_ = gap_ || backup.gap_;
  loss_ = true;
  in_flight_.clear();
  latest_ = std::max(latest_, backup.latest_);
  Written();
  return without_credentials;
}

void Model::ClearDistrust() {
  gap_ = false;
  loss_ = false;
  Written();
}

}  // namespace waybill::testing
