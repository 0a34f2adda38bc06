// From the kubelet's files into the store.
//
// A credential is taken only where the kubelet can have proven it: while the guard watches, or in a
// file that is not older than what the store has. If an earlier copy of the file may have been put
// back, it only shows that the image was pulled.

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "guard/guard.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"

namespace waybill::guard {
namespace {

bool SameCoordinates(const ImagePullSecret& a, const ImagePullSecret& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

std::int64_t SecondsOf(const ImagePulledRecord& record) {
  return record.last_updated ? record.last_updated->seconds : 0;
}

bool Holds(const ImagePullCredentials& all, const ImagePullSecret& secret) {
  return std::any_of(all.kubernetes_secrets.begin(), all.kubernetes_secrets.end(),
                     [&](const ImagePullSecret& one) {
                       return SameCoordinates(one, secret) &&
                              one.credential_hash == secret.credential_hash;
                     });
}

bool Holds(const ImagePullCredentials& all, const ImagePullServiceAccount& account) {
  return std::any_of(all.kubernetes_service_accounts.begin(), all.kubernetes_service_accounts.end(),
                     [&](const ImagePullServiceAccount& one) {
                       return one.uid == account.uid &&
                              one.namespace_name == account.namespace_name &&
                              one.name == account.name;
                     });
}

// `into`, with what only `from` has. If both have a hash of one secret, that of `into` stays.
ImagePullCredentials UnitedCredentials(ImagePullCredentials into,
                                       const ImagePullCredentials& from) {
  if (into.node_pods_accessible || from.node_pods_accessible) {
    if (!into.node_pods_accessible) into.node_pods_proof = from.node_pods_proof;
    into.node_pods_accessible = true;
    into.kubernetes_secrets.clear();
    into.kubernetes_service_accounts.clear();
    return into;
  }
  for (const ImagePullSecret& secret : from.kubernetes_secrets) {
    const bool known =
        std::any_of(into.kubernetes_secrets.begin(), into.kubernetes_secrets.end(),
                    [&](const ImagePullSecret& one) { return SameCoordinates(one, secret); });
    if (!known) into.kubernetes_secrets.push_back(secret);
  }
  for (const ImagePullServiceAccount& account : from.kubernetes_service_accounts) {
    if (!Holds(into, account)) into.kubernetes_service_accounts.push_back(account);
  }
  return into;
}

ImagePulledRecord United(const ImagePulledRecord& newer, const ImagePulledRecord& older) {
  ImagePulledRecord united = newer;
  for (const auto& [name, credentials] : older.credential_mapping) {
    auto [at, is_new] = united.credential_mapping.emplace(name, credentials);
    if (!is_new) at->second = UnitedCredentials(at->second, credentials);
  }
  return united;
}

// The part of `after` that `before` does not have.
ImagePulledRecord Added(const ImagePulledRecord& after, const ImagePulledRecord& before) {
  ImagePulledRecord added = after;
  for (auto& [name, credentials] : added.credential_mapping) {
    const auto was = before.credential_mapping.find(name);
    if (was == before.credential_mapping.end()) continue;
    if (was->second.node_pods_accessible) credentials.node_pods_accessible = false;
    std::erase_if(credentials.kubernetes_secrets,
                  [&](const ImagePullSecret& secret) { return Holds(was->second, secret); });
    std::erase_if(credentials.kubernetes_service_accounts,
                  [&](const ImagePullServiceAccount& one) { return Holds(was->second, one); });
  }
  std::erase_if(added.credential_mapping, [](const auto& entry) { return entry.second.empty(); });
  return added;
}

// The part of `a` that `b` has, too.
ImagePulledRecord Common(const ImagePulledRecord& a, const ImagePulledRecord& b) {
  return Added(a, Added(a, b));
}

// Whether only a successful pull can have written `after` over `before`. A pull adds the credential
// that it was made with. A decision adds a secret whose hash or coordinates are known already, and
// several writes may be read as one, so nothing else may have changed.
bool OnlyAPullWrites(const ImagePullCredentials* before, const ImagePullCredentials& after) {
  if (after.empty()) return false;
  if (before == nullptr) return true;
  if (after.node_pods_accessible) return !before->node_pods_accessible;
  std::size_t added = 0;
  for (const ImagePullSecret& secret : after.kubernetes_secrets) {
    if (Holds(*before, secret)) continue;
    ++added;
    const auto& all = before->kubernetes_secrets;
    if (std::any_of(all.begin(), all.end(), [&](const ImagePullSecret& one) {
          return SameCoordinates(one, secret) || one.credential_hash == secret.credential_hash;
        })) {
      return false;
    }
  }
  for (const ImagePullServiceAccount& account : after.kubernetes_service_accounts) {
    if (!Holds(*before, account)) ++added;
  }
  return added == 1;
}

Result<void> Interrupted() {
  return Error{ErrorCode::kInterrupted,
               "the guard was asked to end before it was ready; what it took over is kept",
               "start it again to go on"};
}

}  // namespace

Result<void> Guard::TakeOverAll() {
  // Records first: a pull of unknown beginning must not prove their credentials.
  auto records = TRY(pulled_.Names());
  const bool starting = phase_ == Phase::kStarting;
  for (const std::string& name : records) {
    // If a running guard breaks off a comparison, events tell it the rest.
    if (Hurries()) return starting ? Interrupted() : Result<void>();
    TRY(TakeOverRecord(name));
  }
  TRY(pulled_.SyncFolder());
  for (const auto& [name, wanted] : wanted_records_) {
    if (!std::binary_search(records.begin(), records.end(), name)) removed_.insert(name);
  }
  auto intents = TRY(pulling_.Names());
  for (const std::string& name : intents) {
    if (Hurries()) return starting ? Interrupted() : Result<void>();
    TRY(TakeOverIntent(name, false));
  }
  TRY(pulling_.SyncFolder());
  // Pulls whose intents went while nobody looked.
  std::vector<std::string> gone;
  for (auto& [name, running] : running_) {
    running.ambiguous = true;
    if (!std::binary_search(intents.begin(), intents.end(), name)) gone.push_back(name);
  }
  for (const std::string& name : gone) {
    TRY(IntentGone(name));
  }
  return {};
}

Result<void> Guard::TakeOverRecord(const std::string& name) {
  auto file = TRY(pulled_.Read(name));
  if (!file) return {};
  TRY(pulled_.SyncFile(name));
  const auto* record = std::get_if<ImagePulledRecord>(&file->judged.content);
  if (record == nullptr) {
    if (file->is_later_format) {
      LeaveAlone(pulled_.path() / name);
    } else {
      damaged_.insert(name);
      wants_list_ = true;
    }
    return {};
  }
  damaged_.erase(name);
  removed_.erase(name);
  if (!file->judged.is_own) NoteVersion(file->content);
  if (file->judged.is_own && !lost_ && record->credential_mapping.empty()) {
    // The store knows what it says, or has forgotten that with the image.
    return {};
  }
  return TakeOverContent(name, *record);
}

Result<void> Guard::TakeOverContent(const std::string& name, ImagePulledRecord record) {
  if (IsPlaceholder(record)) return {};
  auto known = store_->GetRecord({.image_ref = record.image_ref});
  if (!known && known.error().code != ErrorCode::kNotFound) return known.error();
  const bool starting = phase_ == Phase::kStarting;
  const bool is_older = known && SecondsOf(record) < SecondsOf(*known);
  // While the guard watches, the kubelet alone writes. At a start the file may have been put back:
  // if nothing was written since the last guard ended, or if something newer was lost.
  const bool believed = !starting || (gap_ && !lost_ && !is_older);
  NoteProof(known ? United(Seen(name), *known) : Seen(name), record);
  ImagePulledRecord put = NewIn(name, record, believed);
  // A kubelet begins anew with an image that was gone: what its record no longer has does not
  // count.
  const bool begins_anew = known && known->absent_since && !put.credential_mapping.empty();
  if (begins_anew) known->credential_mapping = Common(*known, record).credential_mapping;
  const ImagePulledRecord seen = Seen(name);
  if (!known && put.credential_mapping.empty()) {
    // If its image is gone, the record must not count for another: the next list tells.
    seen_[name] = United(record, seen);
    unproven_.push_back(std::move(put));
    wants_list_ = true;
    return {};
  }
  if (known) {
    const bool is_newer = !starting || SecondsOf(record) > SecondsOf(*known);
    put = is_newer ? United(put, *known) : United(*known, put);
    put.image_ref = record.image_ref;
    put.last_updated = std::max(record.last_updated, known->last_updated);
  }
  if (!known || begins_anew || !SaysTheSame(put, *known)) {
    auto stored = store_->PutRecord(put);
    if (!stored && stored.error().code != ErrorCode::kLimitExceeded) return stored;
    if (!stored) {
      Log(LogLevel::kWarning,
          (pulled_.path() / name).string() + " can't be kept: " + stored.error().ToString());
    }
    known = store_->GetRecord({.image_ref = record.image_ref});
    if (!known) return stored ? known.error() : Result<void>();
  }
  seen_[name] = United(record, seen);
  // What does not count (it was forgotten, say) must go from the file.
  if (!SaysTheSame(*known, record)) wants_list_ = true;
  // With this it is put back at once if it vanishes before the next list.
  known->image_ref = record.image_ref;
  if (!preloaded_.contains(name)) wanted_records_[name] = *std::move(known);
  return {};
}

ImagePulledRecord Guard::Seen(const std::string& name) const {
  const auto seen = seen_.find(name);
  return seen == seen_.end() ? ImagePulledRecord() : seen->second;
}

// The part of a record in a file that is to be recorded: what is new since it was seen last. The
// kubelet keeps in memory, and writes again, credentials that the store has forgotten.
ImagePulledRecord Guard::NewIn(const std::string& name, const ImagePulledRecord& record,
                               bool believed) {
  ImagePulledRecord put = Added(record, Seen(name));
  if (!believed || !believes_memory_) put.credential_mapping.clear();
  return put;
}

// Nobody has time to record what happened; the next start does. What can't be told is a gap.
Result<void> Guard::LeaveToNext(const WatchEvent& event) {
  using What = WatchEvent::What;
  // The next start compares the pods' ID mappings.
  if (event.folder == WatchedFolder::kPods || event.folder == WatchedFolder::kPod) return {};
  if (event.folder == WatchedFolder::kRoot && event.name != image_manager_.filename() &&
      event.what != What::kOverflow && event.what != What::kReplaced) {
    return {};
  }
  if (event.what == What::kOverflow || event.what == What::kReplaced ||
      event.folder == WatchedFolder::kRoot) {
    left_.missed = "there was no time to compare the kubelet's files";
    return {};
  }
  // What went tells nothing that must be recorded: the next start puts it back, and a pull whose
  // intent went ends when the store is opened.
  if (event.what != What::kWritten || !internal::IsRecordName(event.name)) return {};
  if (event.folder == WatchedFolder::kPulled) {
    auto file = TRY(pulled_.Read(event.name));
    if (!file) return {};
    // Any other content is unreadable for the next start, too.
    const auto* record = std::get_if<ImagePulledRecord>(&file->judged.content);
    if (record == nullptr || IsPlaceholder(*record)) return {};
    if (file->judged.is_own && record->credential_mapping.empty()) return {};
    ImagePulledRecord put = NewIn(event.name, *record, true);
    seen_[event.name] = United(*record, Seen(event.name));
    // Nothing that the guard itself wrote is new.
    if (put.credential_mapping.empty() && store_->GetRecord({.image_ref = put.image_ref})) {
      return {};
    }
    left_.records.push_back(std::move(put));
    return {};
  }
  auto file = TRY(pulling_.Read(event.name));
  const auto* intent = file ? std::get_if<ImagePullIntent>(&file->judged.content) : nullptr;
  if (intent != nullptr && file->judged.is_own) return {};
  const auto image = intent != nullptr ? std::optional(intent->image) : StringOfIntent(event.name);
  if (!image) {
    left_.missed = "the intent " + event.name + " could not be read in time";
    return {};
  }
  if (left_.pulls.empty() || left_.pulls.back() != *image) left_.pulls.push_back(*image);
  return {};
}

// What the guard before this one saw, and had no time to record.
Result<void> Guard::TakeLeft() {
  // Without an open pull the store did not remember what was forgotten since (Stop opens one). A
  // list that somebody else had judged may have ended it.
  auto pulls = TRY(store_->ListOpenPulls());
  const bool believed = !lost_ && !pulls.empty();
  while (!left_.records.empty()) {
    if (Hurries()) return Interrupted();
    ImagePulledRecord put = left_.records.front();
    // It may have been revoked since, or by what was lost.
    if (!believed) put.credential_mapping.clear();
    auto known = store_->GetRecord({.image_ref = put.image_ref});
    if (!known && known.error().code != ErrorCode::kNotFound) return known.error();
    if (!known && put.credential_mapping.empty()) {
      unproven_.push_back(std::move(put));
      left_.records.pop_front();
      continue;
    }
    // As in TakeOverContent. What the file still has is taken over next.
    if (known && known->absent_since) known->credential_mapping.clear();
    if (known) {
      const auto last_updated = std::max(put.last_updated, known->last_updated);
      put = United(put, *known);
      put.last_updated = last_updated;
    }
    if (!known || !SaysTheSame(put, *known)) {
      auto stored = store_->PutRecord(put);
      if (!stored && stored.error().code != ErrorCode::kLimitExceeded) return stored;
      if (!stored) {
        Log(LogLevel::kWarning,
            "the record of " + put.image_ref + " can't be kept: " + stored.error().ToString());
      }
    }
    left_.records.pop_front();
  }
  while (!left_.pulls.empty()) {
    if (Hurries()) return Interrupted();
    TRY(NoteUnknownPull(left_.pulls.front()));
    left_.pulls.pop_front();
  }
  return {};
}

bool Guard::IsListed(const std::string& image_ref) const {
  const std::string spelling = internal::SpellingOf(image_ref);
  return images_ && std::any_of(images_->begin(), images_->end(), [&](const ImageOnNode& image) {
           return internal::SpellingOf(image.id) == spelling;
         });
}

void Guard::NoteVersion(const std::string& content) {
  const bool is_beta = content.find("kubelet.config.k8s.io/v1beta1") != std::string::npos;
  api_version_ = is_beta ? KubeletApiVersion::kV1Beta1 : KubeletApiVersion::kV1Alpha1;
}

void Guard::LeaveAlone(const std::filesystem::path& path) {
  if (!reported_.insert(path.string()).second) return;
  Log(LogLevel::kWarning, path.string() +
                              " has a format that this waybill does not know: it is left as it "
                              "is; use a waybill as new as the kubelet");
  ++status_.left_alone;
}

void Guard::NoteProof(const ImagePulledRecord& before, const ImagePulledRecord& after) {
  // A kubelet that ran before the guard has more in memory than its files say.
  if (status_.kubelet_ran_before) return;
  for (const auto& [image_name, credentials] : after.credential_mapping) {
    const auto was = before.credential_mapping.find(image_name);
    const auto* const entry = was == before.credential_mapping.end() ? nullptr : &was->second;
    if (!OnlyAPullWrites(entry, credentials)) continue;
    // A record has no tags: any of several pulls of a repository may have written it.
    const std::string repository = RepositoryOf(image_name);
    const auto of_ended = std::count_if(ended_.begin(), ended_.end(), [&](const EndedPull& ended) {
      return RepositoryOf(ended.image) == repository;
    });
    const auto of_running = std::count_if(
        running_.begin(), running_.end(),
        [&](const auto& running) { return RepositoryOf(running.second.image) == repository; });
    for (auto& [name, running] : running_) {
      if (RepositoryOf(running.image) != repository) continue;
      running.ambiguous = running.ambiguous || of_ended + of_running > 1 ||
                          !running.proven_ref.empty() ||
                          ImageName(running.image) != std::string_view(image_name);
      running.proven_ref = after.image_ref;
    }
  }
}

// Without a list any of these records may be about an image on the node.
Result<void> Guard::TakeOverUnproven(const std::vector<ImageOnNode>* images) {
  std::set<std::string> listed;
  if (images != nullptr) {
    for (const ImageOnNode& image : *images) {
      listed.insert(internal::SpellingOf(image.id));
      for (const std::string& digest : image.repo_digests) {
        listed.insert(internal::SpellingOf(digest));
      }
    }
  }
  while (!unproven_.empty()) {
    if (Hurries() && phase_ == Phase::kRunning) return {};
    const ImagePulledRecord& record = unproven_.back();
    if (images == nullptr || listed.contains(internal::SpellingOf(record.image_ref))) {
      TRY(store_->PutRecord(record));
    }
    unproven_.pop_back();
  }
  return {};
}

// At a start: finds out which images unreadable files are about, and closes them.
Result<void> Guard::CloseDamaged(const std::vector<ImageOnNode>& images) {
  // If anything fails here, the next list repeats it; nothing is judged before.
  std::set<std::string> left = damaged_;
  const auto close = [&](const std::string& ref) -> Result<void> {
    if (left.erase(RecordNameOf(ref)) == 0) return {};
    const ImageCopy copy = {.image_ref = ref};
    auto known = store_->GetRecord(copy);
    if (known) return {};
    if (known.error().code != ErrorCode::kNotFound) return known.error();
    auto why = TRY(store_->Explain({.image = ref, .image_ref = ref}));
    if (why.ledger_entry) return {};
    ImagePulledRecord closed;
    closed.image_ref = ref;
    closed.last_updated = options_.store.clock();
    return store_->PutRecord(closed);
  };
  for (const ImageOnNode& image : images) {
    std::vector<std::string> refs = internal::PlainSpellings(image.id);
    refs.insert(refs.end(), image.repo_digests.begin(), image.repo_digests.end());
    for (const std::string& ref : refs) {
      TRY(close(ref));
    }
  }
  // The store may know the ref of an image that is not listed.
  auto records = TRY(store_->ListRecords());
  for (const ImagePulledRecord& record : records) left.erase(RecordNameOf(record.image_ref));
  if (!left.empty()) {
    TRY(MissedSomething("the record " + *left.begin() +
                        " can't be read, and nobody knows which image it is about"));
  }
  damaged_.clear();
  return {};
}

Result<void> Guard::TakeOverIntent(const std::string& name, bool was_written) {
  auto file = TRY(pulling_.Read(name));
  if (!file) return was_written ? IntentMissed(name) : Result<void>();
  const auto* intent = std::get_if<ImagePullIntent>(&file->judged.content);
  if (intent != nullptr && file->judged.is_own) {
    // The store knows what it says, unless that was lost.
    auto has = TRY(store_->HasIntent({.image = intent->image}));
    return has || !lost_ ? Result<void>() : NoteUnknownPull(intent->image);
  }
  TRY(pulling_.SyncFile(name));
  if (was_written) {
    TRY(pulling_.SyncFolder());
  }
  if (intent == nullptr) {
    if (file->is_later_format) {
      LeaveAlone(pulling_.path() / name);
      // Whatever it says, an image is being pulled.
      return MissedSomething("an intent has a format that this waybill does not know");
    }
    if (const std::string& other = file->judged.misfiled; !other.empty()) {
      auto has = TRY(store_->HasIntent({.image = other}));
      TRY(has ? Result<void>() : NoteUnknownPull(other));
    }
    auto pulls = TRY(store_->ListOpenPulls());
    const bool is_known = std::any_of(pulls.begin(), pulls.end(), [&](const OpenPull& pull) {
      return !pull.anything && RecordNameOf(pull.image) == name;
    });
    wants_list_ = true;
    return is_known ? Result<void>() : MissedSomething("the intent " + name + " can't be read");
  }
  NoteVersion(file->content);
  if (phase_ == Phase::kStarting && !kubelet_runs_) {
    // The kubelet that pulled has ended, and its pull with it.
    auto has = TRY(store_->HasIntent({.image = intent->image}));
    return has && !gap_ ? Result<void>() : NoteUnknownPull(intent->image);
  }
  if (!was_written && running_.contains(name)) return {};
  RunningPull& running = running_[name];
  running.image = intent->image;
  auto id = TRY(store_->RecordPullIntent({.image = intent->image}));
  running.ids.push_back(id);
  running.since = options_.store.boot_clock().nanoseconds;
  // Nobody saw how many pulls it stands for.
  if (!was_written) running.ambiguous = true;
  return {};
}

// An intent that was gone before it could be read. A pull of unknown end, if its string is known.
Result<void> Guard::IntentMissed(const std::string& name) {
  wants_list_ = true;
  const auto running = running_.find(name);
  if (running != running_.end()) {
    running->second.ambiguous = true;
    auto id = TRY(store_->RecordPullIntent({.image = running->second.image}));
    running->second.ids.push_back(id);
    return {};
  }
  const auto pulled = [&](const std::string& image) -> Result<void> {
    running_[name].image = image;
    return NoteUnknownPull(image);
  };
  if (const auto image = StringOfIntent(name)) return pulled(*image);
  return MissedSomething("the intent " + name + " was gone before it could be read");
}

// The image string that hashes to the name of an intent, if anything here has it.
std::optional<std::string> Guard::StringOfIntent(const std::string& name) {
  if (const auto running = running_.find(name); running != running_.end()) {
    return running->second.image;
  }
  if (const auto known = wanted_intents_.find(name); known != wanted_intents_.end()) {
    return known->second;
  }
  if (!listed_strings_) {
    listed_strings_.emplace();
    for (const ImageOnNode& image : images_.value_or(std::vector<ImageOnNode>())) {
      for (const std::string& tag : image.repo_tags) {
        for (const std::string& string : internal::EquivalentImages(tag)) {
          listed_strings_->emplace(RecordNameOf(string), string);
        }
      }
    }
  }
  const auto listed = listed_strings_->find(name);
  return listed == listed_strings_->end() ? std::nullopt : std::optional(listed->second);
}

Result<void> Guard::IntentGone(const std::string& name) {
  wants_list_ = true;
  const auto at = running_.find(name);
  if (at == running_.end()) {
    auto there = TRY(internal::Exists(pulling_.path() / name));
    const auto wanted = wanted_intents_.find(name);
    if (!there && wanted != wanted_intents_.end()) {
      Found(HoleKind::kIntentDropped, wanted->second,
            "the kubelet dropped the intent of a pull that may still bring it");
    }
    return {};
  }
  RunningPull& running = at->second;
  if (running.ids.size() == 1 && !running.proven_ref.empty() && !running.ambiguous) {
    ended_.push_back({running.image, running.ids.front(), running.proven_ref, lists_});
    running_.erase(at);
    return {};
  }
  if (running.ids.size() > 1) {
    Found(HoleKind::kIntentDropped, running.image,
          "the kubelet dropped the intent of several pulls, of which some may still run");
  }
  while (!running.ids.empty()) {
    TRY(EndPull(running.image, running.ids.back()));
    running.ids.pop_back();
  }
  running_.erase(at);
  return {};
}

// A pull that ended while nobody saw how.
Result<void> Guard::NoteUnknownPull(const std::string& image) {
  auto id = store_->RecordPullIntent({.image = image});
  return id ? EndPull(image, *id) : Result<void>(id.error());
}

Result<void> Guard::EndPull(const std::string& image, PullId id) {
  return store_->RecordImagePullFailed({.image = image}, PullFailure::kUnknown, id);
}

Result<void> Guard::SettleEnded(const std::vector<ImageOnNode>& images) {
  std::vector<EndedPull> left;
  for (const EndedPull& pull : ended_) {
    if (Hurries() && phase_ == Phase::kRunning) {
      left.push_back(pull);
      continue;
    }
    // The pull brought an image only if the runtime lists that under the pull's own name.
    const auto full = NormaliseImage(pull.image);
    const ImageOnNode* entry = nullptr;
    for (const ImageOnNode& image : images) {
      if (internal::SpellingOf(image.id) != internal::SpellingOf(pull.image_ref)) continue;
      const auto names = [&](const std::string& name) {
        return name == pull.image || (full && name == *full);
      };
      if (std::any_of(image.repo_tags.begin(), image.repo_tags.end(), names) ||
          std::any_of(image.repo_digests.begin(), image.repo_digests.end(), names)) {
        entry = &image;
      }
    }
    const std::string repository = RepositoryOf(pull.image);
    const bool is_alone = std::none_of(running_.begin(), running_.end(),
                                       [&](const auto& other) {
                                         return RepositoryOf(other.second.image) == repository;
                                       }) &&
                          std::none_of(ended_.begin(), ended_.end(), [&](const EndedPull& other) {
                            return other.id != pull.id && RepositoryOf(other.image) == repository;
                          });
    if (entry != nullptr && is_alone) {
      TRY(store_->RecordImagePulled({.image = pull.image, .image_ref = pull.image_ref},
                                    std::nullopt, {.pull = pull.id, .image = *entry}));
      continue;
    }
    // The first list after its end may have been made before it.
    if (lists_ <= pull.lists_before + 1) {
      left.push_back(pull);
      wants_list_ = true;
      continue;
    }
    TRY(EndPull(pull.image, pull.id));
  }
  ended_ = std::move(left);
  return {};
}

Result<void> Guard::RecordGone(const std::string& name) {
  auto there = TRY(internal::Exists(pulled_.path() / name));
  const auto wanted = wanted_records_.find(name);
  if (there) return {};
  if (wanted == wanted_records_.end()) {
    seen_.erase(name);
    return {};
  }
  // Back at once: the next list tells whether the image is gone, too.
  removed_.insert(name);
  wants_list_ = true;
  auto made = TRY(pulled_.Create(name, FileOf(wanted->second)));
  if (made) ++status_.files_written;
  return {};
}

Result<void> Guard::MissedSomething(const std::string& what) {
  Log(LogLevel::kWarning,
      what + ": images that are not known by the next list are closed, as after a gap");
  wants_list_ = true;
  return store_->NoteGap("the guard missed something: " + what);
}

// Whether something newer than what the store has may have been lost with it.
bool Guard::LostSomething() const {
  auto trust = store_->GetTrust();
  if (!trust) return true;
  std::vector<std::pair<TrustKind, std::string>> reasons;
  for (const TrustEvent& event : trust->journal) {
    if (event.action == TrustAction::kTrust) reasons.clear();
    if (event.action == TrustAction::kDistrust) reasons.emplace_back(event.kind, event.reason);
    if (event.action == TrustAction::kTakenBack) {
      std::erase(reasons, std::pair(event.kind, event.reason));
    }
  }
  return std::any_of(reasons.begin(), reasons.end(), [](const auto& reason) {
    return reason.first != TrustKind::kGap && reason.first != TrustKind::kImportUnfinished;
  });
}

}  // namespace waybill::guard
