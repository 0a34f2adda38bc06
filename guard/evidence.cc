// The upper half of the decision table (compare.cc): what a look tells the store.

#include <algorithm>
#include <string>
#include <utility>

#include "guard/moment.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"

namespace waybill::guard {
namespace {

using Image = internal::StoreContent::Image;

const std::string kOverflow = "the kernel's queue of events ran over";
const std::string kUnseen = "the kubelet's folders changed while no guard saw it";
const std::string kNobodys = "a record can't be read, and nobody knows of which image";
const std::string kUnreadIntent = "an intent was gone before it could be read";
const std::string kUnreadableIntent = "an intent can't be read";

std::int64_t SecondsOf(const std::optional<Timestamp>& time) { return time ? time->seconds : 0; }

// Of a kubelet, which knows no handlers.
std::vector<PullId> RunningPulls(const internal::StoreContent& content, const std::string& string) {
  std::vector<PullId> running;
  for (const UnresolvedPull& pull : content.pulls) {
    const bool is_it = !pull.anything && pull.image == string && pull.runtime_handler.empty();
    if (is_it && pull.state == PullState::kRunning) running.push_back(pull.id);
  }
  return running;
}

// How many intents of pulls that are not settled each repository has.
std::map<std::string, std::size_t> PullsByRepository(const KnownFiles& files) {
  std::map<std::string, std::size_t> pulls;
  for (const auto& [name, row] : files.intents) {
    if (row.since != 0 || row.ended != 0) ++pulls[RepositoryOf(row.image)];
  }
  return pulls;
}

class Evidence {
 public:
  Evidence(const Moment& at, Compared& result, std::set<FileName>& busy)
      : at_(at),
        look_(at.look),
        files_(at.files),
        context_(at.context),
        result_(result),
        busy_(busy) {}

  void Take() {
    if (files_.node.began_seen != context_.began_seen) {
      Rows().node.began_seen = context_.began_seen;
    }
    TakeDirectory();
    for (const auto& [name, file] : look_.pulled) TakeRecord(name, file);
    TakeGone();
    TakeIntents();
    TakeQueue();
    for (const SeenFile* file : proven_) NoteProof(*file);
    for (const auto& [name, stays] : ends_) End(name, stays);
    // Evidence is judged by what the kubelet that wrote it may have held, so another life comes
    // last (K5).
    if (context_.life != files_.node.life) Begin();
  }

 private:
  KnownFiles& Rows() { return result_.Rows(files_); }
  void Tell(StoreCall call) { result_.calls.push_back(std::move(call)); }

  void Missed(const std::string& what) { Tell(NoteUnrecordedPeriod{.reason = what}); }
  // K4, R16
  void LoseSight() { Rows().node.began_seen = false; }

  // --- The directory and the kubelet

  void TakeDirectory() {
    std::string why;
    if (look_.overflow && !context_.first) {  // D2
      why = kOverflow;
      watched_ = false;
    } else if (!context_.watched && !context_.first && !IsAsNoted(look_, files_)) {  // D1
      why = look_.too_many.empty() ? kUnseen : look_.too_many + " has too many files";
    }
    gap_ = !why.empty();
    // A degraded store judges nothing until an operator accepts that something is lost.
    if (gap_ && !context_.lost) Missed(why);
    if (gap_ && at_.runs()) LoseSight();                                                    // K4
    if (context_.first && !context_.watched && !files_.node.took_over && look_.was_used) {  // D6
      Rows().node.took_over = true;
      Tell(PullOfAnything{});
    }
    if (context_.life == files_.node.life) return;
    for (const auto& [name, row] : files_.intents) End(name, true);  // I8
  }

  // --- Records

  void TakeRecord(const FileName& name, const SeenFile& file) {
    if (at_.IsLeft(file)) {  // R9
      NoteLater(KubeletFolder::kPulled, name, file);
      return;
    }
    if (!at_.IsSound(name, file)) {
      TakeDamaged(name, file);
      return;
    }
    const FileRow* const row = files_.FindRecord(name);
    const Image* const image = at_.known.Find(file.record.image_ref);
    if (file.is_own()) {
      TakeOwn(name, file, row, image);
      return;
    }
    static const Items kNone;
    const Items& may_have = row == nullptr ? kNone : row->may_have;
    const bool is_taken = IsTaken(row, file);
    if (is_taken && (image != nullptr || !IsIn(file.items, may_have))) return;
    const Items fresh = WithoutTakers(Without(file.items, may_have), may_have, image, file);
    if (!fresh.empty() && (watched_ ? MemoryIsKnown() || context_.nothing_ends  // R1, R2
                                    : CountsUnwatched(file, row, image))) {     // R3, R4
      Prove(name, file, fresh, may_have, image);
      return;
    }
    if (image == nullptr) {  // R5
      const bool waits = context_.listing == nullptr && !context_.no_list_comes;
      if (waits) {
        result_.wants_list = true;
        busy_.insert(name);
        // What it says is no longer new when the list comes.
        if (!is_taken) Seen(name, file);
        return;
      }
      if (context_.no_list_comes || context_.listing->contains(name)) {
        Pulled(name, file);
        return;
      }
    }
    // It may be back, and until a list says so its file is nobody's to change (F11).
    if (!is_taken && image != nullptr && image->row.absent != 0) result_.wants_list = true;
    if (!is_taken) Seen(name, file);  // R12
  }

  void NoteLater(KubeletFolder folder, const FileName& name, const SeenFile& file) {
    if (file.what != SeenFile::What::kLaterFormat) return;
    result_.later_formats.emplace_back(folder, name);
  }

  // Of the kubelet that wrote it: the one that runs, or that of the look before.
  bool MemoryIsKnown() const {
    const internal::KubeletNode& node = files_.node;
    const bool is_same = context_.life == node.life || node.life.empty();
    return context_.began_seen && (is_same || node.began_seen);
  }

  void TakeOwn(const FileName& name, const SeenFile& file, const FileRow* row, const Image* image) {
    if (context_.first && !file.items.empty() && !IsTaken(row, file)) {
      // R7: an export, or another store's guard.
      Prove(name, file, file.items, {}, image);
    } else if (context_.lost && file.items.empty() && image == nullptr &&
               file.record.last_updated) {
      Pulled(name, file);  // R8. Without a time it is of an image that is not judged.
    } else if (!file.items.empty() && (row == nullptr || !IsIn(file.items, row->may_have))) {
      Seen(name, file);  // R24
    }
  }

  void Seen(const FileName& name, const SeenFile& file) {
    busy_.insert(name);
    result_.evidence.emplace(KubeletFolder::kPulled, name);
    FileRow& row = Rows().Record(name);
    row.content = file.digest;
    row.gone = false;
    row.time = SecondsOf(file.record.last_updated);
    row.may_have = United(row.may_have, file.items);
    row.refused.reset();
    row.refused_planted = false;
    if (!file.is_own()) Rows().node.beta = file.is_beta;
  }

  // The record shows that its image was pulled, and no more.
  void Pulled(const FileName& name, const SeenFile& file) {
    PutImage put{.record = file.record};
    put.record.credential_mapping.clear();
    Tell(std::move(put));
    Seen(name, file);
  }

  void Prove(const FileName& name, const SeenFile& file, const Items& fresh, const Items& may_have,
             const Image* image) {
    // R18. A decision adds a Secret whose hash or coordinates the kubelet knows: it proves nothing,
    // and counts as what it matched, if that counts.
    const Items counting = image == nullptr ? Items() : at_.ItemsOf(image->counting);
    Items proven;
    for (const Item& item : fresh) {
      if (IsAkin(item, counting) || !IsAkin(item, may_have)) proven.push_back(item);
    }
    ProvenRecord told{.put = {.record = Only(file.record, proven, files_.seed)},
                      .items = file.items,
                      .watched = watched_};
    if (watched_) told.put.terms = TermsOf(told.put.record);
    Tell(std::move(told));
    proven_.push_back(&file);
    Seen(name, file);
  }

  ProofTerms TermsOf(const ImagePulledRecord& proven) const {
    ProofTerms terms;
    terms.node_had_no_credentials =
        context_.node_had_none &&
        std::ranges::all_of(proven.credential_mapping, [&](const auto& entry) {
          return !entry.second.node_pods_accessible || context_.node_had_none(entry.first);
        });
    std::set<VerifiedBy> checkers;
    for (const auto& [image, credentials] : proven.credential_mapping) {
      checkers.insert(context_.who_checks ? context_.who_checks(image) : VerifiedBy::kUnknown);
    }
    // What is said of all must be true of each.
    if (checkers.size() > 1) checkers.erase(VerifiedBy::kRegistry);
    if (checkers.size() == 1) terms.checker = *checkers.begin();
    return terms;
  }

  // R19. Where Secrets of that name are on record, or may be in memory, one was needed once: that
  // all pods may use the image is then the word of a node that may have credentials of its own.
  Items WithoutTakers(Items fresh, const Items& may_have, const Image* image,
                      const SeenFile& file) const {
    std::erase_if(fresh, [&](const Item& item) {
      if (!item.is_any_pod()) return false;
      Items before = may_have;
      if (image != nullptr && image->row.pulled) {
        before = United(before, at_.ItemsOf(image->row.pulled->entries));
      }
      const bool was_needed = std::ranges::any_of(before, [&](const Item& one) {
        return one.image_name == item.image_name && !one.is_any_pod();
      });
      return was_needed && !(watched_ && NodeHadNone(item, file));
    });
    return fresh;
  }

  bool NodeHadNone(const Item& item, const SeenFile& file) const {
    if (!context_.node_had_none) return false;
    return std::ranges::any_of(file.record.credential_mapping, [&](const auto& entry) {
      return std::ranges::binary_search(at_.ItemsOf({entry}), item) &&
             context_.node_had_none(entry.first);
    });
  }

  // What was written while nobody watched, if a kubelet ran then; and not an older copy that
  // somebody put back (R10). A degraded store may have lost what was revoked (R11).
  bool CountsUnwatched(const SeenFile& file, const FileRow* row, const Image* image) const {
    if (!(gap_ || context_.first) || context_.lost) return false;
    const std::int64_t time = SecondsOf(file.record.last_updated);
    const bool was_taken = row != nullptr && row->content && !row->gone;
    if (was_taken && time < row->time) return false;
    if (image == nullptr) return true;
    const auto& pulled = image->row.pulled;
    const std::int64_t stored = pulled ? SecondsOf(pulled->last_updated) : 0;
    // A list may have closed it in the very second in which a kubelet proved it.
    const bool only_closed = pulled && pulled->closed_by == internal::ClosedBy::kList &&
                             pulled->entries.empty() && pulled->private_names.empty();
    return time > stored || (time == stored && (row != nullptr || only_closed));
  }

  void TakeDamaged(const FileName& name, const SeenFile& file) {
    const FileRow* const before = files_.FindRecord(name);
    const bool is_planted = at_.IsPlanted(name, file);
    if (before != nullptr && before->refused == file.digest &&
        before->refused_planted == is_planted) {
      return;
    }
    if (context_.listing == nullptr && !context_.no_list_comes) {
      result_.wants_list = result_.waits_for_list = true;
      return;
    }
    auto ref = at_.known.RefOf(name);
    if (!ref && context_.no_list_comes && file.about == name) ref = file.record.image_ref;
    if (!ref) Missed(kNobodys);                    // R13
    if (ref && at_.known.Find(*ref) == nullptr) {  // R6
      Tell(PutImage{.record = {.image_ref = *ref, .last_updated = context_.wall}});
    }
    busy_.insert(name);
    FileRow& row = Rows().Record(name);
    row.refused = file.digest;
    row.refused_planted = is_planted;
    // A kubelet that begins before the file is changed reads it, and may write it again as its own
    // (K9).
    if (file.is_read_as_record() && !file.about.empty()) {
      FileRow& about = Rows().Record(file.about);
      about.may_have = United(about.may_have, file.items);
    } else if (file.is_read_unknown()) {
      Rows().node.read_unknown = true;
      LoseSight();
    }
  }

  void TakeGone() {
    if (!look_.too_many.empty()) return;
    for (const auto& [name, before] : files_.records) {
      if (before.gone || look_.pulled.contains(name)) continue;
      FileRow& row = Rows().Record(name);  // K7
      row.gone = true;
      row.refused.reset();
      row.refused_planted = false;
    }
  }

  // --- Intents

  void TakeIntents() {
    for (const auto& [string, count] : at_.must.running) {  // I13
      const FileRow* const row = files_.FindIntent(internal::RecordNameOf(string));
      if (row == nullptr || (row->since == 0 && row->ended == 0)) EndRunning(string);
    }
    for (const auto& [name, file] : look_.pulling) TakeIntent(name, file);
    for (const auto& [name, row] : files_.intents) {  // I3
      if (look_.pulling.contains(name) || row.ended != 0) continue;
      busy_.insert(name);
      ends_.emplace_back(name, false);
    }
  }

  void TakeIntent(const FileName& name, const SeenFile& file) {
    if (file.what == SeenFile::What::kMoving) return;
    if (file.planted.empty()) NoteLater(KubeletFolder::kPulling, name, file);
    const FileRow* const row = files_.FindIntent(name);
    if (IsTakenIntent(row, file)) {
      const bool is_old =
          at_.runs() && row->since != 0 && context_.now - row->since > context_.window;
      if (is_old) ends_.emplace_back(name, true);  // I9
      return;
    }
    if (file.what != SeenFile::What::kIntent || file.about != name) {
      TakeUnreadableIntent(name, file);
    } else if (file.is_own()) {
      if (context_.lost && !at_.must.unresolved.contains(name)) TellUnknownEnd(file.image);  // I7
      if (row != nullptr && row->ended == 0) ends_.emplace_back(name, false);                // I3
    } else if (at_.runs() && (!context_.began || file.changed >= *context_.began)) {         // I1
      Began(name, file);
    } else {  // I2, I11
      UnknownEnd(name, file, file.image);
    }
  }

  void TakeUnreadableIntent(const FileName& name, const SeenFile& file) {  // I5
    const auto string = at_.known.StringOf(name);
    if (file.what == SeenFile::What::kIntent) {
      UnknownEnd(name, file, file.image);
    } else if (file.what == SeenFile::What::kLaterFormat || !string) {
      Missed(kUnreadableIntent);
      PutIntent(name, file, {}, 0);
    } else {
      UnknownEnd(name, file, *string);
    }
  }

  // What came and went before it could be read.
  void TakeQueue() {
    for (const auto& [file, times] : look_.written) {
      const auto& [folder, name] = file;
      if (folder == KubeletFolder::kPulled) {
        const auto at = look_.pulled.find(name);
        const bool is_kubelets = at != look_.pulled.end() && !at->second.is_own() &&
                                 (at_.IsLeft(at->second) || at_.IsSound(name, at->second));
        if (at_.runs() && !is_kubelets) LoseSight();  // R16
        continue;
      }
      if (look_.pulling.contains(name)) continue;
      auto string = at_.known.StringOf(name);  // I4
      const FileRow* const row = files_.FindIntent(name);
      if (!string && row != nullptr && !row->image.empty()) string = row->image;
      if (string) {
        TellUnknownEnd(*string);
      } else {
        Missed(kUnreadIntent);
      }
    }
  }

  void EndRunning(const std::string& string) {
    for (const PullId id : RunningPulls(at_.known.content(), string)) {
      Tell(EndPull{.image = string, .pull = id.value});
    }
  }

  FileRow& PutIntent(const FileName& name, const SeenFile& file, const std::string& string,
                     std::int64_t since) {
    result_.evidence.emplace(KubeletFolder::kPulling, name);
    FileRow& row = Rows().Intent(name);
    row.inode = file.inode;
    row.changed = file.changed;
    row.image = string;
    row.since = since;
    row.proven_ref.clear();
    row.ended = 0;
    return row;
  }

  void Began(const FileName& name, const SeenFile& file) {
    const FileRow* const before = files_.FindIntent(name);
    // It ended before this one began.
    if (before != nullptr && before->ended != 0) EndRunning(before->image);
    begin_now_.insert(RepositoryOf(file.image));
    Tell(BeginPull{.image = file.image});
    const auto written = look_.written.find({KubeletFolder::kPulling, name});
    const bool once = written != look_.written.end() && written->second == 1;
    const bool runs_already = before != nullptr && before->since != 0;
    PutIntent(name, file, file.image, context_.now).several = !once || runs_already;
    Rows().node.beta = file.is_beta;
  }

  void TellUnknownEnd(const std::string& string) {
    begin_now_.insert(RepositoryOf(string));
    Tell(PullOfUnknownEnd{string});
  }
  void UnknownEnd(const FileName& name, const SeenFile& file, const std::string& string) {
    TellUnknownEnd(string);
    const FileRow* const before = files_.FindIntent(name);
    if (before != nullptr && (before->since != 0 || before->ended != 0)) EndRunning(before->image);
    PutIntent(name, file, string, 0);
  }

  // `stays`: the intent's file does.
  void End(const FileName& name, bool stays) {
    KnownFiles& rows = Rows();
    const auto at = rows.intents.find(name);
    if (at == rows.intents.end()) return;
    FileRow& row = at->second;
    if (row.ended != 0) {
      // The next list settles it, but for a kubelet that is gone.
      if (!stays) return;
      EndRunning(row.image);
      rows.intents.erase(at);
      return;
    }
    const std::vector<PullId> running = RunningPulls(at_.known.content(), row.image);
    // The next list tells whether the record is this pull's own (S1).
    if (running.size() == 1 && row.since != 0 && !row.several && !row.proven_ref.empty() &&
        !stays) {
      row.since = 0;
      row.ended = context_.now;
      return;
    }
    if (row.since != 0) {
      if (running.size() > 1 && !stays) result_.ended_some.push_back(row.image);
      EndRunning(row.image);
      result_.ended.insert(name);
    }
    if (stays) {
      row.since = 0;
    } else {
      rows.intents.erase(at);
    }
  }

  // The kubelet wrote new credentials: that may show that a running pull succeeded. A pull adds the
  // credential that it was made with; a decision adds one that is akin to another, and several
  // writes may be read as one.
  void NoteProof(const SeenFile& file) {
    if (!watched_ || !context_.began_seen) return;
    const FileRow* const seen = files_.FindRecord(file.about);
    const Items before = seen == nullptr ? Items() : seen->may_have;
    const auto pulls = PullsByRepository(files_);
    for (const auto& [name, entry] : file.record.credential_mapping) {
      const Items added = Without(at_.ItemsOf({{name, entry}}), before);
      if (added.size() != 1 || IsAkin(added.front(), before)) continue;
      const std::string repository = RepositoryOf(name);
      for (const auto& [intent, row] : files_.intents) {
        if (row.since == 0 || RepositoryOf(row.image) != repository) continue;
        FileRow& running = Rows().Intent(intent);
        // A record has no tags: any of several pulls of a repository may have written it, and so
        // may one that shows at this look first.
        running.several = running.several || pulls.at(repository) > 1 ||
                          begin_now_.contains(repository) || result_.has_unrecorded() ||
                          !running.proven_ref.empty() ||
                          ImageName(row.image) != std::string_view(name);
        running.proven_ref = file.record.image_ref;
      }
    }
  }

  // --- Another kubelet

  // It has the files' content in memory, and no more (K1): but what may have been in a file when it
  // read that (K2), and what lies under another's name, which it keeps by the ref in it (K8).
  void Begin() {
    KnownFiles& rows = Rows();
    rows.node.life = context_.life;
    // Of one that went and came nothing is forgotten: perhaps it only was not found.
    if (context_.life.empty() || context_.life == files_.node.last_life) return;
    rows.node.last_life = context_.life;
    rows.node.read_unknown = std::ranges::any_of(
        look_.pulled, [](const auto& one) { return one.second.is_read_unknown(); });
    std::map<FileName, Items> under;
    for (const auto& [name, file] : look_.pulled) {
      if (!file.is_read_as_record() || file.about.empty() || file.about == name) continue;
      under[file.about] = United(under[file.about], file.items);
      static_cast<void>(rows.Record(file.about));
    }
    for (auto at = rows.records.begin(); at != rows.records.end();) {
      BeginWith(at->first, at->second, under[at->first]);
      const FileRow& row = at->second;
      const bool is_needed =
          look_.pulled.contains(at->first) || !row.gone || !row.may_have.empty() || row.refused;
      at = is_needed ? std::next(at) : rows.records.erase(at);
    }
  }

  void BeginWith(const FileName& name, FileRow& row, Items held) const {
    const FileRow* const before = files_.FindRecord(name);
    const auto at = look_.pulled.find(name);
    const SeenFile* const file = at == look_.pulled.end() ? nullptr : &at->second;
    const bool is_its =
        file != nullptr && file->what == SeenFile::What::kRecord && file->about == name;
    if (is_its && file->is_read_as_record()) held = United(held, file->items);
    bool changed = row.changing;
    if (!is_its) {
      changed = changed || before == nullptr || !before->gone;
    } else if (!file->is_own()) {
      changed = changed || before == nullptr || before->content != file->digest || before->gone;
    }
    if (changed) held = United(held, row.may_have);
    row.may_have = std::move(held);
    row.changing = false;
  }

  const Moment& at_;
  const Look& look_;
  const KnownFiles& files_;
  const Context& context_;
  Compared& result_;
  std::set<FileName>& busy_;
  bool watched_ = context_.watched;
  bool gap_ = false;
  std::vector<const SeenFile*> proven_;
  std::vector<std::pair<FileName, bool>> ends_;  // of pulls; whether the intent's file stays
  std::set<std::string> begin_now_;              // repositories of pulls that show at this look
};

// The listed image with the pull's ref. The pull brought it only if the runtime lists it under the
// pull's own name; nullptr: it does not.
const ListedImage* ImageOf(const FileRow& pull, const std::vector<ListedImage>& images) {
  const auto full = NormaliseImage(pull.image);
  const auto names = [&](const std::string& name) {
    return name == pull.image || (full && name == *full);
  };
  const ListedImage* found = nullptr;
  for (const ListedImage& image : images) {
    if (internal::SpellingOf(image.id) != internal::SpellingOf(pull.proven_ref)) continue;
    if (std::ranges::any_of(image.repo_tags, names) ||
        std::ranges::any_of(image.repo_digests, names)) {
      found = &image;
    }
  }
  return found;
}

}  // namespace

void TakeEvidence(const Moment& at, Compared& result, std::set<FileName>& busy) {
  Evidence(at, result, busy).Take();
}

PutImage Beside(const ProvenRecord& proven, ImagePulledRecord counts, std::uint64_t seed) {
  const ImagePulledRecord& fresh = proven.put.record;
  PutImage put = proven.put;
  // A kubelet begins anew with an image that was gone: what its record no longer has does not count
  // (R14).
  if (counts.absent_since && !fresh.credential_mapping.empty()) {
    counts = Only(std::move(counts), proven.items, seed);
  }
  const bool is_newer =
      proven.watched || SecondsOf(fresh.last_updated) > SecondsOf(counts.last_updated);
  put.record = is_newer ? United(fresh, counts) : United(counts, fresh);
  put.record.image_ref = fresh.image_ref;
  put.record.last_updated = std::max(fresh.last_updated, counts.last_updated);
  return put;
}

Compared SettleProven(const KnownFiles& files, const Known& known, std::int64_t drawn) {
  Compared result;
  const auto pulls = PullsByRepository(files);
  for (const auto& [name, row] : files.intents) {
    if (row.ended == 0) continue;
    const ListedImage* const image = ImageOf(row, known.list());
    const bool is_its = image != nullptr && pulls.at(RepositoryOf(row.image)) == 1;
    // A list may have been made before the pull ended.
    if (!is_its && drawn <= row.ended) continue;
    for (const PullId id : RunningPulls(known.content(), row.image)) {
      EndPull end{.image = row.image, .pull = id.value};
      if (is_its) {
        end.image_ref = row.proven_ref;
        end.outcome = PullOutcome::kPulled;
        end.details.listed = *image;
      }
      result.calls.emplace_back(std::move(end));
    }
    if (!is_its) result.ended.insert(name);
    result.Rows(files).intents.erase(name);
  }
  return result;
}

}  // namespace waybill::guard
