#include "guard/pulls.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "guard/record_changes.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::guard {

Result<void> Pulls::TakeOverAll() {
  auto intents = TRY(life_.pulling.Names());
  for (const std::string& name : intents) {
    auto breaks_off = TRY(life_.BreaksOff());
    if (breaks_off) return {};
    TRY(TakeOver(name, false));
  }
  TRY(life_.pulling.SyncFolder());
  // Pulls whose intents went while nobody looked.
  std::vector<std::string> gone;
  for (auto& [name, running] : running_) {
    running.ambiguous = true;
    if (!std::ranges::binary_search(intents, name)) gone.push_back(name);
  }
  for (const std::string& name : gone) {
    TRY(Gone(name));
  }
  return {};
}

Result<void> Pulls::TakeOver(const std::string& name, bool was_written) {
  auto file = TRY(life_.pulling.Read(name));
  if (!file) return was_written ? Missed(name) : Result<void>();
  const auto* intent = std::get_if<ImagePullIntent>(&file->judged.content);
  if (intent != nullptr && file->judged.is_own) {
    // The store knows what it says, unless that was lost.
    auto has = TRY(life_.store->HasIntent({.image = intent->image}));
    return has || !life_.lost ? Result<void>() : NoteUnknown(intent->image);
  }
  TRY(life_.pulling.SyncFile(name));
  if (was_written) {
    TRY(life_.pulling.SyncFolder());
  }
  if (intent == nullptr) return TakeOverUnreadable(name, *file);
  life_.NoteVersion(file->content);
  if (life_.starting && !life_.kubelet_runs) {
    // The kubelet that pulled has ended, and its pull with it.
    auto has = TRY(life_.store->HasIntent({.image = intent->image}));
    return has && !life_.gap ? Result<void>() : NoteUnknown(intent->image);
  }
  if (!was_written && running_.contains(name)) return {};
  Running& running = running_[name];
  running.image = intent->image;
  running.ids.push_back(TRY(life_.BeginPull(intent->image)));
  running.since = life_.Now();
  // Nobody saw how many pulls it stands for.
  if (!was_written) running.ambiguous = true;
  return {};
}

Result<void> Pulls::TakeOverUnreadable(const std::string& name, const RecordFile& file) {
  if (file.is_later_format) {
    life_.LeaveAlone(life_.pulling.path() / name);
    // Whatever it says, an image is being pulled.
    return life_.Missed("an intent has a format that this waybill does not know");
  }
  if (const std::string& other = file.judged.misfiled; !other.empty()) {
    auto has = TRY(life_.store->HasIntent({.image = other}));
    TRY(has ? Result<void>() : NoteUnknown(other));
  }
  auto pulls = TRY(life_.store->ListOpenPulls());
  const bool is_known = std::ranges::any_of(pulls, [&](const UnresolvedPull& pull) {
    return !pull.anything && RecordNameOf(pull.image) == name;
  });
  life_.wants_list = true;
  return is_known ? Result<void>() : life_.Missed("the intent " + name + " can't be read");
}

// An intent that was gone before it could be read. A pull of unknown end, if its string is known.
Result<void> Pulls::Missed(const std::string& name) {
  life_.wants_list = true;
  const auto running = running_.find(name);
  if (running != running_.end()) {
    running->second.ambiguous = true;
    running->second.ids.push_back(TRY(life_.BeginPull(running->second.image)));
    return {};
  }
  const auto image = StringOf(name);
  if (!image) return life_.Missed("the intent " + name + " was gone before it could be read");
  running_[name].image = *image;
  return NoteUnknown(*image);
}

// The image string that hashes to the name of an intent, if anything here has it.
std::optional<std::string> Pulls::StringOf(const std::string& name) const {
  if (const auto running = running_.find(name); running != running_.end()) {
    return running->second.image;
  }
  const auto wanted = wanted_.find(name);
  return wanted != wanted_.end() ? std::optional(wanted->second) : listed_.StringOf(name);
}

Result<void> Pulls::Gone(const std::string& name) {
  life_.wants_list = true;
  const auto at = running_.find(name);
  if (at == running_.end()) {
    auto there = TRY(internal::Exists(life_.pulling.path() / name));
    const auto wanted = wanted_.find(name);
    if (!there && wanted != wanted_.end()) {
      life_.Found(HoleKind::kIntentDropped, wanted->second,
                  "the kubelet dropped the intent of a pull that may still bring it");
    }
    return {};
  }
  Running& running = at->second;
  if (running.ids.size() == 1 && !running.proven_ref.empty() && !running.ambiguous) {
    ended_.push_back({running.image, running.ids.front(), running.proven_ref, lists_});
    running_.erase(at);
    return {};
  }
  if (running.ids.size() > 1) {
    life_.Found(HoleKind::kIntentDropped, running.image,
                "the kubelet dropped the intent of several pulls, of which some may still run");
  }
  while (!running.ids.empty()) {
    TRY(End(running.image, running.ids.back()));
    running.ids.pop_back();
  }
  running_.erase(at);
  return {};
}

Result<void> Pulls::LeaveToNext(const std::string& name, Left& left) {
  auto file = TRY(life_.pulling.Read(name));
  const auto* intent = file ? std::get_if<ImagePullIntent>(&file->judged.content) : nullptr;
  if (intent != nullptr && file->judged.is_own) return {};
  const auto image = intent != nullptr ? std::optional(intent->image) : StringOf(name);
  if (!image) {
    left.missed = "the intent " + name + " could not be read in time";
    return {};
  }
  if (left.pulls.empty() || left.pulls.back() != *image) left.pulls.push_back(*image);
  return {};
}

Result<void> Pulls::NoteUnknown(const std::string& image) {
  return End(image, TRY(life_.BeginPull(image)));
}

Result<void> Pulls::End(const std::string& image, PullId id) {
  TRY(life_.store->Call(EndPull{.image = image, .pull = id.value}));
  return {};
}

void Pulls::NoteProof(const ImagePulledRecord& before, const ImagePulledRecord& after) {
  // A kubelet that ran before the guard has more in memory than its files say.
  if (life_.status.kubelet_ran_before) return;
  for (const auto& [image_name, credentials] : after.credential_mapping) {
    const auto was = before.credential_mapping.find(image_name);
    const auto* const entry = was == before.credential_mapping.end() ? nullptr : &was->second;
    if (!OnlyAPullWrites(entry, credentials)) continue;
    // A record has no tags: any of several pulls of a repository may have written it.
    const bool is_alone = CountOfRepository(image_name) <= 1;
    for (auto& [name, running] : running_) {
      if (RepositoryOf(running.image) != RepositoryOf(image_name)) continue;
      running.ambiguous = running.ambiguous || !is_alone || !running.proven_ref.empty() ||
                          ImageName(running.image) != std::string_view(image_name);
      running.proven_ref = after.image_ref;
    }
  }
}

// How many pulls of its repository run, or have ended and are not settled.
std::size_t Pulls::CountOfRepository(const std::string& image) const {
  const std::string repository = RepositoryOf(image);
  const auto is_of_it = [&](const auto& pull) { return RepositoryOf(pull.image) == repository; };
  const auto running =
      std::ranges::count_if(running_, [&](const auto& named) { return is_of_it(named.second); });
  return static_cast<std::size_t>(running + std::ranges::count_if(ended_, is_of_it));
}

Result<void> Pulls::Settle(const std::vector<ListedImage>& images) {
  std::vector<Ended> left;
  for (const Ended& pull : ended_) {
    if (life_.Hurries() && !life_.starting) {
      left.push_back(pull);
      continue;
    }
    const ListedImage* const image = ImageOf(pull, images);
    if (image != nullptr && CountOfRepository(pull.image) == 1) {
      TRY(life_.store->Call(EndPull{.image = pull.image,
                                    .image_ref = pull.image_ref,
                                    .pull = pull.id.value,
                                    .outcome = PullOutcome::kPulled,
                                    .details = {.listed = *image}}));
      continue;
    }
    // The first list after its end may have been made before it.
    if (lists_ <= pull.lists_before + 1) {
      left.push_back(pull);
      life_.wants_list = true;
      continue;
    }
    TRY(End(pull.image, pull.id));
  }
  ended_ = std::move(left);
  return {};
}

// The listed image with the pull's ref. The pull brought it only if the runtime lists it under the
// pull's own name; nullptr: it does not.
const ListedImage* Pulls::ImageOf(const Ended& pull, const std::vector<ListedImage>& images) {
  const auto full = NormaliseImage(pull.image);
  const auto names = [&](const std::string& name) {
    return name == pull.image || (full && name == *full);
  };
  const ListedImage* found = nullptr;
  for (const ListedImage& image : images) {
    if (internal::SpellingOf(image.id) != internal::SpellingOf(pull.image_ref)) continue;
    if (std::ranges::any_of(image.repo_tags, names) ||
        std::ranges::any_of(image.repo_digests, names)) {
      found = &image;
    }
  }
  return found;
}

bool Pulls::IsRunning(const std::string& name) const {
  return std::ranges::any_of(running_, [&](const auto& running) {
    return running.second.image == name || NormaliseImage(running.second.image) == name;
  });
}

Result<void> Pulls::EndRunning(std::optional<std::int64_t> before) {
  for (auto& [name, running] : running_) {
    if (before && running.since > *before) continue;
    // If the guard is ending, the store's next opening ends them.
    if (life_.stopping && life_.Hurries()) return {};
    running.ambiguous = true;
    for (const PullId& id : std::exchange(running.ids, {})) {
      TRY(End(running.image, id));
    }
  }
  return {};
}

Result<void> Pulls::EndAll() {
  for (const Ended& pull : ended_) {
    if (life_.Hurries()) break;
    TRY(End(pull.image, pull.id));
  }
  ended_.clear();
  TRY(EndRunning(std::nullopt));
  running_.clear();
  return {};
}

Result<void> Pulls::Plan(const std::set<std::string>& preloaded) {
  auto pulls = TRY(life_.store->ListOpenPulls());
  std::set<std::string> open_names;  // of images that are open by the ledger
  for (const ListedImage& image : listed_.images()) {
    if (!preloaded.contains(RecordNameOf(image.id))) continue;
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
  wanted_.clear();
  for (const UnresolvedPull& pull : pulls) {
    if (pull.anything || !pull.runtime_handler.empty()) continue;
    const std::string name = RecordNameOf(pull.image);
    if (!running_.contains(name) && names_open(pull.image)) continue;
    // The next list decides whether the pull brought the image.
    if (std::ranges::find(ended_, pull.id, &Ended::id) != ended_.end()) continue;
    wanted_[name] = pull.image;
  }
  return {};
}

Result<void> Pulls::PutRight(const std::set<std::string>& preloaded) {
  TRY(Plan(preloaded));
  for (const auto& [name, image] : wanted_) {
    if (life_.Hurries()) return {};
    auto file = TRY(life_.pulling.Read(name));
    if (file && (file->readable() || file->is_later_format)) continue;
    const std::string content = OwnForm(EncodePullIntent({.image = image}, life_.api_version));
    auto written = TRY(file ? life_.pulling.Replace(name, file->content, content)
                            : life_.pulling.Create(name, content));
    if (!written) continue;
    ++life_.status.files_written;
    if (file || life_.starting) {
      life_.Found(HoleKind::kIntentLost, image,
                  "its intent was gone or damaged; it is written again");
    }
  }
  auto names = TRY(life_.pulling.Names());
  for (const std::string& name : names) {
    if (wanted_.contains(name) || running_.contains(name)) continue;
    if (life_.Hurries()) return {};
    auto file = TRY(life_.pulling.Read(name));
    if (!file || file->is_later_format) continue;
    // While a kubelet runs, only files that no kubelet wrote go: any other is a pull that is just
    // beginning.
    if (!life_.starting && !file->judged.is_own && !file->is_planted) continue;
    auto removed = TRY(life_.pulling.Remove(name, file->content));
    if (removed) ++life_.status.files_removed;
  }
  return {};
}

}  // namespace waybill::guard
