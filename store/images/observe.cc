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
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/retire.h"
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

// A name that is too long does not parse.
NamedImage ReadListed(const std::string& name) {
  return name.size() <= kMaxImageBytes ? ReadName(name) : NamedImage();
}

// The handler of a list's entry as stored; nullopt: it names none, or there is no list of handlers,
// so there is the default one only, whatever it is called.
std::optional<std::string> HandlerInList(const std::vector<RuntimeHandler>& handlers,
                                         const ListedImage& image) {
  if (handlers.empty() || image.runtime_handler.empty()) return std::nullopt;
  // No record is of such a name.
  if (image.runtime_handler.size() > kMaxRuntimeHandlerBytes) return std::string();
  return StoredName(handlers, image.runtime_handler);
}

// The images of a list, each once. Handlers are mapped to their stored names.
Result<std::vector<ImageInList>> Prepare(const Images& images, const std::vector<ListedImage>& list,
                                         ClassifyReport& report) {
  auto handlers = TRY(ReadRuntimeHandlers(images.txn()));
  std::vector<ImageInList> listed;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  report.listed = list.size();
  for (const ListedImage& one : list) {
    // No record can have such a ref.
    if (one.id.empty() || one.id.size() > kMaxImageRefBytes) continue;
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
  TRY(FindFormer(images, listed));
  return listed;
}

std::string NameOf(const ImageInList& image) {
  return image.names.empty() ? image.id : image.names.front();
}

Result<void> Enter(Images& images, const ImageInList& image, std::string_view source,
                   std::string_view reason) {
  ImageRow row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
  row.preloaded = PreloadedNow(images.txn(), image.names, source, reason);
  row.absent = 0;
  const auto confirms = row.pulled ? Images::Confirms::kNo : Images::Confirms::kYes;
  return images.Put(std::move(row), confirms);
}

// An operator's closing goes with an image that comes back under another ID.
Result<ClosedBy> WhoClosed(const Images& images, const ImageInList& image) {
  for (const std::string& former : image.formerly) {
    const auto rows = TRY(images.RowsOf(former));
    const bool by_operator = std::ranges::any_of(
        rows, [](const ImageRow& row) { return WordOfOperator(row) == ClosedBy::kOperator; });
    if (by_operator) return ClosedBy::kOperator;
  }
  return ClosedBy::kList;
}

Result<void> Close(Images& images, const ImageInList& image, const std::string& because) {
  const ClosedBy by = TRY(WhoClosed(images, image));
  ImageRow row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
  row = Present(std::move(row));
  row.ref = image.id;
  row.pulled = PulledPart{.last_updated = images.txn().now(),
                          .closed_because = because.substr(0, kMaxReasonBytes),
                          .closed_by = by};
  return images.Put(std::move(row), Images::Confirms::kYes);
}

// What is remembered of an image that was preloaded counts again.
Result<void> GiveBack(Images& images, const ImageInList& image) {
  ImageRow row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
  row.absent = 0;
  row.preloaded->as_of = images.txn().sequence();
  return images.Put(std::move(row), Images::Confirms::kYes);
}

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

// Which images an operator's or installer's list names, by ID, digest or name.
class Named {
 public:
  Named(const Images& images, const std::vector<ListedImage>& list) : images_(images) {
    for (const ListedImage& one : list) {
      if (!one.id.empty()) refs_.insert(images.SubjectOf(one.id));
      // An entry with an ID means that image only.
      if (!one.id.empty()) continue;
      for (const auto* strings : {&one.repo_tags, &one.repo_digests}) {
        for (const std::string& name : *strings) {
          const NamedImage parsed = ReadName(name);
          if (parsed.parses) names_.insert(TextOf(parsed));
        }
      }
    }
  }

  bool Has(const ImageInList& image) const {
    const auto has_digest = [&](const std::string& digest) {
      return std::ranges::find(image.shared, digest) == image.shared.end() &&
             refs_.contains(images_.SubjectOf(digest));
    };
    const auto has_name = [&](const NamedImage& name) { return names_.contains(TextOf(name)); };
    return refs_.contains(images_.SubjectOf(image.id)) || refs_.contains(image.subject) ||
           std::ranges::any_of(image.digests, has_digest) ||
           std::ranges::any_of(image.parsed, has_name);
  }

 private:
  static std::string TextOf(const NamedImage& name) {
    return name.repository + ":" + name.tag + "@" + name.digest;
  }

  const Images& images_;
  std::set<std::string> refs_;
  std::set<std::string> names_;
};

// What judges an image of which nothing is known.
enum class Rule : std::uint8_t {
  kEvidence,
  // After a gap. What the runtime shows to be imported came without a pull all the same; what is
  // back may be what a pull brought that nobody recorded. What the runtime pins counts, too, and at
  // a first start an installer's list.
  kUnrecorded,
  // A distrustful store judges nothing; but that nobody pulled an image is the runtime's word,
  // which no loss of the store's makes less true.
  kDistrust,
  // At an operator's word.
  kClose,
  kAdopt,
};

struct Terms {
  Rule rule = Rule::kEvidence;
  bool first_start = false;
  bool may_enter = false;  // the list is not older than what was removed since
  std::string_view reason = {};
};

enum class Of : std::uint8_t { kLeft, kKnown, kPreloaded, kClosed };
struct Fate {
  Of of = Of::kLeft;             // to a later list. kKnown: it counts again as preloaded
  std::string_view source = {};  // of what is preloaded from now on
  std::string because = {};
};

class Judge {
 public:
  Judge(const Images& images, const Givers& givers, const ImageList& list, const Terms& terms,
        const Observing& observing)
      : images_(images), givers_(givers), list_(list), terms_(terms) {
    if (terms.first_start && observing.preloaded != nullptr) {
      named_.emplace(images, *observing.preloaded);
    }
  }

  // Whether an installer's list names it, and nothing else may be known of it.
  Result<bool> IsNamed(const ImageInList& image) const {
    if (!named_ || !named_->Has(image)) return false;
    const auto may_be_known = TRY(givers_.MayBeKnown(images_, image));
    return may_be_known.empty();
  }

  Result<Fate> FateOf(const ImageInList& image, bool is_named) const {
    if (is_named) return Preloaded(kPreloadedList, kNamed);
    const bool is_imported = terms_.may_enter && image.imported;
    const bool by_operator = terms_.rule == Rule::kClose || terms_.rule == Rule::kAdopt;
    std::string may_be_known;
    if (is_imported || by_operator) may_be_known = TRY(givers_.MayBeKnown(images_, image));
    if (is_imported && may_be_known.empty()) return Preloaded(kImported, kIsImported);
    if (terms_.rule == Rule::kDistrust) return Fate{};
    if (terms_.rule == Rule::kEvidence) return ByEvidence(image);
    const bool is_pinned = TRY(IsPinned(image));
    if (terms_.rule == Rule::kUnrecorded) {
      if (!is_pinned) return Closed("images may have been pulled that nobody recorded");
      if (terms_.may_enter || terms_.first_start) return Preloaded(kPinned, kIsPinned);
      // The list may be older than what was removed since. A newer one will say the same.
      return Fate{};
    }
    if (is_pinned) return Preloaded(kPinned, kIsPinned);
    if (!may_be_known.empty()) return Closed(std::move(may_be_known));
    if (terms_.rule == Rule::kAdopt) return Preloaded(kAdopted, "an operator adopted it");
    return Closed("it was there, unknown, when distrust was cleared");
  }

 private:
  static Fate Preloaded(std::string_view source, std::string_view because) {
    return {Of::kPreloaded, source, std::string(because)};
  }
  static Fate Closed(std::string because) {
    return {.of = Of::kClosed, .because = std::move(because)};
  }

  // Whether the runtime pins it, and no open pull names it.
  Result<bool> IsPinned(const ImageInList& image) const {
    if (!image.pinned) return false;
    const auto judgement = TRY(givers_.Judge(images_, image));
    return judgement.verdict == Givers::Verdict::kPreloaded;
  }

  // Whether what is remembered of it counts again. Not if a pull of its name may have brought it
  // since, or one that nobody recorded, nor under other names.
  Result<bool> ComesBack(const ImageInList& image) const {
    const auto row = TRY(images_.FindOrMake(image.subject, image.runtime_handler));
    if (!row.preloaded || row.absent == 0 || !givers_.HasOwnName(image, row.preloaded->names)) {
      return false;
    }
    const auto may_be_known = TRY(givers_.MayBeKnown(images_, image));
    return may_be_known.empty();
  }

  Result<Fate> ByEvidence(const ImageInList& image) const {
    if (terms_.may_enter && TRY(ComesBack(image))) return Fate{.of = Of::kKnown};
    auto judgement = TRY(givers_.Judge(images_, image));
    const Givers::Verdict verdict = judgement.verdict;
    if (verdict == Givers::Verdict::kPreloaded && terms_.may_enter) {
      const bool presumed = terms_.first_start && !image.pinned;
      const std::string_view source = !list_.source.empty() ? std::string_view(list_.source)
                                      : presumed            ? kPresumedSource
                                      : terms_.first_start  ? kPinned
                                                            : kListedSource;
      return Preloaded(source,
                       (presumed ? "presumed, as a kubelet does: " : "") + judgement.because);
    }
    // Only the runtime's word closes: it knows every name.
    const bool closes = verdict == Givers::Verdict::kPulled ||
                        (verdict == Givers::Verdict::kUnplaced && list_.complete);
    return closes && list_.source.empty() ? Closed(std::move(judgement.because)) : Fate{};
  }

  const Images& images_;
  const Givers& givers_;
  const ImageList& list_;
  const Terms terms_;
  std::optional<Named> named_;
};

// `names_left`: gets the names of images that a later list will judge.
Result<void> JudgeAll(Images& images, const std::vector<ImageInList>& listed, const ImageList& list,
                      const Observing& observing, const Terms& terms, ClassifyReport& report,
                      std::vector<std::string>& names_left) {
  const auto unknown = TRY(Unknown(images, listed, report));
  const bool leaves_all =
      terms.rule == Rule::kDistrust &&
      std::ranges::none_of(unknown, [&](const ImageInList* image) { return image->imported; });
  if (unknown.empty() || leaves_all) {
    report.left = unknown.size();
    return {};
  }
  Givers::Options options{observing.options.short_names, std::nullopt, false};
  if (terms.rule == Rule::kEvidence) {
    options.first_start = terms.first_start;
    if (list.token) options.until = list.token->commit;
  }
  const auto givers = TRY(Givers::Collect(images, options));
  const Judge judge(images, givers, list, terms, observing);
  // By what was known before any is closed.
  std::set<const ImageInList*> named;
  for (const ImageInList* image : unknown) {
    if (TRY(judge.IsNamed(*image))) named.insert(image);
  }
  for (const ImageInList* image : unknown) {
    auto fate = TRY(judge.FateOf(*image, named.contains(image)));
    switch (fate.of) {
      case Of::kLeft:
        ++report.left;
        names_left.insert(names_left.end(), image->names.begin(), image->names.end());
        continue;
      case Of::kKnown:
        TRY(GiveBack(images, *image));
        ++report.known;
        continue;
      case Of::kPreloaded:
        TRY(Enter(images, *image, fate.source, fate.source == kAdopted ? terms.reason : ""));
        break;
      case Of::kClosed:
        TRY(Close(images, *image, fate.because));
        break;
    }
    const bool preloaded = fate.of == Of::kPreloaded;
    // Of each kind, so that none that closes goes unnamed for those that open.
    if (++(preloaded ? report.preloaded : report.closed) > kMaxJudged) continue;
    report.judged.push_back(
        {image->id, image->runtime_handler, NameOf(*image), preloaded, std::move(fate.because)});
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

Result<void> Retire(Images& images, const std::vector<ImageInList>& listed, std::uint64_t token,
                    const Observing& observing, bool keeps_preloaded, ClassifyReport& report) {
  OnNode on_node(images);
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
  auto listed = TRY(Prepare(images, list.images, report));
  // Only the runtime tells which digests are whose.
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

  const Held held = TRY(CountHeld(images));
  const bool had_any = held.records + held.preloaded > 0;
  // An empty list, or one without any image that was known, may be of another runtime, or of a disk
  // that is not mounted yet: what a pull brought may still come.
  const auto tells = [&] {
    return observing.allow_empty || report.known > 0 || (!had_any && !list.images.empty());
  };
  std::vector<std::string> names_left;  // of images that a later list will judge
  auto gap = TRY(GapInForce(txn));
  const bool is_whole = list.complete && list.source.empty();
  const bool is_placed = IsPlaced(txn, list);
  Terms terms{.may_enter = is_placed};
  if (is_placed) TRY(ForgetOutdone(images, listed));
  if (is_whole && !gap.empty()) {
    terms.rule = Rule::kUnrecorded;
    terms.first_start = txn.state().awaits_first_list;
    terms.may_enter = is_placed || (terms.first_start && !list.token);
    TRY(JudgeAll(images, listed, list, observing, terms, report, names_left));
    if (tells()) {
      TRY(TakeBackDistrust(txn, gap));
      TRY(OpenPullOfAnything(txn, observing.now));
      txn.state().awaits_first_list = false;
    }
  } else if (txn.state().distrustful) {
    report.not_judged_because = "the store is distrustful";
    terms.rule = Rule::kDistrust;
    TRY(JudgeAll(images, listed, list, observing, terms, report, names_left));
  } else {
    if (is_whole && is_placed) {
      TRY(MovePreloaded(images, listed, list.token->commit, observing));
    }
    terms.first_start =
        txn.state().awaits_first_list && is_whole && (!listed.empty() || observing.allow_empty);
    terms.may_enter = is_placed || (terms.first_start && !list.token);
    TRY(JudgeAll(images, listed, list, observing, terms, report, names_left));
    if (terms.first_start) {
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
    TRY(Retire(images, listed, list.token->commit, observing, keeps_preloaded, report));
  }
  txn.state().last_list = list.token->commit;
  return report;
}

Result<bool> LearnEntry(Images& images, const ListedImage& image, const std::string& image_ref) {
  ClassifyReport ignored;
  auto listed = TRY(Prepare(images, {image}, ignored));
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
    const auto listed = TRY(Prepare(
        images, {ListedImage{.id = one.image_ref, .repo_tags = one.observed_images}}, ignored));
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
    auto listed = TRY(Prepare(images, list->images, report));
    auto learnt = TRY(Learn(images, listed, false));
    TakeLearnt(std::move(learnt), report);
    const Terms terms{.rule = adopt ? Rule::kAdopt : Rule::kClose, .reason = reason};
    std::vector<std::string> none_left;
    TRY(JudgeAll(images, listed, *list, observing, terms, report, none_left));
  }
  TRY(OpenPullOfAnything(images.txn(), observing.now));
  images.txn().state().awaits_first_list = false;
  return report;
}

}  // namespace waybill::internal
