// Lists of images, the ledger, open pulls.

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/engine/trust/trust.h"
#include "store/node/evidence/judge.h"
#include "store/node/facade/impl.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/upkeep/gap.h"
#include "store/node/upkeep/observe.h"

namespace waybill {

using internal::Payload, internal::StoreTxn, internal::Table;

namespace {

constexpr std::string_view kOperatorSource = "operator";

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

// Also one that is only remembered. nullopt: it has none.
Result<std::optional<PreloadedImage>> FindEntry(const StoreTxn& txn, const ImageCopy& copy) {
  auto handler = TRY(StoredHandler(txn, copy.runtime_handler));
  return internal::FindRememberedEntry(txn, copy.image_ref, handler);
}

// What to do about a record that can't be read.
enum class Unreadable : std::uint8_t { kSkip, kRefuse };

// The image's records, under any handler.
Result<std::vector<ImagePulledRecord>> RecordsOfImage(const StoreTxn& txn,
                                                      std::string_view image_ref,
                                                      Unreadable unreadable = Unreadable::kSkip) {
  std::vector<ImagePulledRecord> records;
  auto refs = TRY(internal::RefsOfImage(txn, image_ref));
  for (const std::string& ref : refs) {
    TRY(txn.ForEachWithPrefix(
        Table::kPulled, internal::FirstPulledKeyOfRef(ref, txn.seed()), internal::kRefKeyBytes,
        [&](const internal::Key16&, Payload payload) -> Result<bool> {
          auto record = payload.empty() ? std::nullopt : internal::DecodePulledRecordValue(payload);
          if (!record && unreadable == Unreadable::kRefuse) {
            return Error{
                ErrorCode::kDamaged,
                "a record of " + internal::QuoteForMessage(ref) +
                    " can't be read, so it is not known who pulled it; nothing was changed",
                "pull the image again, which replaces the record"};
          }
          if (record && record->image_ref == ref) records.push_back(*std::move(record));
          return true;
        }));
  }
  return records;
}

// The closing of an image that is gone waits for it: a record that is gone, too.
Result<void> CloseCopyOf(StoreTxn& txn, const PreloadedImage& entry, std::string_view because) {
  auto closed = TRY(internal::CloseCopy(txn, entry.image_ref, entry.runtime_handler, because,
                                        internal::ClosedBy::kOperator));
  if (!closed || !entry.absent_since) return {};
  auto record = TRY(internal::FindRecord(txn, entry.image_ref, entry.runtime_handler));
  record->absent_since = entry.absent_since;
  return internal::StoreAbsence(txn, *std::move(record));
}

// Operators' closings have no end, so their number has one.
Result<void> CheckClosings(const StoreTxn& txn) {
  if (txn.state().digest(Table::kPulled).count < kMaxClosings) return {};
  std::size_t closings = 0;
  TRY(txn.ForEach(Table::kPulled, [&](const internal::Key16&, Payload payload) -> Result<bool> {
    const auto record = payload.empty() ? std::nullopt : internal::DecodePulledRecordValue(payload);
    if (record && record->closed_by_operator) ++closings;
    return closings < kMaxClosings;
  }));
  if (closings < kMaxClosings) return {};
  return Error{ErrorCode::kLimitExceeded,
               "operators closed " + std::to_string(kMaxClosings) +
                   " images, and no more are allowed; nothing was changed",
               "remove the records of images that come no more"};
}

Result<void> TakeOut(StoreTxn& txn, const PreloadedImage& entry, std::string_view reason) {
  TRY(internal::EraseLedgerEntry(txn, entry.image_ref, entry.runtime_handler));
  internal::NoteEvidenceRemoved(txn);
  const std::string because =
      ("an operator took it out of the ledger: " + std::string(reason)).substr(0, kMaxReasonBytes);
  auto records = TRY(RecordsOfImage(txn, entry.image_ref));
  bool has_own = false;
  for (ImagePulledRecord& record : records) {
    const bool is_own = record.runtime_handler == entry.runtime_handler;
    has_own = has_own || is_own;
    // What a list guessed, under any handler, becomes the operator's word.
    const bool is_guess = std::exchange(record.closed_by_list, false);
    if (!is_own && !is_guess) continue;
    record.closed_by_operator = true;
    if (is_guess) record.closed_because = because;
    // What its pulls proved stays, and is no newer than it was.
    TRY(is_guess ? internal::StoreRecord(txn, std::move(record))
                 : internal::StoreProofs(txn, std::move(record)));
  }
  if (has_own) return {};
  TRY(CheckClosings(txn));
  return CloseCopyOf(txn, entry, because);
}

// Whoever pulled it with credentials of their own may not want every pod to have it; nor may it be
// theirs if nobody knows with what it was pulled.
Result<void> CheckNotPulled(const StoreTxn& txn, const PreloadedImage& entry) {
  if (TRY(internal::FindLedgerEntry(txn, entry.image_ref, entry.runtime_handler))) return {};
  const auto is_every_pods = [](const auto& of_name) {
    return of_name.second.node_pods_accessible;
  };
  const auto records = TRY(RecordsOfImage(txn, entry.image_ref, Unreadable::kRefuse));
  for (const ImagePulledRecord& record : records) {
    const auto& credentials = record.credential_mapping;
    if (record.runtime_handler != entry.runtime_handler || !record.closed_because.empty()) continue;
    if (!credentials.empty() && std::ranges::all_of(credentials, is_every_pods)) continue;
    return Error{ErrorCode::kConflict,
                 internal::QuoteForMessage(entry.image_ref) +
                     " was pulled, and not for every pod; nothing was changed",
                 "set pulledToo if every pod may use it all the same"};
  }
  return {};
}

// An operator says that the image is preloaded: the newest word counts.
Result<void> TakeBackClosing(StoreTxn& txn, const PreloadedImage& entry) {
  auto records = TRY(RecordsOfImage(txn, entry.image_ref));
  for (ImagePulledRecord& record : records) {
    if (record.runtime_handler != entry.runtime_handler) continue;
    if (!std::exchange(record.closed_by_operator, false)) continue;
    if (!record.closed_because.empty()) {
      record.closed_because = "an operator closed it, and took that back";
    }
    TRY(internal::StoreProofs(txn, std::move(record)));
  }
  return {};
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
  const auto observe = [&](StoreTxn& txn) -> Result<ClassifyReport> {
    observing.last_list = impl_->last_list;
    auto observed = TRY(internal::ObserveList(txn, list, observing));
    if (TRY(impl_->MustKeepTime(txn))) txn.Touch();
    if (!options.dry_run && list.token) impl_->NoteList(*list.token);
    return observed;
  };
  auto observed = WriteAndGet(*impl_, observe, options);
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
  auto entries = ListTable(*impl_, Table::kLedger, "the ledger", internal::DecodeLedgerEntry);
  if (entries) {
    std::sort(entries->begin(), entries->end(),
              [](const PreloadedImage& a, const PreloadedImage& b) {
                return std::tie(a.image_ref, a.runtime_handler) <
                       std::tie(b.image_ref, b.runtime_handler);
              });
  }
  return entries;
}

Result<void> NodeStore::AddToLedger(const ListedImage& image, std::string_view source,
                                    std::string_view reason, const ChangeOptions& options,
                                    bool pulled_too) try {
  if (auto r = CheckWord(impl_->rules, image.id, reason); !r) return r;
  if (auto r = CheckReason("source", source); !r) return r;
  return impl_->Write(
      [&](StoreTxn& txn) -> Result<void> {
        auto handler = TRY(StoredHandler(txn, image.runtime_handler));
        if (auto r = internal::CheckOfOneImage(txn, image.id); !r) return r;
        PreloadedImage entry{.image_ref = image.id,
                             .runtime_handler = handler,
                             .source = std::string(source),
                             .reason = std::string(reason),
                             .since = txn.now()};
        for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
          for (const std::string& name : *names) {
            if (name.size() <= kMaxImageBytes && internal::ReadName(name).parses &&
                entry.names.size() < kMaxNamesPerImage) {
              entry.names.push_back(name);
            }
          }
        }
        std::sort(entry.names.begin(), entry.names.end());
        entry.names.erase(std::unique(entry.names.begin(), entry.names.end()), entry.names.end());
        if (!pulled_too) TRY(CheckNotPulled(txn, entry));
        TRY(TakeBackClosing(txn, entry));
        return internal::PutLedgerEntry(txn, std::move(entry));
      },
      options);
} catch (...) {
  return internal::Caught();
}

Result<bool> NodeStore::RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                         const ChangeOptions& options) try {
  TRY(CheckWord(impl_->rules, copy.image_ref, reason));
  return WriteAndGet(
      *impl_,
      [&](StoreTxn& txn) -> Result<bool> {
        auto entry = TRY(FindEntry(txn, copy));
        if (!entry) return false;
        TRY(TakeOut(txn, *entry, reason));
        TRY(internal::NoteInJournal(txn, "took " + internal::QuoteForMessage(copy.image_ref) +
                                             " out of the ledger: " + std::string(reason)));
        return true;
      },
      options);
} catch (...) {
  return internal::Caught();
}

Result<bool> NodeStore::SettlePresumed(const ImageCopy& copy, Settled settled,
                                       std::string_view reason, const ChangeOptions& options) try {
  TRY(CheckWord(impl_->rules, copy.image_ref, reason));
  return WriteAndGet(
      *impl_,
      [&](StoreTxn& txn) -> Result<bool> {
        auto entry = TRY(FindEntry(txn, copy));
        if (!entry || !IsPresumed(*entry)) return false;
        if (settled == Settled::kClosed) {
          auto taken = TakeOut(txn, *entry, reason);
          return taken ? Result<bool>(true) : taken.error();
        }
        // What comes back need not be what is confirmed here.
        if (entry->absent_since) return false;
        entry->source = kOperatorSource;
        entry->reason = reason;
        entry->since = txn.now();
        auto put = internal::PutLedgerEntry(txn, std::move(*entry));
        return put ? Result<bool>(true) : put.error();
      },
      options);
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
  return WriteAndGet(
      *impl_,
      [&](StoreTxn& txn) -> Result<ClassifyReport> {
        ClassifyReport report;
        if (impl_->rules == Mode::kStrict) {
          report = TRY(internal::CloseOrAdopt(txn, list, options.adopt, reason, observing));
        }
        TRY(internal::SetTrust(txn, reason));
        return report;
      },
      ChangeOptions{.dry_run = options.dry_run});
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
