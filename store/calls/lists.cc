// Lists of images, the ledger, open pulls.

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/disk/trust.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/judge.h"
#include "store/images/observe.h"
#include "store/images/other_rows.h"
#include "store/images/preloaded.h"
#include "store/images/pull_row.h"
#include "store/runtimes/runtime_handlers.h"

namespace waybill {

using internal::ImageRow, internal::Images, internal::StoreTxn, internal::Table;

namespace {

Result<void> CheckReason(std::string_view what, std::string_view reason) {
  if (!reason.empty() && reason.size() <= kMaxReasonBytes) return {};
  return Error{ErrorCode::kInvalidArgument, "the " + std::string(what) + " must have 1 to " +
                                                std::to_string(kMaxReasonBytes) +
                                                " bytes; nothing was changed"};
}

// What an operator says of an image's ledger entry.
Result<void> CheckWord(Mode rules, std::string_view image_ref, std::string_view reason) {
  if (auto r = CheckImageRef(image_ref); !r) return r;
  if (auto r = CheckReason("reason", reason); !r) return r;
  if (rules == Mode::kStrict) return {};
  return Error{ErrorCode::kInvalidArgument,
               "the rules `kubelet` keep no ledger; nothing was changed",
               "open the store in mode `strict`"};
}

// As stored. kInvalidArgument: the registry does not have it.
Result<std::string> StoredHandler(const StoreTxn& txn, std::string_view runtime_handler) {
  auto handler = TRY(internal::FindHandler(txn, runtime_handler));
  if (handler.known) return handler.stored;
  return internal::UnknownHandler(txn, runtime_handler);
}

// The operator's word on the copy, under its handler as stored.
template <typename Word>
auto SayOf(NodeStore::Impl& impl, const ImageCopy& copy, const ChangeOptions& options,
           const Word& word) {
  using Said = std::invoke_result_t<Word, Images&, const std::string&>;
  return WriteImages(
      impl,
      [&](Images& images) -> Said {
        const auto handler = TRY(StoredHandler(images.txn(), copy.runtime_handler));
        return word(images, handler);
      },
      options);
}

// kNotFound: there is none. kConflict: it runs in this process. Neither wrote anything.
Result<void> DropOpenPull(NodeStore::Impl& impl, StoreTxn& txn, PullId pull,
                          std::string_view reason) {
  auto pulls = TRY(internal::AllOpenPulls(txn));
  const auto at = std::ranges::find(pulls, pull, &UnresolvedPull::id);
  if (at == pulls.end() || pull.value == 0 || at->nothing_at != 0) {
    return Error{ErrorCode::kNotFound,
                 "there is no open pull " + std::to_string(pull.value) + " in " +
                     impl.directory.string() + "; nothing was changed",
                 "list them: it may have ended since"};
  }
  if (at->state == PullState::kRunning && impl.in_flight.Get(at->image, at->runtime_handler) > 0) {
    return Error{ErrorCode::kConflict,
                 "the pull of " + internal::QuoteForMessage(at->image) +
                     " runs in this process; nothing was changed",
                 "record how it ended"};
  }
  TRY(internal::EraseOpenPull(txn, *at));
  internal::NoteEvidenceRemoved(txn);
  return internal::NoteInJournal(txn,
                                 "dropped " + internal::Describe(*at) + ": " + std::string(reason));
}

// All or none. Those that run in this process stay; kConflict: all do.
Result<std::uint64_t> DropOpenPulls(NodeStore::Impl& impl, StoreTxn& txn,
                                    const std::vector<UnresolvedPull>& pulls,
                                    std::string_view reason) {
  std::uint64_t count = 0;
  std::optional<Error> runs;
  for (const UnresolvedPull& pull : pulls) {
    auto dropped = DropOpenPull(impl, txn, pull.id, reason);
    if (dropped) {
      ++count;
    } else if (dropped.error().code == ErrorCode::kConflict) {
      runs = std::move(dropped.error());
    } else if (dropped.error().code != ErrorCode::kNotFound) {
      return std::move(dropped.error());
    }
  }
  if (count == 0 && runs) return *std::move(runs);
  return count;
}

// The open pulls of an image string under a handler.
Result<std::vector<UnresolvedPull>> PullsOf(const NodeStore& store, const std::string& image,
                                            std::string handler) {
  auto pulls = TRY(store.ListOpenPulls());
  // The default's pulls are stored without its name.
  for (const RuntimeHandler& known : TRY(store.ListRuntimeHandlers())) {
    if (known.is_default && known.name == handler) handler.clear();
  }
  std::erase_if(pulls, [&](const UnresolvedPull& pull) {
    return pull.anything || pull.image != image || pull.runtime_handler != handler;
  });
  return pulls;
}

}  // namespace

Result<bool> NodeStore::Impl::MustKeepTime(const StoreTxn& txn) {
  // So much younger at most does a clock that goes back make a proof; and not by more than a limit.
  constexpr std::chrono::seconds kMost{3600};
  const auto since = internal::Between(txn.state().clocks.ages, txn.clocks().ages);
  const std::chrono::seconds most = txn.state().max_age;
  if (most.count() != 0 && since >= std::min(most, kMost)) return true;
  if (since < kMost) return false;
  const auto snapshot = Read();
  const auto counts = snapshot ? CountRecords(snapshot) : NoSnapshot(snapshot, "the records");
  return !counts || counts->ending > 0;
}

Result<std::vector<UnresolvedPull>> NodeStore::ListOpenPulls() const {
  auto pulls = ListTable(*impl_, Table::kIntents, "the open pulls", internal::DecodeUnresolvedPull);
  if (pulls) {
    std::erase_if(*pulls, [](const UnresolvedPull& pull) { return pull.nothing_at != 0; });
    std::sort(pulls->begin(), pulls->end(),
              [](const UnresolvedPull& a, const UnresolvedPull& b) { return a.id < b.id; });
  }
  return pulls;
}

Result<std::vector<PreloadedImage>> NodeStore::ListLedger() const {
  return Guarded([&]() -> Result<std::vector<PreloadedImage>> {
    const auto snapshot = impl_->Read();
    const auto rows = TRY(
        ListIn(*impl_, snapshot, Table::kImages, "the preloaded images", internal::DecodeImage));
    const internal::Clocks now = impl_->ClocksIn(snapshot);
    std::vector<PreloadedImage> entries;
    for (const ImageRow& row : rows) {
      if (row.preloaded) entries.push_back(internal::PreloadedOf(row, now, impl_->clock()));
    }
    std::ranges::sort(entries, {}, [](const PreloadedImage& one) {
      return std::tie(one.image_ref, one.runtime_handler);
    });
    return entries;
  });
}

namespace door {

Result<ListPulls::Answer> Do(NodeStore& store, const ListPulls& call, const Progress&) {
  if (!call.image) return ListPulls::Answer{TRY(store.ListOpenPulls())};
  return ListPulls::Answer{TRY(PullsOf(store, *call.image, call.runtime_handler))};
}

Result<DropPulls::Answer> Do(NodeStore& store, const DropPulls& call, const Progress&) {
  if ((call.pull != 0) == call.image.has_value()) {
    return Invalid("name either one pull by its number, or an image string",
                   "ListPulls has the pulls that are not resolved");
  }
  NodeStore::Impl& impl = store.impl();
  if (call.pull != 0) {
    TRY(CheckReason("reason", call.reason));
    TRY(impl.Write([&](StoreTxn& txn) { return DropOpenPull(impl, txn, {call.pull}, call.reason); },
                   OptionsOf(call)));
    return DropPulls::Answer{1};
  }
  const auto before = TRY(PullsOf(store, *call.image, call.runtime_handler));
  if (before.empty()) {
    return Error{ErrorCode::kNotFound, "no pull of that image is unresolved; nothing was changed",
                 "ListPulls has the pulls that are not resolved"};
  }
  DropPulls::Answer answer;
  if (call.dry_run || impl.rules == Mode::kStrict) {
    const std::string reason = call.dry_run && call.reason.empty() ? "dry run" : call.reason;
    TRY(CheckReason("reason", reason));
    answer.dropped = TRY(WriteAndGet(
        impl, [&](StoreTxn& txn) { return DropOpenPulls(impl, txn, before, reason); },
        OptionsOf(call)));
    return answer;
  }
  TRY(WriteImages(impl, [&](Images& images) -> Result<void> {
    const auto handler = TRY(internal::FindHandler(images.txn(), call.runtime_handler));
    return internal::ForgetIntent(images.txn(), impl.in_flight, *call.image, handler.stored);
  }));
  const auto after = TRY(PullsOf(store, *call.image, call.runtime_handler));
  answer.dropped =
      static_cast<std::uint64_t>(std::ranges::count_if(before, [&](const UnresolvedPull& pull) {
        return std::ranges::find(after, pull.id, &UnresolvedPull::id) == after.end();
      }));
  return answer;
}

Result<BeginList::Answer> Do(NodeStore& store, const BeginList&, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  if (!impl.committer) return impl.NotOwner();
  const std::uint64_t token = impl.committer->state().commit_sequence;
  impl.NoteToken(token);
  return BeginList::Answer{{token, impl.boot_clock(), impl.committer->store_id()}};
}

// Learns the aliases of each listed image, unites records that turn out to be of one image, and
// judges each image that is neither recorded nor preloaded, once. A name that no open pull could
// have given it proves that it came without the kubelet: it counts as preloaded. Otherwise it gets
// a record without credentials. A pull of `repo:tag` could have given that tag and any
// `repo@digest`, one with a digest any `repo@digest`, and one without a registry host any name
// (EvidenceOptions::short_names). If only a pull that began after the token could have given a
// name, the image is left to a later list. Names that do not parse do not count. An image that may
// be the same as one known under another ID or digest is closed, or takes over that it is
// preloaded. A distrustful store judges nothing. After a gap a complete list closes each image that
// is neither recorded nor preloaded, and ends the gap. If the runtime shows that nobody pulled an
// image (ListedImage::imported), it counts as preloaded in each of these cases, even if a list
// closed it before, or if it was pulled and a complete list lacked it since; not if an operator
// closed it, if the pulled image was never gone, or if a record is of another handler's copy. What
// the runtime pins counts as preloaded after a gap, too, unless an open pull names it; a list
// without a token leaves it to a later one.
//
// A complete list also drops open pulls that can bring nothing any more (EvidenceOptions,
// ImageList::quiet_until). What is known of images that are not on it is remembered, unless it is
// newer than its token (EvidenceOptions::remember; kMaxRemembered, the oldest go first). If the
// image comes back without a recorded pull, its record counts again, less what was forgotten or
// grew too old. That it is preloaded counts again if the image has one of its names that no open
// pull could have given it, and the image does not come back in a gap. A pull that succeeds begins
// anew. If a list leaves an image unjudged, it does not remove what may be known of that image
// under another ref. A list that has none of the known images may come from another runtime, or the
// disk may not be mounted: it settles no pull and closes no gap, and in a gap it leaves what is
// preloaded and not recorded as it is, unless allow_empty confirms it. A list that changes nothing
// is not written. kInvalidArgument: a token from the future, of another store, or older than that
// of a list observed before; or, if remembering is off, an empty complete list although something
// is known. kLimitExceeded: more than kMaxListedImages.
Result<ClassifyImages::Answer> Do(NodeStore& store, const ClassifyImages& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  const ImageList& list = call.list;
  if (!impl.committer) return impl.NotOwner();
  if (list.source.size() > kMaxReasonBytes) {
    return CheckReason("source of the list", list.source).error();
  }
  if (list.complete && !list.source.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the list of " + internal::QuoteForMessage(list.source) +
                     " is said to be complete, but only the runtime knows every image; nothing was "
                     "changed"};
  }
  const bool is_traced = impl.trace && list.complete && !call.dry_run;
  if (impl.rules == Mode::kKubelet) {
    if (is_traced) impl.trace->AddList(list.images);
    ClassifyReport report;
    report.listed = list.images.size();
    report.not_judged_because = "the rules `kubelet` keep no ledger";
    return report;
  }
  internal::Observing observing{.options = impl.evidence,
                                .now = impl.boot_clock(),
                                .allow_empty = call.allow_empty,
                                .preloaded = impl.preloaded ? &*impl.preloaded : nullptr};
  const auto observe = [&](Images& images) -> Result<ClassifyReport> {
    observing.last_list = impl.last_list;
    auto observed = TRY(internal::ObserveList(images, list, observing));
    if (TRY(impl.MustKeepTime(images.txn()))) images.txn().Touch();
    if (!call.dry_run && list.token) impl.NoteList(*list.token);
    return observed;
  };
  auto observed = WriteImages(impl, observe, OptionsOf(call));
  if (observed && is_traced) impl.trace->AddList(list.images);
  return observed;
}

// As Gap::kYes does at opening, and leaves an open pull of anything. Does nothing while a gap is
// open already.
Result<NoteUnrecordedPeriod::Answer> Do(NodeStore& store, const NoteUnrecordedPeriod& call,
                                        const Progress&) {
  TRY(CheckReason("reason", call.reason));
  return Done(store.impl().Write(
      [&](StoreTxn& txn) { return internal::NoteGap(txn, internal::GapBecause(call.reason)); }));
}

// Records of the image stay, but an operator's closing of this copy is taken back; its quarantine
// stays, too, and closes it all the same. kInvalidArgument: no ID, or a digest that two images
// have. With only_unconfirmed: one that is only remembered can be closed, not confirmed.
Result<AllowImage::Answer> Do(NodeStore& store, const AllowImage& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  const ListedImage& image = call.image;
  TRY(CheckWord(impl.rules, image.id, call.reason));
  const ImageCopy copy{.image_ref = image.id, .runtime_handler = image.runtime_handler};
  if (call.only_unconfirmed) {
    const auto was =
        TRY(SayOf(impl, copy, OptionsOf(call), [&](Images& images, const std::string& handler) {
          return internal::Confirm(images, image.id, handler, call.reason);
        }));
    return AllowImage::Answer{was};
  }
  TRY(CheckReason("source", call.source));
  TRY(SayOf(impl, copy, OptionsOf(call), [&](Images& images, const std::string& handler) {
    return internal::AllowImage(images, image, handler, call.source, call.reason, call.pulled_too);
  }));
  return AllowImage::Answer{true};
}

// Also of one that is only remembered. Without a record of this copy it gets one without
// credentials, or the next list would enter it again. What was proven stays. From then on no list
// enters the image, until AllowImage. kLimitExceeded: operators closed kMaxClosings.
Result<DenyImage::Answer> Do(NodeStore& store, const DenyImage& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  TRY(CheckWord(impl.rules, call.image_ref, call.reason));
  const auto which = call.only_unconfirmed ? internal::Which::kPresumed : internal::Which::kAny;
  const auto was =
      TRY(SayOf(impl, CopyOf(call), OptionsOf(call),
                [&](Images& images, const std::string& handler) -> Result<bool> {
                  const auto taken_out =
                      TRY(internal::TakeOut(images, call.image_ref, handler, call.reason, which));
                  if (!taken_out || call.only_unconfirmed) return taken_out;
                  TRY(internal::NoteInJournal(images.txn(),
                                              "took " + internal::QuoteForMessage(call.image_ref) +
                                                  " out of the ledger: " + call.reason));
                  return true;
                }));
  return DenyImage::Answer{was};
}

// Mode::kStrict: images on the node that are neither recorded nor preloaded are closed, or adopted,
// and one open pull of anything stands for those that may still arrive. Mode::kKubelet: images
// without a record are presumed preloaded again. The reason goes into the journal also if the store
// was trustful.
Result<AcceptLoss::Answer> Do(NodeStore& store, const AcceptLoss& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  if (call.reason.empty() || call.reason.size() > kMaxReasonBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "a reason of 1 to " + std::to_string(kMaxReasonBytes) +
                     " bytes is needed to clear distrust; nothing was changed",
                 "say why the store is whole again"};
  }
  if (impl.rules == Mode::kStrict && call.allow_all && !call.images) {
    return Error{ErrorCode::kInvalidArgument,
                 "there is no list of images to adopt; nothing was changed",
                 "give the runtime's complete list"};
  }
  const internal::Observing observing{.options = impl.evidence,
                                      .now = impl.boot_clock ? impl.boot_clock() : BootTime(),
                                      .allow_empty = call.allow_empty};
  std::optional<ImageList> list;
  if (call.images) list = ImageList{.images = *call.images, .complete = true};
  return WriteImages(
      impl,
      [&](Images& images) -> Result<ClassifyReport> {
        ClassifyReport report;
        if (images.learns_aliases()) {
          report =
              TRY(internal::CloseOrAdopt(images, list, call.allow_all, call.reason, observing));
        }
        TRY(internal::SetTrust(images.txn(), call.reason));
        return report;
      },
      ChangeOptions{.dry_run = call.dry_run});
}

}  // namespace door

}  // namespace waybill
