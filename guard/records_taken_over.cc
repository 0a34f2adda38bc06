#include <algorithm>
#include <variant>

#include "guard/record_changes.h"
#include "guard/records.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

// Once its socket exists, a kubelet has read what it reads at its start.
constexpr std::int64_t kMayHaveRead = 120 * kNanosecondsPerSecond;

std::int64_t SecondsOf(const ImagePulledRecord& record) {
  return record.last_updated ? record.last_updated->seconds : 0;
}

}  // namespace

Result<bool> RecordsTakenOver::TakeOverAll() {
  auto names = TRY(life_.pulled.Names());
  for (const std::string& name : names) {
    auto breaks_off = TRY(life_.BreaksOff());
    if (breaks_off) return false;
    TRY(TakeOver(name));
  }
  TRY(life_.pulled.SyncFolder());
  for (const auto& [name, planned] : plan_.records()) {
    if (!std::ranges::binary_search(names, name)) removed_.insert(name);
  }
  return true;
}

Result<void> RecordsTakenOver::TakeOver(const std::string& name) {
  auto file = TRY(life_.pulled.Read(name));
  if (!file) return {};
  TRY(life_.pulled.SyncFile(name));
  const auto* record = std::get_if<ImagePulledRecord>(&file->judged.content);
  if (record == nullptr) {
    if (file->is_later_format) {
      life_.LeaveAlone(life_.pulled.path() / name);
    } else {
      damaged_.insert(name);
      life_.wants_list = true;
      // A kubelet that read it may write it again as its own.
      if (file->shows) seen_[name] = United(*file->shows, Seen(name));
    }
    return {};
  }
  damaged_.erase(name);
  removed_.erase(name);
  if (!file->judged.is_own) life_.NoteVersion(file->content);
  if (file->judged.is_own && !life_.lost && record->credential_mapping.empty()) {
    // The store knows what it says, or has forgotten that with the image.
    return {};
  }
  return TakeOverContent(name, *record);
}

Result<void> RecordsTakenOver::TakeOverContent(const std::string& name,
                                               const ImagePulledRecord& record) {
  if (IsPlaceholder(record)) return {};
  auto known = TRY(life_.RecordOf(record.image_ref));
  const ImagePulledRecord seen = Seen(name);
  pulls_.NoteProof(known ? United(seen, *known) : seen, record);
  ImagePulledRecord put = NewIn(name, record);
  // While the guard watches, the kubelet alone writes. At a start the file may have been put back:
  // if nothing was written since the last guard ended, or if something newer was lost.
  const bool is_older = known && SecondsOf(record) < SecondsOf(*known);
  if (life_.starting && (!life_.gap || life_.lost || is_older)) put.credential_mapping.clear();
  const ProofTerms terms = TermsOf(put);
  if (!known && put.credential_mapping.empty()) {
    seen_[name] = United(record, seen);
    unproven_.push_back(std::move(put));
    life_.wants_list = true;
    return {};
  }
  // A kubelet begins anew with an image that was gone: what its record no longer has does not
  // count.
  const bool begins_anew = known && known->absent_since && !put.credential_mapping.empty();
  if (begins_anew) known->credential_mapping = Common(*known, record).credential_mapping;
  if (known) {
    const bool is_newer = !life_.starting || SecondsOf(record) > SecondsOf(*known);
    put = is_newer ? United(put, *known) : United(*known, put);
    put.image_ref = record.image_ref;
    put.last_updated = std::max(record.last_updated, known->last_updated);
  }
  if (!known || begins_anew || !SaysTheSame(put, *known)) {
    auto stored = TRY(Put(put, (life_.pulled.path() / name).string(), terms));
    auto now = life_.store->GetRecord({.image_ref = record.image_ref});
    if (!now) return stored ? now.error() : Result<void>();
    known = *std::move(now);
  }
  seen_[name] = United(record, seen);
  // What does not count (it was forgotten, say) must go from the file.
  if (!SaysTheSame(*known, record)) life_.wants_list = true;
  // With this it is put back at once if it vanishes before the next list.
  known->image_ref = record.image_ref;
  plan_.Set(name, *std::move(known));
  return {};
}

// Returns whether the store could keep it. `what` begins the sentence that says why not.
Result<bool> RecordsTakenOver::Put(const ImagePulledRecord& record, const std::string& what,
                                   const ProofTerms& terms) {
  auto stored = life_.store->Call(PutImage{.record = record, .terms = terms});
  if (stored) return true;
  if (stored.error().code != ErrorCode::kLimitExceeded) return stored.error();
  life_.Log(LogLevel::kWarning, what + " can't be kept: " + stored.error().ToString());
  return false;
}

ProofTerms RecordsTakenOver::TermsOf(const ImagePulledRecord& proven) const {
  // How the runtime was configured before this start is not known.
  if (life_.starting || !life_.options.who_checks || proven.credential_mapping.empty()) return {};
  ProofTerms terms = {.checker = VerifiedBy::kRegistry};
  for (const auto& [image, credentials] : proven.credential_mapping) {
    const VerifiedBy checker = life_.options.who_checks(image);
    if (checker == VerifiedBy::kRegistry) continue;
    // Not of one kind: what is said of all must be true of each.
    const bool fits = terms.checker == VerifiedBy::kRegistry || terms.checker == checker;
    terms.checker = fits ? checker : VerifiedBy::kUnknown;
    if (!fits) break;
  }
  return terms;
}

Result<void> RecordsTakenOver::Gone(const std::string& name) {
  auto there = TRY(internal::Exists(life_.pulled.path() / name));
  if (there) return {};
  const ImagePulledRecord* const planned = plan_.Find(name);
  if (planned == nullptr) {
    seen_.erase(name);
    return {};
  }
  // Back at once: the next list tells whether the image is gone, too.
  removed_.insert(name);
  life_.wants_list = true;
  auto made = TRY(life_.pulled.Create(name, plan_.FileOf(*planned)));
  if (made) ++life_.status.files_written;
  return {};
}

Result<void> RecordsTakenOver::TakeOverUnproven(const std::vector<ListedImage>* images) {
  std::set<std::string> listed;
  if (images != nullptr) {
    for (const ListedImage& image : *images) AddSpellings(image, listed);
  }
  while (!unproven_.empty()) {
    if (life_.Hurries() && !life_.starting) return {};
    const ImagePulledRecord& record = unproven_.back();
    if (images == nullptr || listed.contains(internal::SpellingOf(record.image_ref))) {
      // What a pull has proven since stays.
      const auto known = life_.store->GetRecord({.image_ref = record.image_ref});
      if (!known) TRY(life_.store->Call(PutImage{.record = record}));
    }
    unproven_.pop_back();
  }
  return {};
}

Result<void> RecordsTakenOver::CloseDamaged(const std::vector<ListedImage>& images) {
  // If anything fails here, the next list repeats it; nothing is judged before.
  std::set<std::string> left = damaged_;
  for (const ListedImage& image : images) {
    std::vector<std::string> refs = internal::PlainSpellings(image.id);
    refs.insert(refs.end(), image.repo_digests.begin(), image.repo_digests.end());
    for (const std::string& ref : refs) {
      TRY(left.erase(RecordNameOf(ref)) == 0 ? Result<void>() : Close(ref));
    }
  }
  // The store may know the ref of an image that is not listed.
  auto records = TRY(life_.store->ListRecords());
  for (const ImagePulledRecord& record : records) left.erase(RecordNameOf(record.image_ref));
  if (!left.empty()) {
    TRY(life_.Missed("the record " + *left.begin() +
                     " can't be read, and nobody knows which image it is about"));
  }
  damaged_.clear();
  return {};
}

// Records that the image was pulled, with what is not known, unless the store knows it.
Result<void> RecordsTakenOver::Close(const std::string& ref) {
  auto known = TRY(life_.RecordOf(ref));
  if (known) return {};
  auto why = TRY(life_.store->Explain({.image = ref, .image_ref = ref}));
  if (why.ledger_entry) return {};
  ImagePulledRecord closed;
  closed.image_ref = ref;
  closed.last_updated = life_.options.store.clock();
  TRY(life_.store->Call(PutImage{.record = closed}));
  return {};
}

Result<void> RecordsTakenOver::LeaveToNext(const std::string& name, Left& left) {
  auto file = TRY(life_.pulled.Read(name));
  if (!file) return {};
  // Any other content is unreadable for the next start, too.
  const auto* record = std::get_if<ImagePulledRecord>(&file->judged.content);
  if (record == nullptr || IsPlaceholder(*record)) return {};
  if (file->judged.is_own && record->credential_mapping.empty()) return {};
  ImagePulledRecord put = NewIn(name, *record);
  seen_[name] = United(*record, Seen(name));
  // Nothing that the guard itself wrote is new.
  if (put.credential_mapping.empty() && life_.store->GetRecord({.image_ref = put.image_ref})) {
    return {};
  }
  left.records.push_back(std::move(put));
  return {};
}

Result<void> RecordsTakenOver::TakeOverLeft(ImagePulledRecord record, bool believed) {
  if (!believed) record.credential_mapping.clear();
  auto known = TRY(life_.RecordOf(record.image_ref));
  if (!known && record.credential_mapping.empty()) {
    unproven_.push_back(std::move(record));
    return {};
  }
  if (known) {
    // As in TakeOverContent. What the file still has is taken over next.
    if (known->absent_since) known->credential_mapping.clear();
    const auto last_updated = std::max(record.last_updated, known->last_updated);
    record = United(record, *known);
    record.last_updated = last_updated;
    if (SaysTheSame(record, *known)) return {};
  }
  TRY(Put(record, "the record of " + record.image_ref));
  return {};
}

ImagePulledRecord RecordsTakenOver::Seen(const std::string& name) const {
  const auto seen = seen_.find(name);
  return seen == seen_.end() ? ImagePulledRecord() : seen->second;
}

ImagePulledRecord RecordsTakenOver::NewIn(const std::string& name,
                                          const ImagePulledRecord& record) const {
  ImagePulledRecord put = Added(record, Seen(name));
  if (!life_.believes_memory) put.credential_mapping.clear();
  return put;
}

void RecordsTakenOver::KubeletStarted() {
  const std::int64_t now = life_.Now();
  for (auto& [name, seen] : seen_) {
    const auto rewritten = rewritten_.find(name);
    if (rewritten != rewritten_.end() && now - rewritten->second < kMayHaveRead) continue;
    auto file = life_.pulled.Read(name);
    const auto* there =
        file && *file ? std::get_if<ImagePulledRecord>(&(*file)->judged.content) : nullptr;
    if (there != nullptr) seen = *there;
  }
  rewritten_.clear();
}

}  // namespace waybill::guard
