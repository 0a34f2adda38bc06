#include <utility>
#include <variant>

#include "guard/record_changes.h"
#include "guard/records.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/empty_list.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

using internal::QuoteForMessage;

constexpr std::size_t kMaxNamedUnlisted = 100;
constexpr std::size_t kMaxNamedWaiting = 1000;

const ImagePulledRecord* RecordIn(const RecordFile& file) {
  return std::get_if<ImagePulledRecord>(&file.judged.content);
}

}  // namespace

Result<void> RecordsPutRight::PutRight() {
  // Some are planned anew meanwhile.
  const auto planned = plan_.records();
  for (const auto& [name, record] : planned) {
    if (life_.Hurries()) return {};
    TRY(Put(name, record));
  }
  auto names = TRY(life_.pulled.Names());
  for (const std::string& name : names) {
    if (plan_.Find(name) != nullptr) continue;
    if (life_.Hurries()) return {};
    TRY(Sweep(name));
  }
  return {};
}

Result<void> RecordsPutRight::Put(const std::string& name, const ImagePulledRecord& planned) {
  auto file = TRY(life_.pulled.Read(name));
  if (!file) return Make(name, planned);
  if (file->is_later_format) return {};
  const auto* there = RecordIn(*file);
  // Nothing in it is new.
  if (file->in_wide && file->shows && SaysTheSame(*file->shows, planned)) return {};
  if (there == nullptr) return Rewrite(name, *file, planned);
  if (SaysTheSame(*there, planned)) return SetForm(name, *file);
  if (life_.starting) return Rewrite(name, *file, planned);
  // The kubelet may have written it just now: never overwrite it unread.
  TRY(taken_over_.TakeOverContent(name, *there));
  const ImagePulledRecord* const now = plan_.Find(name);
  const ImagePulledRecord& wanted = now == nullptr ? planned : *now;
  return SaysTheSame(*there, wanted) ? Result<void>() : Rewrite(name, *file, wanted);
}

Result<void> RecordsPutRight::Make(const std::string& name, const ImagePulledRecord& planned) {
  auto made = TRY(life_.pulled.Create(name, plan_.FileOf(planned)));
  if (!made) return {};
  ++life_.status.files_written;
  if (!life_.starting) return {};
  taken_over_.Saw(name, planned);
  if (!planned.credential_mapping.empty()) {
    life_.Found(HoleKind::kRecordLost, planned.image_ref,
                "its record was gone; it is written again");
  }
  return {};
}

Result<void> RecordsPutRight::Rewrite(const std::string& name, const RecordFile& file,
                                      const ImagePulledRecord& wanted) {
  const bool is_damaged = RecordIn(file) == nullptr;
  // Bytes that nobody can read may still tell a person what was lost.
  const auto kept = is_damaged ? KeepAside(name, file) : std::nullopt;
  auto replaced = TRY(life_.pulled.Replace(name, file.content, plan_.FileOf(wanted)));
  // If it was not replaced, the kubelet was faster: the event of its write takes that over.
  if (!replaced) return {};
  ++life_.status.files_written;
  taken_over_.NoteRewritten(name);
  if (!file.judged.is_closing) WaitsForKubelet(wanted.image_ref);
  if (life_.starting) taken_over_.Saw(name, wanted);
  if (is_damaged) {
    life_.Found(
        HoleKind::kRecordDamaged, wanted.image_ref,
        (file.is_planted ? "its record is no kubelet's word (" : "its record could not be read (") +
            file.judged.problem + "); it is written again" +
            (wanted.credential_mapping.empty() ? ", without credentials" : "") + kept.value_or(""));
  } else {
    life_.Found(HoleKind::kRecordStale, wanted.image_ref,
                "its record had credentials that do not count; it is written again");
  }
  return {};
}

// Sets the form of a record that the guard wrote only to close an image. While no guard runs, the
// kubelet's own collector removes the file with its image, so the kubelet must be able to read it.
// A file that a running kubelet may have read already stays as it is.
Result<void> RecordsPutRight::SetForm(const std::string& name, const RecordFile& file) const {
  if (!IsOwnClosing(file.judged) || (life_.options.live && !life_.starting)) return {};
  const std::string content = plan_.FileOf(std::get<ImagePulledRecord>(file.judged.content));
  if (content == file.content) return {};
  TRY(life_.pulled.Replace(name, file.content, content, RecordFiles::Durable::kLater));
  return {};
}

Result<void> RecordsPutRight::SetForms() {
  auto names = TRY(life_.pulled.Names());
  for (const std::string& name : names) {
    if (life_.Hurries()) break;
    auto file = TRY(life_.pulled.Read(name));
    TRY(file ? SetForm(name, *file) : Result<void>());
  }
  return life_.pulled.SyncFolder();
}

// Sees to a file that no listed image and no record of the store needs.
Result<void> RecordsPutRight::Sweep(const std::string& name) {
  auto file = TRY(life_.pulled.Read(name));
  if (!file || file->is_later_format) return {};
  const auto* there = RecordIn(*file);
  const bool is_preloaded = plan_.preloaded().contains(name);
  if (there != nullptr && listed_.known() && !is_preloaded) {
    return SeeToUnlisted(name, *file, *there);
  }
  if (file->is_planted && !is_preloaded) return SeeToPlanted(name, *file);
  if (MustGo(name, there)) return TakeAway(name, *file);
  if (is_preloaded && there != nullptr) WaitsForKubelet(there->image_ref);
  return {};
}

// nullptr: the file can't be read.
bool RecordsPutRight::MustGo(const std::string& name, const ImagePulledRecord* there) const {
  if (!plan_.preloaded().contains(name))
    return there == nullptr && listed_.known() && life_.starting;
  // The ledger opens the image to all pods, and a record would close it: without credentials to
  // all, otherwise to whoever did not prove them. A record that a running kubelet wrote stays until
  // it starts again.
  if (life_.starting || there == nullptr || there->credential_mapping.empty()) return true;
  // A record from before the image was gone does not count either: the store no longer has one. But
  // if the kubelet wrote it just now, the event of that takes it over.
  const bool is_new =
      !life_.believes_memory || !taken_over_.NewIn(name, *there).credential_mapping.empty();
  return !is_new && IsUnknown(*there);
}

Result<void> RecordsPutRight::TakeAway(const std::string& name, const RecordFile& file) {
  const auto kept = KeepAside(name, file);
  if (!kept && !file.is_planted) return {};
  auto removed = TRY(life_.pulled.Remove(name, file.content));
  if (!removed) return {};
  ++life_.status.files_removed;
  const auto* there = RecordIn(file);
  if (there != nullptr && !file.judged.is_closing) WaitsForKubelet(there->image_ref);
  const std::string why = file.is_planted ? ": " + file.judged.problem : ": it can't be read";
  life_.Log(kept && kept->empty() ? LogLevel::kInfo : LogLevel::kNotice,
            "removed " + (life_.pulled.path() / name).string() +
                (there == nullptr ? "" : ", the record of " + QuoteForMessage(there->image_ref)) +
                (plan_.preloaded().contains(name)
                     ? ": its image came without the kubelet, and is open to all pods"
                     : why + ", and is about no image that the runtime lists") +
                kept.value_or(""));
  return {};
}

// The record of an image that the runtime does not list. The image may be gone, or this may not be
// the kubelet's runtime: without the file, the kubelet would presume the image preloaded. So it
// stays, for the kubelet's own collector, but without credentials that do not count: they would
// come back with the image.
Result<void> RecordsPutRight::SeeToUnlisted(const std::string& name, const RecordFile& file,
                                            const ImagePulledRecord& there) {
  if (file.judged.is_closing) {
    if (!IsUnknown(there)) return {};
    // The kubelet's collector takes it once its image is gone.
    TRY(life_.pulled.Replace(name, file.content,
                             OwnForm(EncodePulledRecord(there, life_.api_version))));
    return {};
  }
  const bool is_first_list = life_.status.judged_commit == 0;
  if (is_first_list && named_.insert(name).second) {
    GuardStatus& status = life_.status;
    if (status.unlisted.size() < kMaxNamedUnlisted) status.unlisted.push_back(there.image_ref);
    ++status.records_unlisted;
    life_.Log(LogLevel::kNotice, "the runtime does not list " + QuoteForMessage(there.image_ref) +
                                     ": its record stays, " +
                                     (life_.pulled.path() / name).string());
  }
  return life_.starting ? LeaveWhatCounts(name, file, there) : Result<void>();
}

// One that somebody else put there. If it is about an image that is not listed, its image may have
// been pulled all the same.
Result<void> RecordsPutRight::SeeToPlanted(const std::string& name, const RecordFile& file) {
  if (file.shows && RecordNameOf(file.shows->image_ref) == name) {
    return LeaveWhatCounts(name, file, *file.shows);
  }
  if (listed_.known()) return TakeAway(name, file);
  // Until a list tells what it is about, no kubelet may read it, nor find none.
  KeepAside(name, file);
  auto replaced = TRY(life_.pulled.Replace(name, file.content, internal::kClosingLine));
  if (replaced) ++life_.status.files_written;
  return {};
}

Result<void> RecordsPutRight::LeaveWhatCounts(const std::string& name, const RecordFile& file,
                                              const ImagePulledRecord& there) {
  auto known = TRY(life_.RecordOf(there.image_ref));
  // Recorded under another ref.
  if (known && !known->absent_since && !file.is_planted) return {};
  ImagePulledRecord wanted = std::move(known).value_or(ImagePulledRecord());
  if (SaysTheSame(there, wanted) && (!file.is_planted || file.in_wide)) return {};
  wanted.image_ref = there.image_ref;
  wanted.last_updated = there.last_updated.value_or(life_.options.store.clock());
  const auto kept = KeepAside(name, file);
  // In the kubelet's form: the store does not know what it says.
  auto replaced =
      TRY(life_.pulled.Replace(name, file.content, EncodePulledRecord(wanted, life_.api_version)));
  if (!replaced) return {};
  ++life_.status.files_written;
  taken_over_.Saw(name, wanted);
  const std::string why = file.is_planted ? " is no kubelet's word (" + file.judged.problem + ")"
                                          : " had credentials that do not count";
  life_.Found(HoleKind::kRecordStale, there.image_ref,
              "the runtime does not list it, and its record" + why + "; it is written again" +
                  kept.value_or(""));
  return {};
}

// Whether the store certainly has no such record.
bool RecordsPutRight::IsUnknown(const ImagePulledRecord& record) const {
  const auto known = life_.RecordOf(record.image_ref);
  return known && !*known;
}

void RecordsPutRight::WaitsForKubelet(const std::string& image_ref) {
  const GuardOptions& options = life_.options;
  const bool runs = !life_.starting && options.kubelet_runs && options.kubelet_runs();
  if (runs && life_.status.waiting.size() < kMaxNamedWaiting) {
    life_.status.waiting.insert(image_ref);
  }
}

// Returns the words that say where a copy of the file is; empty: it holds nothing that the store or
// the guard has not written itself, so it needs no copy. nullopt: it can't be kept, which was
// logged.
std::optional<std::string> RecordsPutRight::KeepAside(const std::string& name,
                                                      const RecordFile& file) {
  const auto* there = RecordIn(file);
  const bool is_of_guard =
      file.judged.is_own && there != nullptr && there->credential_mapping.empty();
  if (file.content.empty() || is_of_guard) return "";
  auto kept = kept_.Keep(name, file.content);
  if (kept && *kept) {
    ++life_.status.files_kept;
    return "; it is kept as " + (*kept)->string() + " until the next start but one";
  }
  life_.Log(LogLevel::kWarning,
            "can't keep a copy of " + (life_.pulled.path() / name).string() + ": " +
                (kept ? "waybill-guard has " + std::to_string(kMaxKeptFiles) + " files or " +
                            std::to_string(kMaxKeptBytes >> 20U) + " MiB of what was kept"
                      : kept.error().ToString()));
  return std::nullopt;
}

void RecordsPutRight::TellUnlisted() const {
  const std::size_t unlisted = life_.status.records_unlisted;
  if (unlisted == 0) return;
  if (listed_.known() && listed_.images().empty()) {
    life_.Log(LogLevel::kWarning,
              "the runtime lists no images, and there are records of " +
                  internal::HowMany(unlisted, "image") +
                  ": is its disk new, or not mounted? What is known of them is kept, and counts "
                  "when they come back");
    return;
  }
  const std::size_t all = unlisted + plan_.records().size();
  const bool most = unlisted * 2 > all;
  life_.Log(most ? LogLevel::kWarning : LogLevel::kNotice,
            "the runtime does not list the images of " + std::to_string(unlisted) + " of " +
                std::to_string(all) + " records; their files stay as they are" +
                (most ? ": is this the runtime that the kubelet uses?" : ""));
}

}  // namespace waybill::guard
