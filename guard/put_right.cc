// From the store into the kubelet's files.

#include <algorithm>
#include <set>

#include "guard/guard.h"
#include "store/base/empty_list.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"

namespace waybill::guard {

namespace {

using internal::QuoteForMessage;

const std::string& ShownName(const ImageOnNode& image) {
  return image.repo_tags.empty() ? image.id : image.repo_tags.front();
}

}  // namespace

Result<void> Guard::PutRight() {
  TRY(PlanRecords());
  TRY(PlanIntents());
  // Intents first: new intents beside old records can only close.
  TRY(PutIntents());
  return PutRecords();
}

// What the file of a listed image must say; nullopt: there must be none.
Result<std::optional<ImagePulledRecord>> Guard::WantedRecord(const ImageOnNode& image) {
  const ImageCopy copy = {.image = ShownName(image), .image_ref = image.id};
  auto why = TRY(store_->Explain(copy));
  const bool is_preloaded = why.ledger_entry && !why.in_quarantine;
  if (is_preloaded && options_.preloaded_is_open) return std::optional<ImagePulledRecord>();
  ImagePulledRecord wanted;
  auto record = store_->GetRecord(copy);
  // A kubelet that verifies preloaded images does so without a record, too.
  if (is_preloaded && !record) return std::optional<ImagePulledRecord>();
  if (record) {
    wanted = *std::move(record);
  } else if (record.error().code != ErrorCode::kNotFound &&
             record.error().code != ErrorCode::kDamaged) {
    return record.error();
  }
  wanted.image_ref = image.id;
  // An image in quarantine is closed, whatever its record says.
  if (why.in_quarantine) wanted.credential_mapping.clear();
  return std::optional(std::move(wanted));
}

Result<void> Guard::PlanRecords() {
  std::map<std::string, ImagePulledRecord> wanted;
  std::set<std::string> preloaded;
  std::set<std::string> listed;  // by spelling
  for (const ImageOnNode& image : images_.value_or(std::vector<ImageOnNode>())) {
    if (image.id.empty()) continue;
    auto record = TRY(WantedRecord(image));
    listed.insert(internal::SpellingOf(image.id));
    for (const std::string& digest : image.repo_digests) {
      listed.insert(internal::SpellingOf(digest));
    }
    const std::string name = RecordNameOf(image.id);
    if (record) {
      wanted[name] = *std::move(record);
    } else {
      preloaded.insert(name);
    }
  }
  // For images that are newer than the list, or if there is no list.
  auto ledger = TRY(store_->ListLedger());
  for (const LedgerEntry& entry : ledger) listed.insert(internal::SpellingOf(entry.image_ref));
  status_.presumed =
      static_cast<std::uint64_t>(std::count_if(ledger.begin(), ledger.end(), IsPresumed));
  auto records = TRY(store_->ListRecords());
  for (ImagePulledRecord& record : records) {
    // No file is made for an image that is gone; SweepRecord sees to a file that the kubelet has.
    if (!record.runtime_handler.empty() || record.absent_since) continue;
    if (listed.contains(internal::SpellingOf(record.image_ref))) continue;
    const std::string name = RecordNameOf(record.image_ref);
    wanted.emplace(name, std::move(record));
  }
  wanted_records_ = std::move(wanted);
  preloaded_ = std::move(preloaded);
  return {};
}

Result<void> Guard::PlanIntents() {
  auto pulls = TRY(store_->ListOpenPulls());
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
    // For `repo:tag@digest` the runtime lists only `repo@digest`.
    const internal::NamedImage named = internal::ReadName(image);
    return !named.digest.empty() && open_names.contains(named.repository + "@" + named.digest);
  };
  std::map<std::string, std::string> wanted;
  for (const OpenPull& pull : pulls) {
    if (pull.anything || !pull.runtime_handler.empty()) continue;
    const std::string name = RecordNameOf(pull.image);
    if (!running_.contains(name) && names_open(pull.image)) continue;
    // The next list decides whether the pull brought the image.
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
    if (Hurries()) return {};
    auto file = TRY(pulling_.Read(name));
    if (file && (file->readable() || file->is_later_format)) continue;
    const std::string content = OwnForm(EncodePullIntent({.image = image}, api_version_));
    auto written =
        TRY(file ? pulling_.Replace(name, file->content, content) : pulling_.Create(name, content));
    if (!written) continue;
    ++status_.files_written;
    if (file || phase_ == Phase::kStarting) {
      Found(HoleKind::kIntentLost, image, "its intent was gone or damaged; it is written again");
    }
  }
  auto names = TRY(pulling_.Names());
  for (const std::string& name : names) {
    if (wanted_intents_.contains(name) || running_.contains(name)) continue;
    if (Hurries()) return {};
    auto file = TRY(pulling_.Read(name));
    if (!file || file->is_later_format) continue;
    // While a kubelet runs, only files that the guard itself wrote go: any other is a pull that is
    // just beginning.
    if (phase_ == Phase::kRunning && !file->judged.is_own) continue;
    auto removed = TRY(pulling_.Remove(name, file->content));
    if (removed) ++status_.files_removed;
  }
  return {};
}

Result<void> Guard::PutRecords() {
  const auto planned = wanted_records_;
  for (const auto& [name, wanted] : planned) {
    if (Hurries()) return {};
    TRY(PutRecord(name, wanted));
  }
  auto names = TRY(pulled_.Names());
  for (const std::string& name : names) {
    if (wanted_records_.contains(name)) continue;
    if (Hurries()) return {};
    TRY(SweepRecord(name));
  }
  return {};
}

Result<void> Guard::PutRecord(const std::string& name, const ImagePulledRecord& planned) {
  auto file = TRY(pulled_.Read(name));
  if (!file) {
    auto made = TRY(pulled_.Create(name, FileOf(planned)));
    if (!made) return {};
    ++status_.files_written;
    // A kubelet that starts later knows only this.
    if (phase_ == Phase::kStarting) seen_[name] = planned;
    if (phase_ == Phase::kStarting && !planned.credential_mapping.empty()) {
      Found(HoleKind::kRecordLost, planned.image_ref, "its record was gone; it is written again");
    }
    return {};
  }
  if (file->is_later_format) return {};
  ImagePulledRecord wanted = planned;
  const auto* there = std::get_if<ImagePulledRecord>(&file->judged.content);
  if (there != nullptr) {
    if (SaysTheSame(*there, wanted)) return SetForm(name, *file);
    if (phase_ == Phase::kRunning) {
      // The kubelet may have written it just now: never overwrite it unread.
      TRY(TakeOverContent(name, *there));
      const auto now = wanted_records_.find(name);
      if (now != wanted_records_.end()) wanted = now->second;
      if (SaysTheSame(*there, wanted)) return {};
    }
  }
  // Bytes that nobody can read may still tell a person what was lost.
  const auto kept = there == nullptr ? KeepAside(name, *file) : std::nullopt;
  auto replaced = TRY(pulled_.Replace(name, file->content, FileOf(wanted)));
  // If it was not replaced, the kubelet was faster: the event of its write takes that over.
  if (!replaced) return {};
  ++status_.files_written;
  rewritten_[name] = options_.store.boot_clock().nanoseconds;
  if (!file->judged.is_closing) WaitsForKubelet(wanted.image_ref);
  if (phase_ == Phase::kStarting) seen_[name] = wanted;
  if (there == nullptr) {
    Found(HoleKind::kRecordDamaged, wanted.image_ref,
          "its record could not be read (" + file->judged.problem + "); it is written again" +
              (wanted.credential_mapping.empty() ? ", without credentials" : "") +
              kept.value_or(""));
  } else {
    Found(HoleKind::kRecordStale, wanted.image_ref,
          "its record had credentials that do not count; it is written again");
  }
  return {};
}

// Sets the form of a record that the guard wrote only to close an image. While no guard runs, the
// kubelet's own collector removes the file with its image, so the kubelet must be able to read it.
// A file that a running kubelet may have read already stays as it is.
Result<void> Guard::SetForm(const std::string& name, const RecordFile& file) {
  if (!IsOwnClosing(file.judged) || (options_.live && phase_ == Phase::kRunning)) return {};
  const std::string content = FileOf(std::get<ImagePulledRecord>(file.judged.content));
  if (content == file.content) return {};
  auto replaced = pulled_.Replace(name, file.content, content, RecordFiles::Durable::kLater);
  return replaced ? Result<void>() : replaced.error();
}

Result<void> Guard::SetForms() {
  auto names = TRY(pulled_.Names());
  for (const std::string& name : names) {
    if (Hurries()) break;
    auto file = TRY(pulled_.Read(name));
    TRY(file ? SetForm(name, *file) : Result<void>());
  }
  return pulled_.SyncFolder();
}

// Sees to a file that no listed image and no record of the store needs.
Result<void> Guard::SweepRecord(const std::string& name) {
  auto file = TRY(pulled_.Read(name));
  if (!file || file->is_later_format) return {};
  const auto* there = std::get_if<ImagePulledRecord>(&file->judged.content);
  const bool is_preloaded = preloaded_.contains(name);
  if (there != nullptr && images_ && !is_preloaded) {
    return SeeToUnlisted(name, *file, *there);
  }
  const bool says_nothing = there == nullptr || there->credential_mapping.empty();
  // The ledger opens the image to all pods, and a record would close it: without credentials to
  // all, otherwise to whoever did not prove them. A record that a running kubelet wrote stays until
  // it starts again.
  const bool starting = phase_ == Phase::kStarting;
  // A record from before the image was gone does not count either: the store no longer has one.
  bool is_outdone = false;
  if (is_preloaded && !says_nothing) {
    const auto known = store_->GetRecord({.image_ref = there->image_ref});
    // But if the kubelet wrote it just now, the event of that takes it over.
    const bool is_new = !believes_memory_ || !NewIn(name, *there, true).credential_mapping.empty();
    is_outdone = !known && known.error().code == ErrorCode::kNotFound && !is_new;
  }
  const bool remove = is_preloaded ? says_nothing || starting || is_outdone
                                   : there == nullptr && images_.has_value() && starting;
  if (!remove) {
    if (is_preloaded && there != nullptr) WaitsForKubelet(there->image_ref);
    return {};
  }
  const auto kept = KeepAside(name, *file);
  if (!kept) return {};
  auto removed = TRY(pulled_.Remove(name, file->content));
  if (!removed) return {};
  ++status_.files_removed;
  if (there != nullptr && !file->judged.is_closing) WaitsForKubelet(there->image_ref);
  const std::string why = is_preloaded
                              ? "its image came without the kubelet, and is open to all pods"
                              : "it can't be read, and is about no image that the runtime lists";
  Log(kept->empty() ? LogLevel::kInfo : LogLevel::kNotice,
      "removed " + (pulled_.path() / name).string() +
          (there == nullptr ? "" : ", the record of " + QuoteForMessage(there->image_ref)) + ": " +
          why + *kept);
  return {};
}

// The record of an image that the runtime does not list. The image may be gone, or this may not be
// the kubelet's runtime: without the file, the kubelet would presume the image preloaded. So it
// stays, for the kubelet's own collector, but without credentials that do not count: they would
// come back with the image.
Result<void> Guard::SeeToUnlisted(const std::string& name, const RecordFile& file,
                                  const ImagePulledRecord& there) {
  if (file.judged.is_closing) {
    const auto known = store_->GetRecord({.image_ref = there.image_ref});
    if (known || known.error().code != ErrorCode::kNotFound) return {};
    // The kubelet's collector takes it once its image is gone.
    auto replaced =
        pulled_.Replace(name, file.content, OwnForm(EncodePulledRecord(there, api_version_)));
    return replaced ? Result<void>() : replaced.error();
  }
  const bool is_first_list = observed_at_ == 0;
  if (is_first_list && named_.insert(name).second) {
    if (status_.unlisted.size() < kMaxNamedUnlisted) status_.unlisted.push_back(there.image_ref);
    ++status_.records_unlisted;
    Log(LogLevel::kNotice, "the runtime does not list " + QuoteForMessage(there.image_ref) +
                               ": its record stays, " + (pulled_.path() / name).string());
  }
  if (phase_ != Phase::kStarting) return {};
  auto known = store_->GetRecord({.image_ref = there.image_ref});
  if (!known && known.error().code != ErrorCode::kNotFound) return known.error();
  // Recorded under another ref.
  if (known && !known->absent_since) return {};
  ImagePulledRecord wanted;
  if (known) wanted = *std::move(known);
  if (SaysTheSame(there, wanted)) return {};
  wanted.image_ref = there.image_ref;
  wanted.last_updated = there.last_updated.value_or(options_.store.clock());
  const auto kept = KeepAside(name, file);
  // In the kubelet's form: the store does not know what it says.
  auto replaced =
      TRY(pulled_.Replace(name, file.content, EncodePulledRecord(wanted, api_version_)));
  if (!replaced) return {};
  ++status_.files_written;
  seen_[name] = wanted;
  Found(HoleKind::kRecordStale, there.image_ref,
        "the runtime does not list it, and its record had credentials that do not count; it is "
        "written again" +
            kept.value_or(""));
  return {};
}

std::string Guard::FileOf(ImagePulledRecord record) const {
  // An entry without credentials says nothing.
  std::erase_if(record.credential_mapping, [](const auto& entry) { return entry.second.empty(); });
  std::string json = EncodePulledRecord(record, api_version_);
  const bool closes = record.credential_mapping.empty();
  return closes && options_.live && options_.verifies_recorded
             ? internal::ClosingForm(std::move(json))
             : OwnForm(std::move(json));
}

void Guard::WaitsForKubelet(const std::string& image_ref) {
  const bool runs = phase_ == Phase::kRunning && options_.kubelet_runs && options_.kubelet_runs();
  if (runs && status_.waiting.size() < kMaxNamedWaiting) status_.waiting.insert(image_ref);
}

// Returns the words that say where a copy of the file is; empty: it holds nothing that the store or
// the guard has not written itself, so it needs no copy. nullopt: it can't be kept, which was
// logged.
std::optional<std::string> Guard::KeepAside(const std::string& name, const RecordFile& file) {
  const auto* there = std::get_if<ImagePulledRecord>(&file.judged.content);
  const bool is_of_guard =
      file.judged.is_own && there != nullptr && there->credential_mapping.empty();
  if (file.content.empty() || is_of_guard) return "";
  auto kept = kept_.Keep(internal::FolderName(pulled_.folder()), name, file.content);
  if (kept && *kept) {
    ++status_.files_kept;
    return "; it is kept as " + (*kept)->string() + " until the next start but one";
  }
  Log(LogLevel::kWarning,
      "can't keep a copy of " + (pulled_.path() / name).string() + ": " +
          (kept ? "waybill-guard has " + std::to_string(kMaxKeptFiles) + " files or " +
                      std::to_string(kMaxKeptBytes >> 20U) + " MiB of what was kept"
                : kept.error().ToString()));
  return std::nullopt;
}

void Guard::NameUnlisted() {
  const std::size_t unlisted = status_.records_unlisted;
  if (unlisted == 0) return;
  if (images_ && images_->empty()) {
    Log(LogLevel::kWarning, "the runtime lists no images, and there are records of " +
                                internal::HowMany(unlisted, "image") +
                                ": is its disk new, or not mounted? What is known of them is kept, "
                                "and counts when they "
                                "come back");
    return;
  }
  const std::size_t all = unlisted + wanted_records_.size();
  const bool most = unlisted * 2 > all;
  Log(most ? LogLevel::kWarning : LogLevel::kNotice,
      "the runtime does not list the images of " + std::to_string(unlisted) + " of " +
          std::to_string(all) + " records; their files stay as they are" +
          (most ? ": is this the runtime that the kubelet uses?" : ""));
}

}  // namespace waybill::guard
