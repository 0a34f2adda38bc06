// Lists of images, the ledger, open pulls.

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/engine/trust/trust.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/judge.h"
#include "store/images/observe.h"
#include "store/images/preloaded.h"
#include "store/images/pull_row.h"
#include "store/images/shown.h"
#include "store/node/facade/impl.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/records/typed_tables.h"

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
  auto known = internal::ReadRuntimeHandlers(txn);
  return known ? internal::UnknownHandler(runtime_handler, *known) : known.error();
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

}  // namespace

Result<bool> NodeStore::Impl::MustKeepTime(const StoreTxn& txn) {
  // So much younger at most does a clock that goes back make a proof; and not by more than a limit.
  constexpr std::chrono::seconds kMost{3600};
  const auto since = internal::Between(txn.state().clocks.ages, txn.clocks().ages);
  const AgeLimits& limits = txn.state().ages;
  for (const auto& most : {limits.credentials, limits.service_accounts, limits.node_pods}) {
    if (most.count() != 0 && since >= std::min(most, kMost)) return true;
  }
  if (since < kMost) return false;
  const auto snapshot = Read();
  const auto counts = snapshot ? CountRecords(snapshot) : NoSnapshot(snapshot, "the records");
  return !counts || counts->ending > 0;
}

Result<ListToken> NodeStore::BeginList() try {
  if (!impl_->committer) return impl_->NotOwner();
  const std::uint64_t token = impl_->committer->state().commit_sequence;
  impl_->NoteToken(token);
  return ListToken{token, impl_->boot_clock(), impl_->committer->store_id()};
} catch (...) {
  return internal::Caught();
}

Result<ClassifyReport> NodeStore::ObserveImages(const ImageList& list,
                                                const ChangeOptions& options) try {
  if (!impl_->committer) return impl_->NotOwner();
  if (list.source.size() > kMaxReasonBytes) {
    return CheckReason("source of the list", list.source).error();
  }
  if (list.complete && !list.source.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the list of " + internal::QuoteForMessage(list.source) +
                     " is said to be complete, but only the runtime knows every image; nothing was "
                     "changed"};
  }
  const bool is_traced = impl_->trace && list.complete && !options.dry_run;
  if (impl_->rules == Mode::kKubelet) {
    if (is_traced) impl_->trace->AddList(list.images);
    ClassifyReport report;
    report.listed = list.images.size();
    report.not_judged_because = "the rules `kubelet` keep no ledger";
    return report;
  }
  internal::Observing observing{.options = impl_->evidence,
                                .now = impl_->boot_clock(),
                                .allow_empty = options.allow_empty,
                                .preloaded = impl_->preloaded ? &*impl_->preloaded : nullptr};
  const auto observe = [&](Images& images) -> Result<ClassifyReport> {
    observing.last_list = impl_->last_list;
    auto observed = TRY(internal::ObserveList(images, list, observing));
    if (TRY(impl_->MustKeepTime(images.txn()))) images.txn().Touch();
    if (!options.dry_run && list.token) impl_->NoteList(*list.token);
    return observed;
  };
  auto observed = WriteImages(*impl_, observe, options);
  if (observed && is_traced) impl_->trace->AddList(list.images);
  return observed;
} catch (...) {
  return internal::Caught();
}

Result<void> NodeStore::NoteGap(std::string_view why) try {
  if (auto r = CheckReason("reason", why); !r) return r;
  return impl_->Write(
      [&](StoreTxn& txn) { return internal::NoteGap(txn, internal::GapToldOf(std::string(why))); });
} catch (...) {
  return internal::Caught();
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

Result<void> NodeStore::DropOpenPull(PullId pull, std::string_view reason,
                                     const ChangeOptions& options) try {
  if (auto r = CheckReason("reason", reason); !r) return r;
  return impl_->Write(
      [&](StoreTxn& txn) -> Result<void> {
        auto pulls = TRY(internal::AllOpenPulls(txn));
        const auto at = std::find_if(pulls.begin(), pulls.end(),
                                     [&](const UnresolvedPull& one) { return one.id == pull; });
        if (at == pulls.end() || pull.value == 0 || at->nothing_at != 0) {
          return Error{ErrorCode::kNotFound,
                       "there is no open pull " + std::to_string(pull.value) + " in " +
                           impl_->directory.string() + "; nothing was changed",
                       "list them: it may have ended since"};
        }
        if (at->state == PullState::kRunning &&
            impl_->in_flight.Get(at->image, at->runtime_handler).count > 0) {
          return Error{ErrorCode::kConflict,
                       "the pull of " + internal::QuoteForMessage(at->image) +
                           " runs in this process; nothing was changed",
                       "record how it ended"};
        }
        if (auto r = internal::EraseOpenPull(txn, *at); !r) return r;
        internal::NoteEvidenceRemoved(txn);
        return internal::NoteInJournal(
            txn, "dropped " + internal::Describe(*at) + ": " + std::string(reason));
      },
      options);
} catch (...) {
  return internal::Caught();
}

Result<std::vector<PreloadedImage>> NodeStore::ListLedger() const {
  return Guarded([&]() -> Result<std::vector<PreloadedImage>> {
    const auto snapshot = impl_->Read();
    const auto rows =
        TRY(impl_->ListRows(snapshot, "the preloaded images",
                            [](const ImageRow& row) { return row.preloaded.has_value(); }));
    const internal::Clocks now = impl_->ClocksIn(snapshot);
    std::vector<PreloadedImage> entries;
    for (const ImageRow& row : rows) {
      entries.push_back(internal::PreloadedOf(row, now, impl_->clock()));
    }
    std::ranges::sort(entries, {}, [](const PreloadedImage& one) {
      return std::tie(one.image_ref, one.runtime_handler);
    });
    return entries;
  });
}

Result<void> NodeStore::AddToLedger(const ListedImage& image, std::string_view source,
                                    std::string_view reason, const ChangeOptions& options,
                                    bool pulled_too) try {
  TRY(CheckWord(impl_->rules, image.id, reason));
  TRY(CheckReason("source", source));
  const ImageCopy copy{.image_ref = image.id, .runtime_handler = image.runtime_handler};
  return SayOf(*impl_, copy, options, [&](Images& images, const std::string& handler) {
    return internal::AllowImage(images, image, handler, source, reason, pulled_too);
  });
} catch (...) {
  return internal::Caught();
}

Result<bool> NodeStore::RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                         const ChangeOptions& options) try {
  TRY(CheckWord(impl_->rules, copy.image_ref, reason));
  return SayOf(
      *impl_, copy, options, [&](Images& images, const std::string& handler) -> Result<bool> {
        const auto was =
            TRY(internal::TakeOut(images, copy.image_ref, handler, reason, internal::Which::kAny));
        if (!was) return false;
        TRY(internal::NoteInJournal(images.txn(),
                                    "took " + internal::QuoteForMessage(copy.image_ref) +
                                        " out of the ledger: " + std::string(reason)));
        return true;
      });
} catch (...) {
  return internal::Caught();
}

Result<bool> NodeStore::SettlePresumed(const ImageCopy& copy, Settled settled,
                                       std::string_view reason, const ChangeOptions& options) try {
  TRY(CheckWord(impl_->rules, copy.image_ref, reason));
  return SayOf(*impl_, copy, options, [&](Images& images, const std::string& handler) {
    return settled == Settled::kClosed ? internal::TakeOut(images, copy.image_ref, handler, reason,
                                                           internal::Which::kPresumed)
                                       : internal::Confirm(images, copy.image_ref, handler, reason);
  });
} catch (...) {
  return internal::Caught();
}

Result<ClassifyReport> NodeStore::ClearDistrust(std::string_view reason,
                                                const ClearOptions& options) try {
  if (reason.empty() || reason.size() > kMaxReasonBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "a reason of 1 to " + std::to_string(kMaxReasonBytes) +
                     " bytes is needed to clear distrust; nothing was changed",
                 "say why the store is whole again"};
  }
  if (impl_->rules == Mode::kStrict && options.adopt && !options.images_on_node) {
    return Error{ErrorCode::kInvalidArgument,
                 "there is no list of images to adopt; nothing was changed",
                 "give the runtime's complete list"};
  }
  const internal::Observing observing{.options = impl_->evidence,
                                      .now = impl_->boot_clock ? impl_->boot_clock() : BootTime(),
                                      .allow_empty = options.allow_empty};
  std::optional<ImageList> list;
  if (options.images_on_node) list = ImageList{.images = *options.images_on_node, .complete = true};
  return WriteImages(
      *impl_,
      [&](Images& images) -> Result<ClassifyReport> {
        ClassifyReport report;
        if (images.learns_aliases()) {
          report = TRY(internal::CloseOrAdopt(images, list, options.adopt, reason, observing));
        }
        TRY(internal::SetTrust(images.txn(), reason));
        return report;
      },
      ChangeOptions{.dry_run = options.dry_run});
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
