#include "store/images/observe.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "store/base/empty_list.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/disk/trust.h"
#include "store/images/gap.h"
#include "store/images/judge.h"
#include "store/images/learn.h"
#include "store/images/list_token.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/retire.h"
#include "store/images/unchanged.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxJudged = 1000;
constexpr std::size_t kMaxSharedDigests = 100;

constexpr std::string_view kListedSource = "listed";
constexpr std::string_view kImported = "imported";
constexpr std::string_view kPinned = "pinned";
constexpr std::string_view kAdopted = "adopted";
constexpr std::string_view kObservedPreloaded = "observed-preloaded";
constexpr std::string_view kPreloadedList = "preloaded-list";
constexpr std::string_view kNamed = "the list of preloaded images names it";
constexpr std::string_view kIsPinned = "the runtime's configuration pins it";
constexpr std::string_view kIsImported = "the runtime shows that no pull brought it";

NamedImage ReadListed(const std::string& name) {
  return name.size() <= kMaxImageBytes ? ReadName(name) : NamedImage();
}

// The images of a list, each once, without those that are unchanged. Handlers are mapped to their
// stored names.
Result<std::vector<ImageInList>> Prepare(const Images& images, const std::vector<ListedImage>& list,
                                         const Unchanged& unchanged, ClassifyReport& report) {
  auto handlers = TRY(ReadRuntimeHandlers(images.txn()));
  std::vector<ImageInList> listed;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  report.listed = list.size();
  report.known = unchanged.count();
  for (std::size_t place = 0; place < list.size(); ++place) {
    const ListedImage& one = list[place];
    // No record can have such a ref.
    if (one.id.empty() || one.id.size() > kMaxImageRefBytes) continue;
    if (unchanged.Has(place)) {
      report.not_names += static_cast<std::uint64_t>(std::ranges::count_if(
          one.repo_tags, [](const std::string& name) { return !ReadListed(name).parses; }));
      continue;
    }
    const auto named = HandlerInList(handlers, one);
    const bool has_handler = named.has_value();
    const std::string handler = named.value_or("");
    const auto [at, is_new] = seen.try_emplace({images.SubjectOf(one.id), handler}, listed.size());
    if (is_new) {
      listed.emplace_back();
      listed.back().id = one.id;
      listed.back().runtime_handler = handler;
      listed.back().has_handler = has_handler;
    } else {
      ++report.repeated;
    }
    ImageInList& image = listed[at->second];
    image.has_handler = image.has_handler && has_handler;
    image.pinned = image.pinned || one.pinned;
    // Of two entries both must say so.
    image.imported = (is_new || image.imported) && one.imported;
    for (const auto* strings : {&one.repo_tags, &one.repo_digests}) {
      for (const std::string& name : *strings) {
        NamedImage parsed = ReadListed(name);
        if (!parsed.parses) {
          ++report.not_names;
          continue;
        }
        if (strings == &one.repo_digests && !parsed.digest.empty() &&
            std::find(image.digests.begin(), image.digests.end(), name) == image.digests.end()) {
          image.digests.push_back(name);
        }
        image.names.push_back(name);
        image.parsed.push_back(std::move(parsed));
      }
    }
  }
  TRY(FindFormer(images, unchanged, listed));
  return listed;
}

std::string NameOf(const ImageInList& image) {
  return image.names.empty() ? image.id : image.names.front();
}

Result<void> Enter(Images& images, const ImageInList& image, std::string_view source,
                   std::string_view reason) {
  ImageRow row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
  PreloadedPart part{.names = image.names,
                     .source = std::string(source),
                     .reason = std::string(reason),
                     .since = images.txn().now(),
                     .as_of = images.txn().sequence()};
  std::ranges::sort(part.names);
  const auto repeated = std::ranges::unique(part.names);
  part.names.erase(repeated.begin(), repeated.end());
  if (part.names.size() > kMaxNamesPerImage) part.names.resize(kMaxNamesPerImage);
  row.preloaded = std::move(part);
  row.absent = 0;
  const auto confirms = row.pulled ? Images::Confirms::kNo : Images::Confirms::kYes;
  return images.Put(std::move(row), confirms);
}

// What judging one image does.
class Judge {
 public:
  Judge(Images& images, ClassifyReport& report) : images_(images), report_(report) {}

  Result<void> Preloaded(const ImageInList& image, std::string_view source, std::string_view reason,
                         std::string because) {
    TRY(Enter(images_, image, source, reason));
    ++report_.preloaded;
    Note(image, true, std::move(because));
    return {};
  }

  // Gives back what is remembered of an image that was preloaded: true. Not if a pull of its name
  // may have brought it since, or one that nobody recorded, nor under other names.
  Result<bool> GiveBack(const ImageInList& image, const Givers& givers) {
    ImageRow row = TRY(images_.FindOrMake(image.subject, image.runtime_handler));
    if (!row.preloaded || row.absent == 0 || !givers.HasOwnName(image, row.preloaded->names)) {
      return false;
    }
    const auto may_be_known = TRY(givers.MayBeKnown(images_, image));
    if (!may_be_known.empty()) return false;
    row.absent = 0;
    row.preloaded->as_of = images_.txn().sequence();
    TRY(images_.Put(std::move(row), Images::Confirms::kYes));
    ++report_.known;
    return true;
  }

  // Enters it if the runtime shows that nobody pulled it: true.
  Result<bool> Imported(const ImageInList& image, const Givers& givers) {
    if (!image.imported) return false;
    auto may_be_known = TRY(givers.MayBeKnown(images_, image));
    if (!may_be_known.empty()) return false;
    TRY(Preloaded(image, kImported, "", std::string(kIsImported)));
    return true;
  }

  // Whether the runtime pins it, and no open pull names it.
  Result<bool> IsPinned(const ImageInList& image, const Givers& givers) const {
    if (!image.pinned) return false;
    auto judgement = TRY(givers.Judge(images_, image));
    return judgement.verdict == Givers::Verdict::kPreloaded;
  }
  Result<void> EnterPinned(const ImageInList& image) {
    return Preloaded(image, kPinned, "", std::string(kIsPinned));
  }

  Result<void> Close(const ImageInList& image, std::string because) {
    const ClosedBy by = TRY(WhoClosed(image));
    ImageRow row = TRY(images_.FindOrMake(image.subject, image.runtime_handler));
    row = Present(std::move(row));
    row.ref = image.id;
    row.pulled = PulledPart{.last_updated = images_.txn().now(),
                            .closed_because = because.substr(0, kMaxReasonBytes),
                            .closed_by = by};
    TRY(images_.Put(std::move(row), Images::Confirms::kYes));
    ++report_.closed;
    Note(image, false, std::move(because));
    return {};
  }

 private:
  // An operator's closing goes with an image that comes back under another ID.
  Result<ClosedBy> WhoClosed(const ImageInList& image) const {
    for (const std::string& former : image.formerly) {
      const auto rows = TRY(images_.RowsOf(former));
      const bool by_operator = std::ranges::any_of(
          rows, [](const ImageRow& row) { return WordOfOperator(row) == ClosedBy::kOperator; });
      if (by_operator) return ClosedBy::kOperator;
    }
    return ClosedBy::kList;
  }

  void Note(const ImageInList& image, bool preloaded, std::string because) {
    // Of each kind, so that none that closes goes unnamed for those that open.
    if ((preloaded ? report_.preloaded : report_.closed) > kMaxJudged) return;
    report_.judged.push_back(
        {image.id, image.runtime_handler, NameOf(image), preloaded, std::move(because)});
  }

  Images& images_;
  ClassifyReport& report_;
};

// The images of which nothing is known.
Result<std::vector<const ImageInList*>> Unknown(const Images& images,
                                                const std::vector<ImageInList>& listed,
                                                ClassifyReport& report) {
  std::vector<const ImageInList*> unknown;
  for (const ImageInList& image : listed) {
    auto known = TRY(IsKnown(images, image));
    if (known) {
      ++report.known;
    } else {
      unknown.push_back(&image);
    }
  }
  return unknown;
}

// Whether the runtime's word that nobody pulled what is there now outdoes the record: a list made
// it by a guess, or it is of what was there before, and is gone. Not what an operator closed.
bool IsOutdone(const ImageRow& row) {
  if (!row.pulled || row.pulled->closed_by == ClosedBy::kOperator) return false;
  if (row.pulled->closed_by == ClosedBy::kList) return row.pulled->entries.empty();
  return row.absent != 0 && row.pulled->closed_because.empty();
}

// Of each image the handlers whose copies the runtime says nobody pulled; nullopt: all.
using ImportedCopies = std::map<std::string, std::set<std::optional<std::string>>>;

// An entry without a handler is about every copy. So it counts if all of the image's entries say
// so, and if it does not say so, none does.
ImportedCopies FindImported(const std::vector<ImageInList>& listed) {
  ImportedCopies imported;
  std::set<std::string> not_all;
  std::set<std::string> none;
  for (const ImageInList& image : listed) {
    if (image.imported) {
      imported[image.subject].insert(image.has_handler ? std::optional(image.runtime_handler)
                                                       : std::nullopt);
    } else {
      (image.has_handler ? not_all : none).insert(image.subject);
    }
  }
  for (const std::string& image : none) imported.erase(image);
  for (const std::string& image : not_all) {
    if (const auto at = imported.find(image); at != imported.end()) at->second.erase(std::nullopt);
  }
  return imported;
}

// Records that the runtime's word outdoes: their images are judged anew. Its word is about copies
// of one handler, and while another record stays, the image is known.
Result<void> ForgetOutdone(Images& images, const std::vector<ImageInList>& listed) {
  for (const auto& [subject, copies] : FindImported(listed)) {
    auto rows = TRY(images.RowsOf(subject));
    std::erase_if(rows, [](const ImageRow& row) { return !row.pulled; });
    const bool all = std::ranges::all_of(rows, [&, &copies = copies](const ImageRow& row) {
      return IsOutdone(row) &&
             (copies.contains(std::nullopt) || copies.contains(row.runtime_handler));
    });
    if (!all) continue;
    for (ImageRow& row : rows) TRY(images.Unrecord(std::move(row)));
  }
  return {};
}

// Which images an operator's or installer's list names, if there is one, by ID, digest or name. Not
// those that may have a record or be in quarantine.
Result<std::set<const ImageInList*>> NamedBy(const Images& images, const Givers& givers,
                                             const Observing& observing,
                                             const std::vector<const ImageInList*>& unknown) {
  std::set<const ImageInList*> named;
  if (observing.preloaded == nullptr) return named;
  std::set<std::string> refs;
  std::set<std::string> names;
  for (const ListedImage& one : *observing.preloaded) {
    if (!one.id.empty()) refs.insert(images.SubjectOf(one.id));
    // An entry with an ID means that image only.
    if (!one.id.empty()) continue;
    for (const auto* strings : {&one.repo_tags, &one.repo_digests}) {
      for (const std::string& name : *strings) {
        const NamedImage parsed = ReadName(name);
        if (parsed.parses) {
          names.insert(parsed.repository + ":" + parsed.tag + "@" + parsed.digest);
        }
      }
    }
  }
  for (const ImageInList* image : unknown) {
    const bool by_ref =
        refs.contains(images.SubjectOf(image->id)) || refs.contains(image->subject) ||
        std::any_of(image->digests.begin(), image->digests.end(), [&](const std::string& digest) {
          const bool shared =
              std::find(image->shared.begin(), image->shared.end(), digest) != image->shared.end();
          return !shared && refs.contains(images.SubjectOf(digest));
        });
    const bool by_name =
        std::any_of(image->parsed.begin(), image->parsed.end(), [&](const NamedImage& name) {
          return names.contains(name.repository + ":" + name.tag + "@" + name.digest);
        });
    if (!by_ref && !by_name) continue;
    auto may_be_known = TRY(givers.MayBeKnown(images, *image));
    if (may_be_known.empty()) named.insert(image);
  }
  return named;
}

// A later list judges it.
void Leave(const ImageInList& image, ClassifyReport& report, std::vector<std::string>& names_left) {
  ++report.left;
  names_left.insert(names_left.end(), image.names.begin(), image.names.end());
}

void TakeLearnt(Learnt learnt, ClassifyReport& report) {
  report.united = learnt.united;
  report.shared_digests = std::move(learnt.shared_digests);
  if (report.shared_digests.size() > kMaxSharedDigests) {
    report.shared_digests.resize(kMaxSharedDigests);
  }
}

// Whether the list can't have what a removed record, ledger entry or open pull brought.
bool IsPlaced(const StoreTxn& txn, const ImageList& list) {
  return list.token && list.token->commit >= txn.state().evidence_removed;
}

Result<void> JudgeAll(Images& images, const std::vector<ImageInList>& listed, const ImageList& list,
                      const Observing& observing, bool first_start, ClassifyReport& report,
                      std::vector<std::string>& names_left) {
  auto unknown = TRY(Unknown(images, listed, report));
  if (unknown.empty()) return {};
  std::optional<std::uint64_t> until;
  if (list.token) until = list.token->commit;
  auto givers = TRY(Givers::Collect(images, {observing.options.short_names, until, first_start}));
  std::set<const ImageInList*> preloaded;
  if (first_start) preloaded = TRY(NamedBy(images, givers, observing, unknown));
  const bool is_placed = IsPlaced(images.txn(), list);
  Judge judge(images, report);
  for (const ImageInList* image : unknown) {
    if (preloaded.contains(image)) {
      TRY(judge.Preloaded(*image, kPreloadedList, "", std::string(kNamed)));
      continue;
    }
    const bool may_enter = is_placed || (first_start && !list.token);
    if (may_enter) {
      if (TRY(judge.Imported(*image, givers))) continue;
      if (TRY(judge.GiveBack(*image, givers))) continue;
    }
    auto judgement = TRY(givers.Judge(images, *image));
    if (judgement.verdict == Givers::Verdict::kPreloaded && may_enter) {
      const bool presumed = first_start && !image->pinned;
      const std::string_view source = !list.source.empty() ? std::string_view(list.source)
                                      : presumed           ? kPresumedSource
                                      : first_start        ? kPinned
                                                           : kListedSource;
      TRY(judge.Preloaded(
          *image, source, "",
          (presumed ? "presumed, as a kubelet does: " : "") + std::move(judgement.because)));
    } else if (judgement.verdict == Givers::Verdict::kPreloaded ||
               judgement.verdict == Givers::Verdict::kLater ||
               (judgement.verdict == Givers::Verdict::kUnplaced && !list.complete) ||
               !list.source.empty()) {
      // Only the runtime's word closes: it knows every name.
      Leave(*image, report, names_left);
    } else {
      TRY(judge.Close(*image, std::move(judgement.because)));
    }
  }
  return {};
}

// A distrustful store judges nothing; but that nobody pulled an image is the runtime's word, which
// no loss of the store's makes less true.
Result<void> LeaveAllButImported(Images& images, const std::vector<ImageInList>& listed,
                                 const ImageList& list, const Observing& observing,
                                 ClassifyReport& report) {
  auto unknown = TRY(Unknown(images, listed, report));
  report.left = unknown.size();
  if (images.txn().state().kubelet_rules || !IsPlaced(images.txn(), list)) return {};
  const bool any = std::any_of(unknown.begin(), unknown.end(),
                               [](const ImageInList* image) { return image->imported; });
  if (!any) return {};
  auto givers = TRY(Givers::Collect(images, {observing.options.short_names, std::nullopt, false}));
  Judge judge(images, report);
  for (const ImageInList* image : unknown) {
    if (TRY(judge.Imported(*image, givers))) --report.left;
  }
  return {};
}

// A runtime may list an image by another ID than before. What is known of its coming goes with it,
// though a short name is being pulled; but not while a pull of its own name is open, or of a string
// that its name ends with, since the digest may be an index's, and the image that of another
// platform. Where one image has its ID still, it is another image of an index: a runtime changes
// the IDs of all.
Result<void> MovePreloaded(Images& images, const std::vector<ImageInList>& listed,
                           std::uint64_t token, const Observing& observing) {
  if (std::ranges::any_of(listed, &ImageInList::same_id)) return {};
  std::optional<Givers> givers;
  for (const ImageInList& image : listed) {
    if (image.formerly.empty()) continue;
    ImageRow old = TRY(images.FindOrMake(image.formerly.front(), image.runtime_handler));
    if (!old.preloaded || old.preloaded->as_of > token) continue;
    if (TRY(IsKnown(images, image))) continue;
    if (!givers) {
      givers = TRY(Givers::Collect(images, {observing.options.short_names, std::nullopt, false}));
    }
    const auto may_be_known = TRY(givers->MayBeKnown(images, image));
    if (!may_be_known.empty() || givers->IsNamedByPulls(image)) continue;
    ImageRow now = TRY(images.FindOrMake(image.subject, image.runtime_handler));
    now.preloaded = old.preloaded;
    now.preloaded->as_of = images.txn().sequence();
    now.absent = 0;
    TRY(images.Put(std::move(now), Images::Confirms::kYes));
    TRY(images.Unload(std::move(old)));
  }
  return {};
}

// After a gap. What the runtime shows to be imported came without a pull all the same; what is back
// may be what a pull brought that nobody recorded. What the runtime pins counts, too, and at a
// first start an installer's list.
Result<void> CloseAll(Images& images, const std::vector<ImageInList>& listed, const ImageList& list,
                      const Observing& observing, ClassifyReport& report,
                      std::vector<std::string>& names_left) {
  auto unknown = TRY(Unknown(images, listed, report));
  auto givers = TRY(Givers::Collect(images, {observing.options.short_names, std::nullopt, false}));
  const bool first_start = images.txn().state().awaits_first_list;
  std::set<const ImageInList*> preloaded;
  if (first_start) preloaded = TRY(NamedBy(images, givers, observing, unknown));
  const bool is_placed = IsPlaced(images.txn(), list);
  Judge judge(images, report);
  for (const ImageInList* image : unknown) {
    if (preloaded.contains(image)) {
      TRY(judge.Preloaded(*image, kPreloadedList, "", std::string(kNamed)));
      continue;
    }
    if (is_placed || (first_start && !list.token)) {
      if (TRY(judge.Imported(*image, givers))) continue;
    }
    if (!TRY(judge.IsPinned(*image, givers))) {
      TRY(judge.Close(*image, "images may have been pulled that nobody recorded"));
    } else if (is_placed || first_start) {
      TRY(judge.EnterPinned(*image));
    } else {
      // The list may be older than what was removed since. A newer one will say the same.
      Leave(*image, report, names_left);
    }
  }
  return {};
}

Result<void> Retire(Images& images, const std::vector<ImageInList>& listed, Unchanged unchanged,
                    std::uint64_t token, const Observing& observing, bool keeps_preloaded,
                    ClassifyReport& report) {
  OnNode on_node(images, std::move(unchanged));
  for (const ImageInList& image : listed) {
    const auto handler = image.has_handler ? std::optional(image.runtime_handler) : std::nullopt;
    TRY(on_node.Add(image.id, image.digests, handler));
  }
  // What is to be judged still needs what is known.
  std::set<std::string> spared;
  if (report.left > 0) {
    for (const ImageInList& image : listed) {
      spared.insert(image.formerly.begin(), image.formerly.end());
    }
  }
  RetireLimit limit;
  limit.token = token;
  limit.spared = report.left > 0 ? &spared : nullptr;
  limit.remember = observing.options.remember;
  const auto retire_preloaded = [&]() -> Result<void> {
    const auto retired = TRY(RetirePreloaded(images, on_node, limit, keeps_preloaded,
                                             std::numeric_limits<std::size_t>::max()));
    report.preloaded_removed += retired.entries;
    return {};
  };
  // While the records are there that decide which go.
  if (keeps_preloaded) TRY(retire_preloaded());
  const auto retired = TRY(RetireRecords(images, on_node, limit, {}));
  report.records_removed = retired.report.removed;
  report.preloaded_removed += retired.report.preloaded_removed;
  if (!keeps_preloaded) TRY(retire_preloaded());
  TRY(KeepWithinBound(images));
  return report.left > 0 ? Result<void>() : ForgetUnknown(images, on_node, token);
}

// A digest of an unreadable file that two images have may be of either: neither stays preloaded by
// what was judged before.
Result<void> DropUnreadable(Images& images, const std::vector<ImageInList>& listed) {
  if (images.txn().state().digest(Table::kQuarantine).count == 0) return {};
  for (const ImageInList& image : listed) {
    for (const std::string& digest : image.shared) {
      const bool unreadable =
          TRY(images.AnyUnreadable(QuarantineKind::kImageRef, PlainSpellings(digest)));
      if (!unreadable) continue;
      ImageRow row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
      if (row.preloaded) TRY(images.Unload(std::move(row)));
    }
  }
  return {};
}

// Whether anything is known of any image, on the node or gone.
Result<bool> HoldsImages(const Images& images) {
  bool any = false;
  TRY(images.txn().ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    any = payload.empty() || ImageView(payload).is_recorded() || ImageView(payload).has_preloaded();
    return !any;
  }));
  return any;
}

// `remembers`: what an empty list lacks is remembered, so it loses nothing.
Result<void> CheckList(const Images& images, const ImageList& list, const Observing& observing,
                       bool remembers) {
  const StoreTxn& txn = images.txn();
  if (list.images.size() > kMaxListedImages) {
    return Error{ErrorCode::kLimitExceeded, "the list has " + std::to_string(list.images.size()) +
                                                " images, and " + std::to_string(kMaxListedImages) +
                                                " are allowed; nothing was changed"};
  }
  if (list.token) TRY(CheckToken(txn, *list.token, Hint::kBeginList));
  const bool of_this_boot = list.token && list.token->drawn.boot_id == observing.now.boot_id;
  if (list.token && (list.token->drawn.nanoseconds < 0 ||
                     (of_this_boot && list.token->drawn.nanoseconds > observing.now.nanoseconds))) {
    return Error{ErrorCode::kInvalidArgument,
                 "the token was drawn later than now; nothing was changed",
                 {},
                 Hint::kBeginList};
  }
  const ListToken& last = observing.last_list;
  const std::uint64_t last_list = std::max(txn.state().last_list, last.commit);
  // Lists between which nothing was committed have one number.
  const auto is_before_last = [&](const BootTime& drawn) {
    if (drawn.boot_id != last.drawn.boot_id) return last.drawn.boot_id == observing.now.boot_id;
    return drawn.nanoseconds < last.drawn.nanoseconds;
  };
  const bool began_earlier =
      list.token && list.token->commit == last.commit && is_before_last(list.token->drawn);
  if (list.token && (list.token->commit < last_list || began_earlier)) {
    return Error{ErrorCode::kInvalidArgument,
                 "the token " + std::to_string(list.token->commit) +
                     " is older than that of a list that was observed already" +
                     (began_earlier ? "" : " (" + std::to_string(last_list) + ")") +
                     "; nothing was changed",
                 {},
                 Hint::kBeginList};
  }
  if (!list.images.empty() || !list.complete || observing.allow_empty || remembers) return {};
  const auto held = TRY(CountHeld(images));
  const std::uint64_t pulls = txn.state().digest(Table::kIntents).count;
  if (held.records + held.preloaded + pulls == 0) return {};
  return EmptyList("the list of images on the node is",
                   "holds " + HowMany(held.records, "record") + ", " +
                       HowMany(held.preloaded, "preloaded image") + " and " +
                       HowMany(pulls, "open pull"),
                   "nothing was changed");
}

}  // namespace

Result<ClassifyReport> ObserveList(Images& images, const ImageList& list,
                                   const Observing& observing) {
  StoreTxn& txn = images.txn();
  const bool remembers = observing.options.remember.count() > 0;
  TRY(CheckList(images, list, observing, remembers));
  ClassifyReport report;
  // Only the runtime tells which digests are whose.
  auto unchanged = list.source.empty() ? TRY(Unchanged::Find(images, list.images)) : Unchanged();
  auto listed = TRY(Prepare(images, list.images, unchanged, report));
  if (!list.source.empty()) {
    // A record under any digest may be the image's.
    for (ImageInList& image : listed) {
      image.shared = image.digests;
      image.imported = false;
    }
  } else {
    const bool is_whole = list.complete && (list.token || txn.state().awaits_first_list);
    auto learnt = TRY(Learn(images, listed, is_whole));
    TakeLearnt(std::move(learnt), report);
    TRY(DropUnreadable(images, listed));
  }

  const bool had_any = TRY(HoldsImages(images));
  // An empty list, or one without any image that was known, may be of another runtime, or of a disk
  // that is not mounted yet: what a pull brought may still come.
  const auto tells = [&] {
    return observing.allow_empty || report.known > 0 || (!had_any && !list.images.empty());
  };
  std::vector<std::string> names_left;  // of images that a later list will judge
  auto gap = TRY(GapInForce(txn));
  const bool is_whole = list.complete && list.source.empty();
  if (IsPlaced(txn, list) && !txn.state().kubelet_rules) TRY(ForgetOutdone(images, listed));
  if (is_whole && !gap.empty()) {
    TRY(CloseAll(images, listed, list, observing, report, names_left));
    if (tells()) {
      TRY(TakeBackDistrust(txn, gap));
      TRY(OpenPullOfAnything(txn, observing.now));
      txn.state().awaits_first_list = false;
    }
  } else if (txn.state().distrustful || txn.state().kubelet_rules) {
    // A restart under the closed rules makes a gap of the time under the others.
    report.not_judged_because = txn.state().distrustful
                                    ? "the store is distrustful"
                                    : "the store is used under the rules `kubelet`";
    TRY(LeaveAllButImported(images, listed, list, observing, report));
  } else {
    if (is_whole && IsPlaced(txn, list) && unchanged.count() == 0) {
      TRY(MovePreloaded(images, listed, list.token->commit, observing));
    }
    const bool first_start =
        txn.state().awaits_first_list && is_whole && (!listed.empty() || observing.allow_empty);
    TRY(JudgeAll(images, listed, list, observing, first_start, report, names_left));
    if (first_start) {
      txn.state().awaits_first_list = false;
      txn.Touch();
    }
  }
  if (!list.token) return report;
  if (list.complete) {
    if (report.not_judged_because.empty() && tells()) {
      report.pulls_settled =
          TRY(SettlePulls(txn, list, observing.now, observing.options, names_left));
    }
    // What is away does not come back in a gap. One whose image was pulled, too, must not: what is
    // back may be what that pull brought.
    const bool keeps_preloaded = !gap.empty() && !tells();
    TRY(Retire(images, listed, std::move(unchanged), list.token->commit, observing, keeps_preloaded,
               report));
  }
  txn.state().last_list = list.token->commit;
  return report;
}

Result<bool> LearnEntry(Images& images, const ListedImage& image, const std::string& image_ref) {
  ClassifyReport ignored;
  auto listed = TRY(Prepare(images, {image}, Unchanged(), ignored));
  const std::string subject = images.SubjectOf(image_ref);
  for (ImageInList& one : listed) {
    const bool has_it = images.SubjectOf(one.id) == subject ||
                        std::ranges::any_of(one.digests, [&](const std::string& digest) {
                          return images.SubjectOf(digest) == subject;
                        });
    if (has_it) continue;
    // An ID that is not the entry's: the entry is of what the name leads to by now.
    if (image_ref.find('@') == std::string::npos) return false;
    one.digests.push_back(image_ref);
  }
  TRY(Learn(images, listed, false));
  return !listed.empty();
}

Result<std::uint64_t> JudgeObservedPreloaded(Images& images, const Observing& observing) {
  std::uint64_t entered = 0;
  const StoreTxn& txn = images.txn();
  if (txn.state().distrustful) return entered;
  auto observed =
      TRY(ReadAll(txn, Table::kPreloaded, DecodePreloadedValue,
                  Error{ErrorCode::kDamaged, "an observed-preloaded record can't be read", {}}));
  auto givers = TRY(Givers::Collect(images, {observing.options.short_names, std::nullopt, false}));
  for (const ImagePreloadedRecord& one : observed) {
    ClassifyReport ignored;
    const auto listed =
        TRY(Prepare(images, {ListedImage{.id = one.image_ref, .repo_tags = one.observed_images}},
                    Unchanged(), ignored));
    for (const ImageInList& image : listed) {
      if (TRY(IsKnown(images, image))) continue;
      const auto judgement = TRY(givers.Judge(images, image));
      if (judgement.verdict != Givers::Verdict::kPreloaded) continue;
      TRY(Enter(images, image, kObservedPreloaded, ""));
      ++entered;
    }
  }
  return entered;
}

Result<ClassifyReport> CloseOrAdopt(Images& images, const std::optional<ImageList>& list,
                                    bool adopt, std::string_view reason,
                                    const Observing& observing) {
  ClassifyReport report;
  if (list) {
    TRY(CheckList(images, *list, observing, false));
    auto listed = TRY(Prepare(images, list->images, Unchanged(), report));
    auto learnt = TRY(Learn(images, listed, false));
    TakeLearnt(std::move(learnt), report);
    auto unknown = TRY(Unknown(images, listed, report));
    auto givers =
        TRY(Givers::Collect(images, {observing.options.short_names, std::nullopt, false}));
    Judge judge(images, report);
    for (const ImageInList* image : unknown) {
      if (TRY(judge.IsPinned(*image, givers))) {
        TRY(judge.EnterPinned(*image));
        continue;
      }
      auto may_be_known = TRY(givers.MayBeKnown(images, *image));
      if (!may_be_known.empty()) {
        TRY(judge.Close(*image, std::move(may_be_known)));
      } else if (adopt) {
        TRY(judge.Preloaded(*image, kAdopted, reason, "an operator adopted it"));
      } else {
        TRY(judge.Close(*image, "it was there, unknown, when distrust was cleared"));
      }
    }
  }
  TRY(OpenPullOfAnything(images.txn(), observing.now));
  images.txn().state().awaits_first_list = false;
  return report;
}

}  // namespace waybill::internal
