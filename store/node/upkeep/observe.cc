#include "store/node/upkeep/observe.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "store/base/empty_list.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/engine/trust/trust.h"
#include "store/node/evidence/judge.h"
#include "store/node/evidence/prune.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/images/list_token.h"
#include "store/node/images/spellings.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/upkeep/gap.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxJudged = 1000;
constexpr std::size_t kMaxSharedDigests = 100;

constexpr std::string_view kListed = "listed";
constexpr std::string_view kImported = "imported";
constexpr std::string_view kPinned = "pinned";
constexpr std::string_view kAdopted = "adopted";
constexpr std::string_view kObservedPreloaded = "observed-preloaded";
constexpr std::string_view kPreloadedList = "preloaded-list";
constexpr std::string_view kNamed = "the list of preloaded images names it";
constexpr std::string_view kIsPinned = "the runtime's configuration pins it";
constexpr std::string_view kIsImported = "the runtime shows that no pull brought it";

// The images of a list, each once. Handlers are mapped to their stored names.
Result<std::vector<ImageInList>> Prepare(const StoreTxn& txn, const std::vector<ListedImage>& list,
                                         ClassifyReport& report) {
  auto handlers = TRY(ReadRuntimeHandlers(txn));
  std::vector<ImageInList> images;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (const ListedImage& one : list) {
    ++report.listed;
    // No record can have such a ref, and none such a handler.
    if (one.id.empty() || one.id.size() > kMaxImageRefBytes) continue;
    std::string handler;
    // Without a list of handlers there is the default one only, whatever it is called.
    const bool has_handler = !handlers.empty() && !one.runtime_handler.empty();
    if (has_handler && one.runtime_handler.size() <= kMaxRuntimeHandlerBytes) {
      handler = StoredName(handlers, one.runtime_handler);
    }
    const auto [at, is_new] = seen.try_emplace({SpellingOf(one.id), handler}, images.size());
    if (is_new) {
      images.emplace_back();
      images.back().id = one.id;
      images.back().runtime_handler = handler;
      images.back().has_handler = has_handler;
    } else {
      ++report.repeated;
    }
    ImageInList& image = images[at->second];
    image.has_handler = image.has_handler && has_handler;
    image.pinned = image.pinned || one.pinned;
    // Of two entries both must say so.
    image.imported = (is_new || image.imported) && one.imported;
    for (const auto* strings : {&one.repo_tags, &one.repo_digests}) {
      for (const std::string& name : *strings) {
        NamedImage parsed = name.size() <= kMaxImageBytes ? ReadName(name) : NamedImage();
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
  TRY(FindFormer(txn, images));
  return images;
}

std::string NameOf(const ImageInList& image) {
  return image.names.empty() ? image.id : image.names.front();
}

Result<void> Enter(StoreTxn& txn, const ImageInList& image, std::string_view source,
                   std::string_view reason) {
  PreloadedImage entry;
  entry.image_ref = image.id;
  entry.runtime_handler = image.runtime_handler;
  entry.names = image.names;
  std::sort(entry.names.begin(), entry.names.end());
  entry.names.erase(std::unique(entry.names.begin(), entry.names.end()), entry.names.end());
  if (entry.names.size() > kMaxNamesPerImage) entry.names.resize(kMaxNamesPerImage);
  entry.source = source;
  entry.reason = reason;
  entry.since = txn.now();
  return PutLedgerEntry(txn, std::move(entry));
}

// What judging one image does.
class Judge {
 public:
  Judge(StoreTxn& txn, ClassifyReport& report) : txn_(txn), report_(report) {}

  Result<void> Preloaded(const ImageInList& image, std::string_view source, std::string_view reason,
                         std::string because) {
    if (auto r = Enter(txn_, image, source, reason); !r) return r;
    ++report_.preloaded;
    Note(image, true, std::move(because));
    return {};
  }

  // Gives back what is remembered of an image that was preloaded: true. Not if a pull of its name
  // may have brought it since, or one that nobody recorded, nor under other names.
  Result<bool> GiveBack(const ImageInList& image, const Givers& givers) {
    auto entry = TRY(FindRememberedEntry(txn_, image.id, image.runtime_handler));
    if (!entry || !givers.HasOwnName(image, entry->names)) return false;
    auto may_be_known = TRY(givers.MayBeKnown(txn_, image));
    if (!may_be_known.empty()) return false;
    entry->absent_since.reset();
    TRY(PutLedgerEntry(txn_, std::move(*entry)));
    ++report_.known;
    return true;
  }

  // Enters it if the runtime shows that nobody pulled it: true.
  Result<bool> Imported(const ImageInList& image, const Givers& givers) {
    if (!image.imported) return false;
    auto may_be_known = TRY(givers.MayBeKnown(txn_, image));
    if (!may_be_known.empty()) return false;
    auto entered = Preloaded(image, kImported, "", std::string(kIsImported));
    return entered ? Result<bool>(true) : entered.error();
  }

  // Whether the runtime pins it, and no open pull names it.
  Result<bool> IsPinned(const ImageInList& image, const Givers& givers) const {
    if (!image.pinned) return false;
    auto judgement = TRY(givers.Judge(txn_, image));
    return judgement.verdict == Givers::Verdict::kPreloaded;
  }
  Result<void> EnterPinned(const ImageInList& image) {
    return Preloaded(image, kPinned, "", std::string(kIsPinned));
  }

  Result<void> Close(const ImageInList& image, std::string because) {
    TRY(CloseCopy(txn_, image.id, image.runtime_handler, because, ClosedBy::kList));
    if (auto r = EraseRemembered(txn_, image.id, image.runtime_handler); !r) return r;
    ++report_.closed;
    Note(image, false, std::move(because));
    return {};
  }

 private:
  void Note(const ImageInList& image, bool preloaded, std::string because) {
    // Of each kind, so that none that closes goes unnamed for those that open.
    if ((preloaded ? report_.preloaded : report_.closed) > kMaxJudged) return;
    report_.judged.push_back(
        {image.id, image.runtime_handler, NameOf(image), preloaded, std::move(because)});
  }

  StoreTxn& txn_;
  ClassifyReport& report_;
};

// The images of which nothing is known.
Result<std::vector<const ImageInList*>> Unknown(const StoreTxn& txn,
                                                const std::vector<ImageInList>& images,
                                                ClassifyReport& report) {
  std::vector<const ImageInList*> unknown;
  for (const ImageInList& image : images) {
    auto known = TRY(IsKnown(txn, image));
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
bool IsOutdone(const ImagePulledRecord& record) {
  if (record.closed_by_operator) return false;
  if (record.closed_by_list) return record.credential_mapping.empty();
  return record.absent_since && record.closed_because.empty();
}

// Of each image, by its ID, the handlers whose copies the runtime says nobody pulled; nullopt: all.
using ImportedCopies = std::map<std::string, std::set<std::optional<std::string>>>;

// An entry without a handler is about every copy. So it counts if all of the image's entries say
// so, and if it does not say so, none does.
ImportedCopies FindImported(const std::vector<ImageInList>& images) {
  ImportedCopies imported;
  std::set<std::string> not_all;
  std::set<std::string> none;
  for (const ImageInList& image : images) {
    if (image.imported) {
      imported[image.image].insert(image.has_handler ? std::optional(image.runtime_handler)
                                                     : std::nullopt);
    } else {
      (image.has_handler ? not_all : none).insert(image.image);
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
Result<void> ForgetOutdone(StoreTxn& txn, const std::vector<ImageInList>& images) {
  for (const auto& [image, copies] : FindImported(images)) {
    auto refs = TRY(RefsOfImage(txn, image));
    std::vector<std::pair<std::string, std::string>> outdone;
    bool all = true;
    for (const std::string& ref : refs) {
      TRY(txn.ForEachWithPrefix(
          Table::kPulled, FirstPulledKeyOfRef(ref, txn.seed()), kRefKeyBytes,
          [&](const Key16&, Payload payload) -> Result<bool> {
            const auto record = payload.empty() ? std::nullopt : DecodePulledRecordValue(payload);
            if (record && record->image_ref != ref) return true;
            all = record && IsOutdone(*record) &&
                  (copies.contains(std::nullopt) || copies.contains(record->runtime_handler));
            if (all) outdone.emplace_back(ref, record->runtime_handler);
            return all;
          }));
      if (!all) break;
    }
    if (!all) continue;
    for (const auto& [ref, handler] : outdone) TRY(EraseRecord(txn, ref, handler));
  }
  return {};
}

// Which images an operator's or installer's list names, if there is one, by ID, digest or name. Not
// those that may have a record or be in quarantine.
Result<std::set<const ImageInList*>> NamedBy(const StoreTxn& txn, const Givers& givers,
                                             const Observing& observing,
                                             const std::vector<const ImageInList*>& images) {
  std::set<const ImageInList*> named;
  if (observing.preloaded == nullptr) return named;
  std::set<std::string> refs;
  std::set<std::string> names;
  for (const ListedImage& one : *observing.preloaded) {
    if (!one.id.empty()) refs.insert(SpellingOf(one.id));
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
  for (const ImageInList* image : images) {
    const bool by_ref =
        refs.contains(SpellingOf(image->id)) || refs.contains(image->image) ||
        std::any_of(image->digests.begin(), image->digests.end(), [&](const std::string& digest) {
          const bool shared =
              std::find(image->shared.begin(), image->shared.end(), digest) != image->shared.end();
          return !shared && refs.contains(SpellingOf(digest));
        });
    const bool by_name =
        std::any_of(image->parsed.begin(), image->parsed.end(), [&](const NamedImage& name) {
          return names.contains(name.repository + ":" + name.tag + "@" + name.digest);
        });
    if (!by_ref && !by_name) continue;
    auto may_be_known = TRY(givers.MayBeKnown(txn, *image));
    if (may_be_known.empty()) named.insert(image);
  }
  return named;
}

// A later list judges it.
void Leave(const ImageInList& image, ClassifyReport& report, std::vector<std::string>& names_left) {
  ++report.left;
  names_left.insert(names_left.end(), image.names.begin(), image.names.end());
}

// Whether the list can't have what a removed record, ledger entry or open pull brought.
bool IsPlaced(const StoreTxn& txn, const ImageList& list) {
  return list.token && list.token->commit >= txn.state().evidence_removed;
}

Result<void> JudgeAll(StoreTxn& txn, const std::vector<ImageInList>& images, const ImageList& list,
                      const Observing& observing, bool first_start, ClassifyReport& report,
                      std::vector<std::string>& names_left) {
  auto unknown = TRY(Unknown(txn, images, report));
  if (unknown.empty()) return {};
  std::optional<std::uint64_t> until;
  if (list.token) until = list.token->commit;
  auto givers = TRY(Givers::Collect(txn, {observing.options.short_names, until, first_start}));
  std::set<const ImageInList*> preloaded;
  if (first_start) preloaded = TRY(NamedBy(txn, givers, observing, unknown));
  const bool is_placed = IsPlaced(txn, list);
  Judge judge(txn, report);
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
    auto judgement = TRY(givers.Judge(txn, *image));
    if (judgement.verdict == Givers::Verdict::kPreloaded && may_enter) {
      const bool presumed = first_start && !image->pinned;
      const std::string_view source = !list.source.empty() ? std::string_view(list.source)
                                      : presumed           ? kPresumedSource
                                      : first_start        ? kPinned
                                                           : kListed;
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
Result<void> LeaveAllButImported(StoreTxn& txn, const std::vector<ImageInList>& images,
                                 const ImageList& list, const Observing& observing,
                                 ClassifyReport& report) {
  auto unknown = TRY(Unknown(txn, images, report));
  report.left = unknown.size();
  if (txn.state().kubelet_rules || !IsPlaced(txn, list)) return {};
  const bool any = std::any_of(unknown.begin(), unknown.end(),
                               [](const ImageInList* image) { return image->imported; });
  if (!any) return {};
  auto givers = TRY(Givers::Collect(txn, {observing.options.short_names, std::nullopt, false}));
  Judge judge(txn, report);
  for (const ImageInList* image : unknown) {
    if (TRY(judge.Imported(*image, givers))) --report.left;
  }
  return {};
}

// A runtime may list an image by another ID than before. The ledger entry goes with it, though a
// short name is being pulled; but not while a pull of its own name is open, or of a string that its
// name ends with, since the digest may be an index's, and the image that of another platform.
Result<void> MoveEntries(StoreTxn& txn, const std::vector<ImageInList>& images, std::uint64_t token,
                         const Observing& observing) {
  std::optional<Givers> givers;
  for (const ImageInList& image : images) {
    if (image.formerly.empty()) continue;
    auto entry = TRY(FindRememberedEntry(txn, image.formerly.front(), image.runtime_handler));
    if (!entry || entry->stamp > token) continue;
    if (TRY(IsKnown(txn, image))) continue;
    if (!givers) {
      givers = TRY(Givers::Collect(txn, {observing.options.short_names, std::nullopt, false}));
    }
    auto may_be_known = TRY(givers->MayBeKnown(txn, image));
    if (!may_be_known.empty() || givers->IsNamedByPulls(image)) continue;
    TRY(EraseLedgerEntry(txn, entry->image_ref, image.runtime_handler));
    entry->image_ref = image.id;
    entry->absent_since.reset();
    if (auto r = PutLedgerEntry(txn, std::move(*entry)); !r) return r;
  }
  return {};
}

// After a gap. What the runtime shows to be imported came without a pull all the same; what is back
// may be what a pull brought that nobody recorded. What the runtime pins counts, too, and at a
// first start an installer's list.
Result<void> CloseAll(StoreTxn& txn, const std::vector<ImageInList>& images, const ImageList& list,
                      const Observing& observing, ClassifyReport& report,
                      std::vector<std::string>& names_left) {
  auto unknown = TRY(Unknown(txn, images, report));
  auto givers = TRY(Givers::Collect(txn, {observing.options.short_names, std::nullopt, false}));
  const bool first_start = txn.state().awaits_first_list;
  std::set<const ImageInList*> preloaded;
  if (first_start) preloaded = TRY(NamedBy(txn, givers, observing, unknown));
  const bool is_placed = IsPlaced(txn, list);
  Judge judge(txn, report);
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

Result<void> Remove(StoreTxn& txn, const std::vector<ImageInList>& images, std::uint64_t token,
                    const Observing& observing, bool keeps_ledger, ClassifyReport& report) {
  ImagesOnNode on_node(Mode::kStrict, txn);
  for (const ImageInList& image : images) {
    const auto handler = image.has_handler ? std::optional(image.runtime_handler) : std::nullopt;
    if (auto r = on_node.Add(image.id, handler); !r) return r;
    for (const std::string& digest : image.digests) on_node.AddDigest(digest, handler);
  }
  // What is to be judged still needs what is known.
  Spared spared;
  if (report.left > 0) {
    for (const ImageInList& image : images) {
      spared.images.insert(image.formerly.begin(), image.formerly.end());
    }
  }
  PruneLimit limit;
  limit.token = token;
  limit.spared = report.left > 0 ? &spared : nullptr;
  limit.remember = observing.options.remember;
  limit.only_recorded = keeps_ledger;
  const auto prune_ledger = [&]() -> Result<void> {
    auto removed = TRY(PruneLedger(txn, on_node, limit, std::numeric_limits<std::size_t>::max()));
    report.preloaded_removed = removed.entries;
    return {};
  };
  // While the records are there that decide which entries go.
  if (keeps_ledger) TRY(prune_ledger());
  auto pruned = TRY(PruneRecords(txn, Mode::kStrict, on_node, limit, {}));
  if (pruned.dropped) TRY(OpenPullOfAnything(txn, txn.clocks().boot, PullState::kDropped));
  report.records_removed = pruned.report.removed;
  if (!keeps_ledger) TRY(prune_ledger());
  return report.left > 0 ? Result<void>() : PruneSpellings(txn, on_node, token);
}

// A digest in quarantine that two images have may be of either: neither stays in the ledger by what
// was judged before.
Result<void> DropQuarantined(StoreTxn& txn, const std::vector<ImageInList>& images) {
  if (txn.state().digest(Table::kQuarantine).count == 0) return {};
  for (const ImageInList& image : images) {
    for (const std::string& digest : image.shared) {
      for (const std::string& ref : PlainSpellings(digest)) {
        if (!TRY(IsQuarantined(txn, QuarantineKind::kImageRef, ref))) continue;
        TRY(EraseLedgerEntry(txn, image.id, image.runtime_handler));
      }
    }
  }
  return {};
}

// Whether anything is known of any image, on the node or gone.
bool HoldsImages(const StoreTxn& txn) {
  return txn.state().digest(Table::kPulled).count + txn.state().digest(Table::kLedger).count > 0;
}

// `remembers`: what an empty list lacks is remembered, so it loses nothing.
Result<void> CheckList(const StoreTxn& txn, const ImageList& list, const Observing& observing,
                       bool remembers) {
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
  const State& state = txn.state();
  const std::uint64_t records = state.digest(Table::kPulled).count;
  const std::uint64_t entries = state.digest(Table::kLedger).count;
  const std::uint64_t pulls = state.digest(Table::kIntents).count;
  if (!list.images.empty() || !list.complete || observing.allow_empty || remembers ||
      records + entries + pulls == 0) {
    return {};
  }
  return EmptyList("the list of images on the node is",
                   "holds " + HowMany(records, "record") + ", " +
                       HowMany(entries, "preloaded image") + " and " + HowMany(pulls, "open pull"),
                   "nothing was changed");
}

}  // namespace

Result<ClassifyReport> ObserveList(StoreTxn& txn, const ImageList& list,
                                   const Observing& observing) {
  const bool remembers = observing.options.remember.count() > 0;
  TRY(CheckList(txn, list, observing, remembers));
  ClassifyReport report;
  auto images = TRY(Prepare(txn, list.images, report));
  if (!list.source.empty()) {
    // Only the runtime tells which digests are whose: a record under any of them may be the
    // image's.
    for (ImageInList& image : images) {
      image.shared = image.digests;
      image.imported = false;
    }
  } else {
    const bool is_whole = list.complete && (list.token || txn.state().awaits_first_list);
    auto learnt = TRY(LearnSpellings(txn, images, {.is_whole = is_whole}));
    report.united = learnt.united;
    report.shared_digests = std::move(learnt.shared_digests);
    if (report.shared_digests.size() > kMaxSharedDigests) {
      report.shared_digests.resize(kMaxSharedDigests);
    }
    TRY(DropQuarantined(txn, images));
  }

  const bool had_any = HoldsImages(txn);
  // An empty list, or one without any image that was known, may be of another runtime, or of a disk
  // that is not mounted yet: what a pull brought may still come.
  const auto tells = [&] {
    return observing.allow_empty || report.known > 0 || (!had_any && !list.images.empty());
  };
  std::vector<std::string> names_left;  // of images that a later list will judge
  auto gap = TRY(GapInForce(txn));
  const bool is_whole = list.complete && list.source.empty();
  if (IsPlaced(txn, list) && !txn.state().kubelet_rules) TRY(ForgetOutdone(txn, images));
  if (is_whole && !gap.empty()) {
    TRY(CloseAll(txn, images, list, observing, report, names_left));
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
    TRY(LeaveAllButImported(txn, images, list, observing, report));
  } else {
    if (is_whole && IsPlaced(txn, list)) {
      TRY(MoveEntries(txn, images, list.token->commit, observing));
    }
    const bool first_start =
        txn.state().awaits_first_list && is_whole && (!images.empty() || observing.allow_empty);
    TRY(JudgeAll(txn, images, list, observing, first_start, report, names_left));
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
    // A remembered entry of the ledger does not come back in a gap. One whose image was pulled,
    // too, must not: what is back may be what that pull brought.
    const bool keeps_ledger = !gap.empty() && !tells();
    TRY(Remove(txn, images, list.token->commit, observing, keeps_ledger, report));
  }
  txn.state().last_list = list.token->commit;
  return report;
}

Result<void> LearnEntry(StoreTxn& txn, const ListedImage& image) {
  ClassifyReport ignored;
  auto images = TRY(Prepare(txn, {image}, ignored));
  auto learnt = LearnSpellings(txn, images, {.one_pull = true});
  return learnt ? Result<void>() : learnt.error();
}

Result<std::uint64_t> JudgeObservedPreloaded(StoreTxn& txn, const Observing& observing) {
  std::uint64_t entered = 0;
  if (txn.state().distrustful) return entered;
  auto observed =
      TRY(ReadAll(txn, Table::kPreloaded, DecodePreloadedValue,
                  Error{ErrorCode::kDamaged, "an observed-preloaded record can't be read", {}}));
  auto givers = TRY(Givers::Collect(txn, {observing.options.short_names, std::nullopt, false}));
  for (const ImagePreloadedRecord& one : observed) {
    ClassifyReport ignored;
    auto images = TRY(Prepare(
        txn, {ListedImage{.id = one.image_ref, .repo_tags = one.observed_images}}, ignored));
    for (const ImageInList& image : images) {
      if (TRY(IsKnown(txn, image))) continue;
      auto judgement = TRY(givers.Judge(txn, image));
      if (judgement.verdict != Givers::Verdict::kPreloaded) continue;
      TRY(Enter(txn, image, kObservedPreloaded, ""));
      ++entered;
    }
  }
  return entered;
}

Result<ClassifyReport> CloseOrAdopt(StoreTxn& txn, const std::optional<ImageList>& list, bool adopt,
                                    std::string_view reason, const Observing& observing) {
  ClassifyReport report;
  if (list) {
    TRY(CheckList(txn, *list, observing, false));
    auto images = TRY(Prepare(txn, list->images, report));
    auto learnt = TRY(LearnSpellings(txn, images, {}));
    report.united = learnt.united;
    report.shared_digests = std::move(learnt.shared_digests);
    auto unknown = TRY(Unknown(txn, images, report));
    auto givers = TRY(Givers::Collect(txn, {observing.options.short_names, std::nullopt, false}));
    Judge judge(txn, report);
    for (const ImageInList* image : unknown) {
      if (TRY(judge.IsPinned(*image, givers))) {
        TRY(judge.EnterPinned(*image));
        continue;
      }
      auto may_be_known = TRY(givers.MayBeKnown(txn, *image));
      if (!may_be_known.empty()) {
        TRY(judge.Close(*image, std::move(may_be_known)));
      } else if (adopt) {
        TRY(judge.Preloaded(*image, kAdopted, reason, "an operator adopted it"));
      } else {
        TRY(judge.Close(*image, "it was there, unknown, when distrust was cleared"));
      }
    }
  }
  TRY(OpenPullOfAnything(txn, observing.now));
  txn.state().awaits_first_list = false;
  return report;
}

}  // namespace waybill::internal
