#include "guard/take_over.h"

#include <algorithm>
#include <set>
#include <utility>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "waybill/calls.h"

namespace waybill::guard {
namespace {

using What = Taken::What;

std::int64_t SecondsOf(const ImagePulledRecord& record) {
  return record.last_updated ? record.last_updated->seconds : 0;
}

class Taker {
 public:
  explicit Taker(const Round& round) : round_(round), draft_(round.known) {}

  Result<void> Take(const std::vector<Taken>& into) {
    into_ = &into;
    auto& node = draft_.node();
    node.began_seen = round_.context.began_seen;
    // Evidence is judged by what the kubelet that wrote it may have held, so another life comes
    // last (K5).
    for (const bool of_life : {false, true}) {
      for (const Taken& one : into) {
        if ((one.what == What::kLife) == of_life) TRY(Prepare(one));
      }
    }
    auto taken = round_.life.store->InOneCommit([&]() -> Result<void> {
      for (const auto& call : calls_) TRY(call());
      return draft_.Write(*round_.life.store);
    });
    if (taken) std::move(draft_).Apply(round_.known);
    return taken;
  }

 private:
  NodeStore& store() const { return *round_.life.store; }

  template <typename C>
  void Add(C call) {
    calls_.push_back([this, call = std::move(call)]() -> Result<void> {
      auto done = store().Call(call);
      return done ? Result<void>() : done.error();
    });
  }

  Result<void> Prepare(const Taken& one) {
    switch (one.what) {
      case What::kUnrecorded:
        round_.life.TellMissed(one.text);
        Add(NoteUnrecordedPeriod{.reason = "the guard missed something: " + one.text});
        return {};
      case What::kLostSight:
        draft_.node().began_seen = false;
        return {};
      case What::kTookOver:
        draft_.node().took_over = true;
        calls_.push_back([this] { return store().NotePullOfAnything(); });
        return {};
      case What::kProven:
        return Prove(one);
      case What::kPulled:
        return Pulled(one);
      case What::kSeen:
        Seen(one);
        return {};
      case What::kGone:
        Gone(one);
        return {};
      case What::kDamaged:
        Damaged(one);
        return {};
      case What::kBegan:
        Began(one);
        return {};
      case What::kUnknownEnd:
        UnknownEnd(one);
        return {};
      case What::kUnreadableIntent:
        PutIntent(one, 0).image.clear();
        return {};
      case What::kEnded:
        Ended(one);
        return {};
      case What::kEndedWithoutRow:
        EndRunning(one.text);
        return {};
      case What::kLife:
        Begin();
        return {};
      case What::kFolders:
        if (!round_.look.folders.empty()) draft_.node().folders = round_.look.folders;
        for (const auto& [name, row] : round_.known.records) {
          if (row.changing) draft_.Record(name).changing = false;
        }
        return {};
    }
    return {};
  }

  // --- Records

  void Seen(const Taken& one) {
    FileRow& row = draft_.Record(one.name);
    const SeenFile& file = *one.file;
    row.content = file.digest;
    row.gone = false;
    row.time = SecondsOf(file.record);
    row.may_have = United(row.may_have, file.items);
    row.refused.reset();
    row.refused_planted = false;
    if (!file.is_own()) draft_.node().beta = file.is_beta;
  }

  void Gone(const Taken& one) {
    FileRow& row = draft_.Record(one.name);
    row.gone = true;
    row.refused.reset();
    row.refused_planted = false;
  }

  Result<void> Pulled(const Taken& one) {
    ImagePulledRecord record = one.file->record;
    record.credential_mapping.clear();
    Put(std::move(record), one.name);
    Seen(one);
    return {};
  }

  Result<void> Prove(const Taken& one) {
    const ImagePulledRecord& file = one.file->record;
    auto known = TRY(round_.life.RecordOf(file.image_ref));
    NoteProof(one);
    ImagePulledRecord put = Only(file, one.items, round_.known.seed);
    ProofTerms terms = one.watched ? round_.life.TermsOf(put) : ProofTerms();
    // R19
    terms.node_had_no_credentials =
        one.watched && round_.context.node_had_none &&
        std::ranges::all_of(put.credential_mapping, [&](const auto& entry) {
          return !entry.second.node_pods_accessible || round_.context.node_had_none(entry.first);
        });
    if (known) {
      // A kubelet begins anew with an image that was gone: what its record no longer has does not
      // count (R14).
      if (known->absent_since && !one.items.empty()) {
        *known = Only(*std::move(known), one.file->items, round_.known.seed);
      }
      const bool is_newer = one.watched || SecondsOf(file) > SecondsOf(*known);
      put = is_newer ? United(put, *known) : United(*known, put);
      put.image_ref = file.image_ref;
      put.last_updated = std::max(file.last_updated, known->last_updated);
    }
    Put(std::move(put), one.name, terms);
    Seen(one);
    return {};
  }

  // A record above a limit is none: the image is closed by the next list.
  void Put(ImagePulledRecord record, const FileName& name, const ProofTerms& terms = {}) {
    PutImage call{.record = std::move(record), .terms = terms};
    calls_.push_back([this, call = std::move(call), name]() -> Result<void> {
      auto put = store().Call(call);
      if (put) return {};
      const ErrorCode code = put.error().code;
      if (code != ErrorCode::kLimitExceeded && code != ErrorCode::kInvalidArgument) {
        return put.error();
      }
      round_.life.Log(LogLevel::kWarning, (round_.life.pulled.path() / name).string() +
                                              " can't be kept: " + put.error().ToString());
      return {};
    });
  }

  void Damaged(const Taken& one) {
    if (!one.text.empty() && round_.about.Find(one.text) == nullptr) {
      Put({.image_ref = one.text, .last_updated = round_.life.options.store.clock()}, one.name);
    }
    FileRow& row = draft_.Record(one.name);
    row.refused = one.file->digest;
    row.refused_planted = one.stays;
    // A kubelet that begins before the file is changed reads it, and may write it again as its own
    // (K9).
    if (one.file->is_read_as_record() && !one.file->about.empty()) {
      FileRow& about = draft_.Record(one.file->about);
      about.may_have = United(about.may_have, one.file->items);
    } else if (one.file->is_read_unknown()) {
      draft_.node().read_unknown = true;
      draft_.node().began_seen = false;
    }
  }

  // --- Pulls

  std::vector<PullId> RunningOf(const std::string& string) const {
    std::vector<PullId> running;
    for (const UnresolvedPull& pull : round_.content.pulls) {
      const bool is_it = !pull.anything && pull.image == string && pull.runtime_handler.empty();
      if (is_it && pull.state == PullState::kRunning) running.push_back(pull.id);
    }
    return running;
  }

  void EndRunning(const std::string& string) {
    for (const PullId id : RunningOf(string)) Add(EndPull{.image = string, .pull = id.value});
  }

  FileRow& PutIntent(const Taken& one, std::int64_t since) {
    FileRow& row = draft_.Intent(one.name);
    row.inode = one.file->inode;
    row.changed = one.file->changed;
    row.image = one.text;
    row.since = since;
    row.proven_ref.clear();
    row.ended = 0;
    return row;
  }

  void Began(const Taken& one) {
    const FileRow* const before = round_.known.Intent(one.name);
    // It ended before this one began.
    if (before != nullptr && before->ended != 0) EndRunning(before->image);
    const bool runs_already = before != nullptr && before->since != 0;
    Add(BeginPull{.image = one.text});
    FileRow& row = PutIntent(one, round_.context.now);
    row.several = one.several || runs_already;
    draft_.node().beta = one.file->is_beta;
  }

  void UnknownEnd(const Taken& one) {
    calls_.push_back([this, image = one.text]() -> Result<void> {
      const auto begun = TRY(store().Call(BeginPull{.image = image}));
      TRY(store().Call(EndPull{.image = image, .pull = begun.pull}));
      return {};
    });
    if (one.name.empty()) return;
    const FileRow* const before = round_.known.Intent(one.name);
    if (before != nullptr && (before->since != 0 || before->ended != 0)) EndRunning(before->image);
    PutIntent(one, 0);
  }

  void Ended(const Taken& one) {
    const FileRow* const row = draft_.FindIntent(one.name);
    if (row == nullptr) return;
    if (row->ended != 0) {
      // The next list settles it, but for a kubelet that is gone.
      if (!one.stays) return;
      EndRunning(row->image);
      draft_.EraseIntent(one.name);
      return;
    }
    const std::string image = row->image;
    const std::vector<PullId> running = RunningOf(image);
    // The next list tells whether the record is this pull's own (S1).
    if (running.size() == 1 && row->since != 0 && !row->several && !row->proven_ref.empty() &&
        !one.stays) {
      FileRow& ended = draft_.Intent(one.name);
      ended.since = 0;
      ended.ended = round_.context.now;
      return;
    }
    if (row->since != 0) {
      if (running.size() > 1 && !one.stays) {
        round_.life.Found(HoleKind::kIntentDropped, image,
                          "the kubelet dropped the intent of several pulls, of which some may "
                          "still run");
      }
      EndRunning(image);
      round_.life.ended_now.insert(one.name);
    }
    if (one.stays) {
      draft_.Intent(one.name).since = 0;
    } else {
      draft_.EraseIntent(one.name);
    }
  }

  // The kubelet wrote new credentials: that may show that a running pull succeeded. A pull adds the
  // credential that it was made with; a decision adds one that is akin to another, and several
  // writes may be read as one.
  void NoteProof(const Taken& one) {
    if (!one.watched || !round_.context.began_seen) return;
    const FileRow* const seen = round_.known.Record(one.name);
    const Items before = seen == nullptr ? Items() : seen->may_have;
    for (const auto& [name, entry] : one.file->record.credential_mapping) {
      const ImagePulledRecord only{.credential_mapping = {{name, entry}}};
      const Items added = Without(ItemsOf(only, round_.known.seed), before);
      if (added.size() != 1 || IsAkin(added.front(), before)) continue;
      for (const auto& [intent, row] : round_.known.intents) {
        if (row.since == 0 || RepositoryOf(row.image) != RepositoryOf(name)) continue;
        FileRow& running = draft_.Intent(intent);
        // A record has no tags: any of several pulls of a repository may have written it.
        running.several = running.several || PullsOfRepository(name) > 1 || MayBeginNow(name) ||
                          !running.proven_ref.empty() ||
                          ImageName(row.image) != std::string_view(name);
        running.proven_ref = one.file->record.image_ref;
      }
    }
  }

  // Whether another pull that may have written it shows at this look first.
  bool MayBeginNow(const std::string& image) const {
    return std::ranges::any_of(*into_, [&](const Taken& one) {
      if (one.what == What::kUnrecorded) return true;
      const bool is_pull = one.what == What::kBegan || one.what == What::kUnknownEnd;
      return is_pull && RepositoryOf(one.text) == RepositoryOf(image);
    });
  }

  std::size_t PullsOfRepository(const std::string& image) const {
    const std::string repository = RepositoryOf(image);
    return static_cast<std::size_t>(
        std::ranges::count_if(round_.known.intents, [&](const auto& one) {
          const FileRow& row = one.second;
          return (row.since != 0 || row.ended != 0) && RepositoryOf(row.image) == repository;
        }));
  }

  // --- Another kubelet

  // It has the files' content in memory, and no more (K1): but what may have been in a file when it
  // read that (K2), and what lies under another's name, which it keeps by the ref in it (K8).
  void Begin() {
    const std::string& life = round_.context.life;
    internal::KubeletNode& node = draft_.node();
    node.life = life;
    // Of one that went and came nothing is forgotten: perhaps it only was not found.
    if (life.empty() || life == node.last_life) return;
    node.last_life = life;
    node.read_unknown = std::ranges::any_of(
        round_.look.pulled, [](const auto& one) { return one.second.is_read_unknown(); });
    std::map<FileName, Items> under;
    for (const auto& [name, file] : round_.look.pulled) {
      if (!file.is_read_as_record() || file.about.empty() || file.about == name) continue;
      under[file.about] = United(under[file.about], file.items);
      static_cast<void>(draft_.Record(file.about));
    }
    std::set<FileName> names;
    for (const auto& [name, row] : round_.known.records) names.insert(name);
    for (const auto& [name, items] : under) names.insert(name);
    for (const auto& [name, file] : round_.look.pulled) {
      if (draft_.FindRecord(name) != nullptr) names.insert(name);
    }
    for (const FileName& name : names) BeginWith(name, under[name]);
  }

  void BeginWith(const FileName& name, Items held) {
    const FileRow* const before = round_.known.Record(name);
    const auto at = round_.look.pulled.find(name);
    const SeenFile* const file = at == round_.look.pulled.end() ? nullptr : &at->second;
    const bool is_its =
        file != nullptr && file->what == SeenFile::What::kRecord && file->about == name;
    if (is_its && file->is_read_as_record()) held = United(held, file->items);
    FileRow& row = draft_.Record(name);
    bool changed = row.changing;
    if (!is_its) {
      changed = changed || before == nullptr || !before->gone;
    } else if (!file->is_own()) {
      changed = changed || before == nullptr || before->content != file->digest || before->gone;
    }
    if (changed) held = United(held, row.may_have);
    row.may_have = std::move(held);
    row.changing = false;
    if (file == nullptr && row.gone && row.may_have.empty() && !row.refused) {
      draft_.EraseRecord(name);
    }
  }

  const Round& round_;
  const std::vector<Taken>* into_ = nullptr;
  Draft draft_;
  std::vector<std::function<Result<void>()>> calls_;
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

Result<void> TakeOver(const Round& round, const std::vector<Taken>& into) {
  return Taker(round).Take(into);
}

Result<void> NoteMayHave(const Round& round, const std::vector<MayHave>& notes) {
  Draft draft(round.known);
  for (const MayHave& note : notes) {
    if (note.unknown) {
      draft.node().read_unknown = true;
      draft.node().began_seen = false;
      continue;
    }
    FileRow& row = draft.Record(note.name);
    row.may_have = United(row.may_have, note.items);
    row.changing = row.changing || note.changing;
    // Waybill's own file comes into the place of one that is gone, and a kubelet may read it.
    if (std::exchange(row.gone, false)) row.content.reset();
  }
  auto noted = round.life.store->InOneCommit([&] { return draft.Write(*round.life.store); });
  if (noted) std::move(draft).Apply(round.known);
  return noted;
}

Result<void> SettleProven(const Round& round, const std::vector<ListedImage>& list,
                          std::int64_t drawn) {
  std::map<std::string, std::size_t> of_repository;
  for (const auto& [name, row] : round.known.intents) {
    if (row.since != 0 || row.ended != 0) ++of_repository[RepositoryOf(row.image)];
  }
  Draft draft(round.known);
  std::vector<EndPull> ends;
  for (const auto& [name, row] : round.known.intents) {
    if (row.ended == 0) continue;
    const ListedImage* const image = ImageOf(row, list);
    const bool is_its = image != nullptr && of_repository[RepositoryOf(row.image)] == 1;
    // A list may have been made before the pull ended.
    if (!is_its && drawn <= row.ended) continue;
    for (const UnresolvedPull& pull : round.content.pulls) {
      if (pull.anything || pull.image != row.image || pull.state != PullState::kRunning) continue;
      EndPull end{.image = row.image, .pull = pull.id.value};
      if (is_its) {
        end.image_ref = row.proven_ref;
        end.outcome = PullOutcome::kPulled;
        end.details.listed = *image;
      }
      ends.push_back(std::move(end));
    }
    if (!is_its) round.life.ended_now.insert(name);
    draft.EraseIntent(name);
  }
  if (ends.empty()) return {};
  auto settled = round.life.store->InOneCommit([&]() -> Result<void> {
    for (const EndPull& end : ends) TRY(round.life.store->Call(end));
    return draft.Write(*round.life.store);
  });
  if (settled) std::move(draft).Apply(round.known);
  return settled;
}

}  // namespace waybill::guard
