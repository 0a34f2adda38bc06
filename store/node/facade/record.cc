// Recording pulls, garbage collection, whole records.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "store/base/empty_list.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/node/evidence/prune.h"
#include "store/node/facade/impl.h"
#include "store/node/facade/node_store.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/images/list_token.h"
#include "store/node/images/spellings.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/pulls/recording.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/revocation/forget.h"
#include "store/node/upkeep/observe.h"
#include "waybill/values.h"

namespace waybill {

using internal::FoundHandler, internal::Lookup, internal::Payload, internal::ReaderPool,
    internal::StoreTxn, internal::Table;

namespace {

Error EmptyRef() {
  return {ErrorCode::kInvalidArgument, "the image ref is empty; nothing was changed",
          "pass what the runtime returned for the image"};
}

Result<void> CheckRef(const ImageCopy& copy) {
  if (copy.image_ref.empty()) return EmptyRef();
  return CheckLength("image ref", copy.image_ref, kMaxImageRefBytes);
}

Result<void> CheckHandler(std::string_view runtime_handler) {
  return CheckLength("runtime handler", runtime_handler, kMaxRuntimeHandlerBytes);
}

Result<void> CheckIntent(const ImageCopy& copy) {
  if (copy.image.empty() && !copy.image_ref.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the image is empty, beside the image ref \"" +
                     std::string(copy.image_ref.substr(0, kMaxImageRefBytes)) +
                     "\"; nothing was changed",
                 "pass the container's image string"};
  }
  return CheckLength("image", copy.image, kMaxImageBytes);
}

Result<void> CheckPull(const ImageCopy& copy) {
  if (auto r = CheckIntent(copy); !r) return r;
  return CheckHandler(copy.runtime_handler);
}

constexpr std::int64_t kLastSecond = 253'402'300'799;  // of the year 9999

Result<void> CheckTerms(const ProofTerms& terms) {
  if (!HasWord(terms.checker)) {
    return Error{ErrorCode::kInvalidArgument, "there is no checker of a proof with the number " +
                                                  std::to_string(static_cast<int>(terms.checker)) +
                                                  "; nothing was changed"};
  }
  // 0 is stored for "not said".
  const bool is_time = !terms.good_until ||
                       (terms.good_until->seconds > 0 && terms.good_until->seconds <= kLastSecond);
  if (is_time) return {};
  return Error{ErrorCode::kInvalidArgument,
               "the time until which the credential is good is not one of the years 1970 to 9999; "
               "nothing was changed",
               "leave it out if the credential does not say"};
}

Error Unknown(const StoreTxn& txn, std::string_view runtime_handler) {
  auto known = internal::ReadRuntimeHandlers(txn);
  return known ? internal::UnknownHandler(runtime_handler, *known) : known.error();
}

Result<void> CheckKnown(const StoreTxn& txn, const ImageCopy& copy, const FoundHandler& handler) {
  return handler.known ? Result<void>() : Unknown(txn, copy.runtime_handler);
}

// For a pull that ends. An unknown handler is accepted if its pull was begun: the registry may have
// been replaced meanwhile.
Result<void> CheckBegun(const StoreTxn& txn, const internal::InFlight& in_flight,
                        const ImageCopy& copy, const FoundHandler& handler) {
  if (handler.known || in_flight.Get(copy.image, copy.runtime_handler).count > 0) return {};
  auto pulls = internal::FindOpenPulls(txn, copy.image, copy.runtime_handler);
  return pulls && pulls->empty() ? Unknown(txn, copy.runtime_handler) : Result<void>();
}

// Also that the pull which it names, if it does, is one of the image.
Result<void> CheckEnding(const StoreTxn& txn, const internal::InFlight& in_flight,
                         const ImageCopy& copy, const FoundHandler& handler, PullId named) {
  TRY(CheckBegun(txn, in_flight, copy, handler));
  return internal::CheckNamedPull(txn, {copy.image, handler.stored, named});
}

// Checks the copy, then runs `change` with its handler, known or not. No exception leaves it.
template <typename Check, typename Change>
Result<void> WriteCopy(NodeStore::Impl& impl, const ImageCopy& copy, const Check& check,
                       const Change& change) {
  return Guarded([&]() -> Result<void> {
    if (auto r = check(copy); !r) return r;
    return impl.Write([&](StoreTxn& txn) -> Result<void> {
      auto handler = internal::FindHandler(txn, copy.runtime_handler);
      return handler ? change(txn, *handler) : handler.error();
    });
  });
}

// For its duration. 0: no intent was recorded, or it can't be read, which recording says.
PullId PullThatEnds(const StoreTxn& txn, const ImageCopy& copy, const FoundHandler& handler,
                    PullId named) {
  if (named.value != 0) return named;
  auto found = internal::FindEndingPull(txn, {copy.image, handler.stored, named});
  return found && *found ? (*found)->id : PullId();
}

}  // namespace

namespace {

std::optional<std::int64_t> ToMs(std::optional<std::int64_t> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1'000'000;
  return nanoseconds;
}

void TracePulled(internal::TraceWriter& trace, const ImageCopy& copy,
                 const std::optional<ImagePullCredentials>& credentials, const PullResult& result,
                 std::optional<std::int64_t> took) noexcept try {
  internal::TraceWriter::Noted noted{.kind = TraceEvent::Kind::kPulled,
                                     .copy = copy,
                                     .bytes = result.image ? result.image->bytes : 0,
                                     .took_ms = ToMs(took)};
  std::vector<ImagePullSecretView> secrets;
  PodCredentials proven;
  if (credentials) {
    secrets.assign(credentials->kubernetes_secrets.begin(), credentials->kubernetes_secrets.end());
    proven.secrets = secrets;
    const auto& accounts = credentials->kubernetes_service_accounts;
    if (!accounts.empty()) proven.service_account = accounts.front();
    noted.credentials = &proven;
    if (!secrets.empty()) noted.pod_namespace = secrets.front().namespace_name;
    if (!accounts.empty()) noted.pod_namespace = proven.service_account->namespace_name;
  }
  trace.Add(noted);
} catch (...) {
  // The pull is recorded, and no error of the trace may say otherwise.
  trace.Drop();
}

}  // namespace

Result<PullId> NodeStore::RecordPullIntent(const ImageCopy& copy) {
  PullId id;
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckKnown(txn, copy, handler); !r) return r;
    id = TRY(internal::RecordIntent(txn, impl_->in_flight, impl_->rules, copy.image, handler.stored,
                                    impl_->boot_clock()));
    return {};
  };
  return Guarded([&]() -> Result<PullId> {
    auto written = WriteCopy(*impl_, copy, CheckPull, record);
    if (!written) return std::move(written.error());
    impl_->pull_counts.Begin(id, impl_->boot_clock());
    if (impl_->trace) impl_->trace->Add({.kind = TraceEvent::Kind::kPullBegun, .copy = copy});
    return id;
  });
}

Result<void> NodeStore::RecordImagePulled(const ImageCopy& copy,
                                          const std::optional<ImagePullCredentials>& credentials,
                                          const PullResult& result) {
  std::optional<std::string_view> name;
  PullId ended;
  BootTime now;
  const auto check = [&](const ImageCopy&) -> Result<void> {
    if (auto r = CheckLength("image", copy.image, kMaxImageBytes); !r) return r;
    if (auto r = CheckHandler(copy.runtime_handler); !r) return r;
    if (auto r = CheckRef(copy); !r) return r;
    if (auto r = CheckTerms(result.terms); !r) return r;
    name = ImageName(copy.image);
    if (name) return {};
    return Error{ErrorCode::kInvalidArgument,
                 "the image \"" + std::string(copy.image) +
                     "\" does not parse; no record was written, its intent stays"};
  };
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    TRY(CheckEnding(txn, impl_->in_flight, copy, handler, result.pull));
    ended = PullThatEnds(txn, copy, handler, result.pull);
    now = impl_->boot_clock();
    std::string ref(copy.image_ref);
    if (impl_->rules == Mode::kStrict && result.image) {
      TRY(internal::LearnEntry(txn, *result.image));
      // A digest that two images have is a spelling of neither: its record would be found by no
      // other.
      auto row = TRY(internal::FindSpelling(txn, internal::SpellingOf(ref)));
      if (row && row->image.empty() && !result.image->id.empty()) ref = result.image->id;
    }
    // An unknown handler is gone, so its platform is unknown: verify again.
    const std::optional<ImagePullCredentials> unknown;
    return internal::RecordPulled(
        txn, impl_->in_flight, impl_->rules,
        {copy.image, *name, ref, handler.stored, result.pull, handler.known ? credentials : unknown,
         result.manifest, handler.guest_platform, result.terms, impl_->policy, now});
  };
  TRY(WriteCopy(*impl_, copy, check, record));
  const auto took =
      impl_->pull_counts.End(ended, PullEnd::kSucceeded, PullErrorClass::kUnknown, now);
  if (impl_->trace) TracePulled(*impl_->trace, copy, credentials, result, took);
  return {};
}

Result<void> NodeStore::RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                              PullId pull) {
  return RecordImagePullError(copy, {.failure = failure, .pull = pull});
}

Result<void> NodeStore::RecordImagePullError(const ImageCopy& copy, const PullError& failed) {
  PullId ended;
  BootTime now;
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    TRY(CheckEnding(txn, impl_->in_flight, copy, handler, failed.pull));
    ended = PullThatEnds(txn, copy, handler, failed.pull);
    now = impl_->boot_clock();
    return internal::RecordFailed(txn, impl_->in_flight, impl_->rules,
                                  {copy.image, handler.stored, failed.pull, failed.failure, now,
                                   impl_->opened_at, impl_->last_token.load()});
  };
  TRY(WriteCopy(*impl_, copy, CheckPull, record));
  const bool is_unknown = failed.failure == PullFailure::kUnknown;
  const auto took = impl_->pull_counts.End(ended, is_unknown ? PullEnd::kUnknown : PullEnd::kFailed,
                                           failed.error_class, now);
  if (impl_->trace && !is_unknown) {
    impl_->trace->Add({.kind = TraceEvent::Kind::kPullFailed, .copy = copy, .took_ms = ToMs(took)});
  }
  return {};
}

namespace {

// The images of a list, their handlers by the names that records have.
Result<void> ToPrune(const StoreTxn& txn, const std::vector<ListedImage>& listed,
                     internal::ImagesOnNode& images) {
  auto handlers = TRY(internal::ReadRuntimeHandlers(txn));
  for (const ListedImage& image : listed) {
    std::optional<std::string> handler;
    if (!image.runtime_handler.empty()) {
      handler = internal::StoredName(handlers, image.runtime_handler);
    }
    if (auto r = images.Add(image.id, handler); !r) return r;
    for (const std::string& digest : image.repo_digests) images.AddDigest(digest, handler);
  }
  return {};
}

Result<PruneReport> PruneTo(NodeStore::Impl& impl, const std::vector<ListedImage>& listed,
                            internal::PruneLimit limit, const std::optional<ListToken>& token,
                            const ChangeOptions& options) {
  // All in one transaction; in parts if a full store has too few pages left for that.
  for (internal::PrunePart part;;) {
    const auto prune = [&](StoreTxn& txn) -> Result<internal::PrunedPart> {
      if (token) TRY(internal::CheckToken(txn, *token, Hint::kBeginList));
      const std::uint64_t records = txn.state().digest(Table::kPulled).count;
      const bool prunes_ledger = limit.by_stamp && impl.rules == Mode::kStrict;
      const std::uint64_t entries =
          prunes_ledger ? txn.state().digest(Table::kLedger).count : std::uint64_t{0};
      if (listed.empty() && records + entries > 0 && !options.allow_empty) {
        std::string holds = "holds " + internal::HowMany(records, "record");
        if (entries > 0) holds += " and " + internal::HowMany(entries, "preloaded image");
        return internal::EmptyList("the list of images on the node is", holds,
                                   "no record was removed");
      }
      internal::ImagesOnNode images(impl.rules, txn);
      TRY(ToPrune(txn, listed, images));
      auto pruned = internal::PruneRecords(txn, impl.rules, images, limit, part);
      if (pruned && pruned->never_listed) {
        TRY(internal::OpenPullOfAnything(txn, impl.boot_clock()));
      }
      if (pruned && pruned->dropped) {
        TRY(internal::OpenPullOfAnything(txn, impl.boot_clock(), PullState::kDropped));
      }
      if (!pruned || pruned->next || !prunes_ledger) return pruned;
      auto ledger = TRY(internal::PruneLedger(txn, images, limit, part.most));
      pruned->report.preloaded_removed += ledger.entries;
      // The records are done: the next part is of the ledger alone.
      if (ledger.more) pruned->next = internal::Key16::Last();
      txn.state().last_list = std::max(txn.state().last_list, limit.token);
      if (TRY(impl.MustKeepTime(txn))) txn.Touch();
      if (token && !options.dry_run) impl.NoteList(*token);
      return pruned;
    };
    const auto pruned = WriteAndGet(impl, prune, options);
    if (!pruned) {
      // A full store has no room to remember anything: it forgets, so that pulls can be recorded.
      if (pruned.error().code == ErrorCode::kStoreFull && limit.remember.count() > 0) {
        limit.remember = std::chrono::seconds(0);
        continue;
      }
      if (!TakeSmallerSteps(pruned.error(), part.most)) return pruned.error();
      continue;
    }
    if (!pruned->next) return pruned->report;
    part.first = *pruned->next;
    part.before = pruned->report;
  }
}

}  // namespace

Result<PruneReport> NodeStore::Prune(const std::vector<ListedImage>& images, const ListToken& token,
                                     const ChangeOptions& options) try {
  internal::PruneLimit limit;
  limit.token = token.commit;
  limit.remember = impl_->Remember();
  return PruneTo(*impl_, images, limit, token, options);
} catch (...) {
  return internal::Caught();
}
Result<PruneReport> NodeStore::PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                           const ChangeOptions& options) try {
  bool met_ahead = false;
  internal::PruneLimit limit;
  limit.by_stamp = false;
  limit.until = until;
  limit.remember = impl_->Remember();
  if (impl_->rules == Mode::kStrict) {
    limit.mended_at = impl_->clock_mended_at.load();
    limit.met_ahead = &met_ahead;
  }
  auto report = PruneTo(*impl_, images, limit, std::nullopt, options);
  // So that the next prune can remove them. In a full store they stay as they are.
  if (report && met_ahead && !options.dry_run) static_cast<void>(impl_->MendClock());
  return report;
} catch (...) {
  return internal::Caught();
}

namespace {

// The handler that a reader asks for, by the name that records have. An unknown one is used as it
// is: its records stay until they are pruned. nullopt: the registry can't be read.
std::optional<std::string_view> HandlerToRead(const ReaderPool::Lease& snapshot,
                                              std::string_view runtime_handler) {
  std::string_view stored;
  const Lookup state = internal::FindStoredHandler(snapshot, runtime_handler, stored);
  if (state == Lookup::kDamaged) return std::nullopt;
  return stored;
}

// Damage counts only if a fresh snapshot has it, too.
Lookup GetTwice(ReaderPool::Lease& snapshot, Table table, const internal::Key16& key,
                Payload& payload) {
  const Lookup found = snapshot.Get(table, key, payload);
  return found == Lookup::kDamaged && snapshot.Refresh() ? snapshot.Get(table, key, payload)
                                                         : found;
}

}  // namespace

Result<ImagePulledRecord> NodeStore::GetRecord(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<ImagePulledRecord> {
    if (copy.image_ref.empty() && !copy.image.empty()) return EmptyRef();
    const std::string what = "the record of \"" + std::string(copy.image_ref) + "\"";
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, what);
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    std::vector<std::string> refs{std::string(copy.image_ref)};
    if (impl_->rules == Mode::kStrict &&
        internal::RefsOfImage(snapshot, copy.image_ref, refs) == Lookup::kDamaged) {
      return impl_->Unreadable(what);
    }
    for (const std::string& ref : refs) {
      const internal::Key16 key = internal::PulledKey(ref, *handler, snapshot.seed());
      Payload payload;
      const Lookup found = GetTwice(snapshot, Table::kPulled, key, payload);
      if (found == Lookup::kAbsent) continue;
      if (found == Lookup::kDamaged) return impl_->Unreadable(what);
      auto record = internal::DecodePulledRecordValue(payload);
      if (!record || record->image_ref != ref || record->runtime_handler != *handler) {
        return impl_->Unreadable(what);
      }
      internal::LeaveWhatCounts(snapshot, impl_->policy, impl_->AgesIn(snapshot),
                                impl_->ClocksIn(snapshot), *record);
      return std::move(*record);
    }
    return Error{ErrorCode::kNotFound,
                 "there is no record of \"" + std::string(copy.image_ref) + "\" " +
                     (handler->empty() ? "" : "for " + std::string(*handler) + " ") + "in " +
                     impl_->directory.string()};
  });
}

Result<std::vector<ImagePulledRecord>> NodeStore::Impl::ListRecordsIn(
    const ReaderPool::Lease& snapshot) const {
  auto records =
      ListIn(*this, snapshot, Table::kPulled, "the records", internal::DecodePulledRecordValue);
  if (records) {
    const internal::Clocks now = ClocksIn(snapshot);
    for (ImagePulledRecord& record : *records) {
      internal::LeaveWhatCounts(snapshot, policy, AgesIn(snapshot), now, record);
    }
  }
  return records;
}

Result<std::vector<ImagePulledRecord>> NodeStore::ListRecords() const {
  return Guarded([&] { return impl_->ListRecordsIn(impl_->Read()); });
}

Result<void> NodeStore::PutRecord(const ImagePulledRecord& record, const ProofTerms& terms) {
  const ImageCopy of_record = {.image_ref = record.image_ref,
                               .runtime_handler = record.runtime_handler};
  const auto check = [&](const ImageCopy& copy) -> Result<void> {
    if (auto r = CheckRef(copy); !r) return r;
    if (auto r = CheckTerms(terms); !r) return r;
    return CheckHandler(copy.runtime_handler);
  };
  std::optional<ImagePulledRecord> before_put;
  const auto put = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    ImagePulledRecord stored = record;
    stored.absent_since.reset();
    stored.closed_by_list = false;
    stored.runtime_handler = handler.stored;
    stored.guest_platform = handler.guest_platform;
    if (!handler.known) {
      auto there = internal::FindRecord(txn, record.image_ref, record.runtime_handler);
      if (there && !*there) return Unknown(txn, record.runtime_handler);
      if (there) stored.guest_platform = (*there)->guest_platform;
    }
    if (impl_->rules == Mode::kStrict) {
      // Replaced by what the caller puts, under whatever spelling it was.
      TRY(internal::TakeOverRecord(txn, record.image_ref, handler.stored));
      TRY(internal::EraseRemembered(txn, record.image_ref, handler.stored));
    }
    auto before = internal::FindRecord(txn, record.image_ref, handler.stored);
    if (!before && before.error().code != ErrorCode::kDamaged) return before.error();
    if (impl_->trace) before_put = before ? *before : std::nullopt;
    // Of what the caller gives, not of what is left of it.
    if (auto r = internal::CheckRecordLimits(stored); !r) return r;
    stored.closed_by_operator = before && *before && (*before)->closed_by_operator;
    TRY(internal::GiveProofs(txn, before ? *before : std::nullopt, terms, impl_->policy, stored));
    if (auto r = internal::StoreRecord(txn, std::move(stored)); !r) return r;
    return internal::ClearRefQuarantine(txn, record.image_ref, impl_->rules);
  };
  auto written = WriteCopy(*impl_, of_record, check, put);
  if (written && impl_->trace) {
    impl_->trace->AddRecord(before_put ? &*before_put : nullptr, record);
  }
  return written;
}

Result<void> NodeStore::DeleteRecord(const ImageCopy& copy) {
  const auto erase = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    std::vector<std::string> refs{std::string(copy.image_ref)};
    if (impl_->rules == Mode::kStrict) {
      refs = TRY(internal::RefsOfImage(txn, copy.image_ref));
    }
    bool any = false;
    for (const std::string& ref : refs) {
      auto erased = TRY(internal::EraseRecord(txn, ref, handler.stored));
      any = any || erased;
    }
    if (!any) return {};
    internal::NoteEvidenceRemoved(txn);
    if (impl_->rules == Mode::kKubelet) return {};
    auto was_listed = TRY(internal::WasListed(txn, copy.image_ref));
    // What it was about may be listed under another ref.
    return was_listed ? Result<void>() : internal::OpenPullOfAnything(txn, impl_->boot_clock());
  };
  return WriteCopy(*impl_, copy, CheckRef, erase);
}

Result<bool> NodeStore::HasIntent(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<bool> {
    TRY(CheckIntent(copy));
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the intents");
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    const auto find = [&] {
      return snapshot.FindWithPrefix(
          Table::kIntents, internal::IntentKey(copy.image, PullId{}, snapshot.seed()),
          internal::kImageKeyBytes, [&](Payload payload) {
            const internal::IntentView intent = internal::ViewIntent(payload);
            return !intent.anything && intent.image == copy.image &&
                   intent.runtime_handler == *handler;
          });
    };
    Lookup found = find();
    if (found == Lookup::kDamaged && snapshot.Refresh()) found = find();
    if (found == Lookup::kDamaged) {
      return impl_->Unreadable("the intent of \"" + std::string(copy.image) + "\"");
    }
    return found == Lookup::kFound;
  });
}

Result<std::vector<ImagePullIntent>> NodeStore::ListIntents() const {
  return Guarded([&]() -> Result<std::vector<ImagePullIntent>> {
    auto pulls =
        TRY(ListTable(*impl_, Table::kIntents, "the intents", internal::DecodeUnresolvedPull));
    std::set<ImagePullIntent> intents;
    for (const UnresolvedPull& pull : pulls) {
      if (!pull.anything && pull.nothing_at == 0) {
        intents.insert({pull.image, pull.runtime_handler});
      }
    }
    return std::vector<ImagePullIntent>(intents.begin(), intents.end());
  });
}

Result<void> NodeStore::PutIntent(const ImageCopy& copy) {
  const auto put = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckKnown(txn, copy, handler); !r) return r;
    return internal::StoreIntent(txn, copy.image, handler.stored, impl_->rules,
                                 impl_->boot_clock());
  };
  return WriteCopy(*impl_, copy, CheckPull, put);
}

Result<void> NodeStore::DeleteIntent(const ImageCopy& copy) {
  return WriteCopy(*impl_, copy, CheckPull, [&](StoreTxn& txn, const FoundHandler& handler) {
    return internal::ForgetIntent(txn, impl_->in_flight, copy.image, handler.stored);
  });
}

Result<std::vector<QuarantinedFile>> NodeStore::ListQuarantine() const {
  return ListTable(*impl_, Table::kQuarantine, "the quarantine entries",
                   internal::DecodeQuarantineValue);
}

Result<std::vector<ImagePreloadedRecord>> NodeStore::ListPreloaded() const {
  return ListTable(*impl_, Table::kPreloaded, "the preloaded records",
                   internal::DecodePreloadedValue);
}

}  // namespace waybill
