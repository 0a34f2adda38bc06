// From the store into the kubelet's files.

#include <algorithm>
#include <set>

#include "guard/guard.h"
#include "store/base/image_spellings.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"

namespace waybill::guard {

namespace {

const std::string& ShownName(const ImageOnNode& image) {
  return image.repo_tags.empty() ? image.id : image.repo_tags.front();
}

}  // namespace

Result<void> Guard::PutRight() {
  if (auto r = PlanRecords(); !r) return r;
  if (auto r = PlanIntents(); !r) return r;
  // Intents first: new intents beside old records can only close.
  if (auto r = PutIntents(); !r) return r;
  return PutRecords();
}

// What the file of a listed image must say; nullopt: there must be none.
Result<std::optional<ImagePulledRecord>> Guard::WantedRecord(const ImageOnNode& image) {
  const ImageCopy copy = {.image = ShownName(image), .image_ref = image.id};
  auto why = store_->Explain(copy);
  if (!why) return why.error();
  const bool is_preloaded = why->ledger_entry && !why->in_quarantine;
  if (is_preloaded && options_.preloaded_is_open) return std::optional<ImagePulledRecord>();
  ImagePulledRecord wanted;
  auto record = store_->GetRecord(copy);
  // Without a record such a kubelet verifies it anyway.
  if (is_preloaded && !record) return std::optional<ImagePulledRecord>();
  if (record) {
    wanted = *std::move(record);
  } else if (record.error().code != ErrorCode::kNotFound &&
             record.error().code != ErrorCode::kDamaged) {
    return record.error();
  }
  wanted.image_ref = image.id;
  // What is in quarantine is closed, whatever its record says.
  if (why->in_quarantine) wanted.credential_mapping.clear();
  return std::optional(std::move(wanted));
}

Result<void> Guard::PlanRecords() {
  std::map<std::string, ImagePulledRecord> wanted;
  std::set<std::string> preloaded;
  std::set<std::string> listed;  // by spelling
  for (const ImageOnNode& image : images_.value_or(std::vector<ImageOnNode>())) {
    if (image.id.empty()) continue;
    auto record = WantedRecord(image);
    if (!record) return record.error();
    listed.insert(internal::SpellingOf(image.id));
    for (const std::string& digest : image.repo_digests) {
      listed.insert(internal::SpellingOf(digest));
    }
    const std::string name = RecordNameOf(image.id);
    if (*record) {
      wanted[name] = **std::move(record);
    } else {
      preloaded.insert(name);
    }
  }
  // Without a list, and for what is newer than the list.
  auto ledger = store_->ListLedger();
  if (!ledger) return ledger.error();
  for (const LedgerEntry& entry : *ledger) listed.insert(internal::SpellingOf(entry.image_ref));
  auto records = store_->ListRecords();
  if (!records) return records.error();
  for (ImagePulledRecord& record : *records) {
    if (!record.runtime_handler.empty()) continue;
    if (listed.contains(internal::SpellingOf(record.image_ref))) continue;
    const std::string name = RecordNameOf(record.image_ref);
    wanted.emplace(name, std::move(record));
  }
  wanted_records_ = std::move(wanted);
  preloaded_ = std::move(preloaded);
  // What the kubelet still has of images that are gone.
  for (const auto& [name, seen] : seen_) {
    if (images_ && !wanted_records_.contains(name) && !preloaded_.contains(name)) {
      gone_.insert(name);
    }
  }
  return {};
}

Result<void> Guard::PlanIntents() {
  auto pulls = store_->ListOpenPulls();
  if (!pulls) return pulls.error();
  std::set<std::string> open_names;  // of images that are open by the ledger
  for (const ImageOnNode& image : images_.value_or(std::vector<ImageOnNode>())) {
    if (!preloaded_.contains(RecordNameOf(image.id))) continue;
    open_names.insert(image.repo_tags.begin(), image.repo_tags.end());
    open_names.insert(image.repo_digests.begin(), image.repo_digests.end());
  }
  const auto names_open = [&](const std::string& image) {
    if (open_names.contains(image)) return true;
    const auto full = NormaliseImage(image);
    if (full && open_names.contains(*full)) return true;
    // Of `repo:tag@digest` the runtime lists only `repo@digest`.
    const internal::NamedImage named = internal::ReadName(image);
    return !named.digest.empty() && open_names.contains(named.repository + "@" + named.digest);
  };
  std::map<std::string, std::string> wanted;
  for (const OpenPull& pull : *pulls) {
    if (pull.anything || !pull.runtime_handler.empty()) continue;
    const std::string name = RecordNameOf(pull.image);
    if (!running_.contains(name) && names_open(pull.image)) continue;
    // The next list decides whether it brought what is there.
    const bool undecided = std::any_of(ended_.begin(), ended_.end(),
                                       [&](const EndedPull& ended) { return ended.id == pull.id; });
    if (undecided) continue;
    wanted[name] = pull.image;
  }
  wanted_intents_ = std::move(wanted);
  return {};
}

Result<void> Guard::PutIntents() {
  for (const auto& [name, image] : wanted_intents_) {
    auto file = pulling_.Read(name);
    if (!file) return file.error();
    if (*file && ((*file)->readable() || (*file)->is_later_format)) continue;
    const std::string content = OwnForm(EncodePullIntent({.image = image}, api_version_));
    auto written =
        *file ? pulling_.Replace(name, (*file)->content, content) : pulling_.Create(name, content);
    if (!written) return written.error();
    if (!*written) continue;
    ++status_.files_written;
    if (*file || phase_ == Phase::kStarting) {
      Found(HoleKind::kIntentLost, image, "its intent was gone or damaged; it is written again");
    }
  }
  auto names = pulling_.Names();
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (wanted_intents_.contains(name) || running_.contains(name)) continue;
    auto file = pulling_.Read(name);
    if (!file) return file.error();
    if (!*file || (*file)->is_later_format) continue;
    // Of a running kubelet only what the guard itself wrote: anything else is a pull that begins
    // just now.
    if (phase_ == Phase::kRunning && !(*file)->is_own) continue;
    auto removed = pulling_.Remove(name, (*file)->content);
    if (!removed) return removed.error();
    if (*removed) ++status_.files_removed;
  }
  return {};
}

Result<void> Guard::PutRecords() {
  const auto planned = wanted_records_;
  for (const auto& [name, wanted] : planned) {
    if (auto r = PutRecord(name, wanted); !r) return r;
  }
  auto names = pulled_.Names();
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (wanted_records_.contains(name)) continue;
    if (auto r = SweepRecord(name); !r) return r;
  }
  return {};
}

Result<void> Guard::PutRecord(const std::string& name, const ImagePulledRecord& planned) {
  auto file = pulled_.Read(name);
  if (!file) return file.error();
  if (!*file) {
    auto made = pulled_.Create(name, OwnForm(EncodePulledRecord(planned, api_version_)));
    if (!made) return made.error();
    if (!*made) return {};
    ++status_.files_written;
    // A kubelet that starts later knows no more.
    if (phase_ == Phase::kStarting) seen_[name] = planned;
    if (phase_ == Phase::kStarting && !planned.credential_mapping.empty()) {
      Found(HoleKind::kRecordLost, planned.image_ref, "its record was gone; it is written again");
    }
    return {};
  }
  if ((*file)->is_later_format) return {};
  ImagePulledRecord wanted = planned;
  const auto* there = std::get_if<ImagePulledRecord>(&(*file)->judged.content);
  if (there != nullptr) {
    if (SaysTheSame(*there, wanted)) return {};
    if (phase_ == Phase::kRunning) {
      // The kubelet may have written it just now: nothing of that is overwritten unread.
      if (auto r = TakeOverContent(name, *there); !r) return r;
      const auto now = wanted_records_.find(name);
      if (now != wanted_records_.end()) wanted = now->second;
      if (SaysTheSame(*there, wanted)) return {};
      // What the kubelet kept of an image that came back is taken over once its pulls have ended.
      auto statistics = store_->GetStatistics();
      if (!statistics) return statistics.error();
      if (gone_.contains(name) && statistics->revocations == 0) return {};
    }
  }
  auto replaced =
      pulled_.Replace(name, (*file)->content, OwnForm(EncodePulledRecord(wanted, api_version_)));
  if (!replaced) return replaced.error();
  // Otherwise the kubelet was faster: what it wrote is taken over by its own event.
  if (!*replaced) return {};
  ++status_.files_written;
  rewritten_[name] = options_.store.boot_clock().nanoseconds;
  if (phase_ == Phase::kStarting) seen_[name] = wanted;
  if (there == nullptr) {
    Found(HoleKind::kRecordDamaged, wanted.image_ref,
          "its record could not be read (" + (*file)->judged.problem + "); it is written again" +
              (wanted.credential_mapping.empty() ? ", without credentials" : ""));
  } else {
    Found(HoleKind::kRecordStale, wanted.image_ref,
          "its record had credentials that do not count; it is written again");
  }
  return {};
}

// A file that no listed image and no record of the store needs.
Result<void> Guard::SweepRecord(const std::string& name) {
  auto file = pulled_.Read(name);
  if (!file) return file.error();
  if (!*file || (*file)->is_later_format) return {};
  const auto* there = std::get_if<ImagePulledRecord>(&(*file)->judged.content);
  const bool says_nothing = there == nullptr || there->credential_mapping.empty();
  // The ledger opens the image to all pods, and a record closes it: one without credentials to all,
  // any other to whoever did not prove them. What a running kubelet wrote stays until it starts
  // again.
  bool remove = preloaded_.contains(name) && (says_nothing || phase_ == Phase::kStarting);
  // A kubelet that runs may have such a record in memory, and writes nothing if its image comes
  // back.
  if (images_ && phase_ == Phase::kStarting) {
    if (there == nullptr) {
      remove = remove || !preloaded_.contains(name);
    } else if (!preloaded_.contains(name)) {
      // The image is gone, or is recorded under another ref. The store knows no more of it.
      auto known = store_->GetRecord({.image_ref = there->image_ref});
      remove = remove || (!known && known.error().code == ErrorCode::kNotFound);
    }
  }
  if (!remove) return {};
  auto removed = pulled_.Remove(name, (*file)->content);
  if (!removed) return removed.error();
  if (*removed) ++status_.files_removed;
  return {};
}

}  // namespace waybill::guard
