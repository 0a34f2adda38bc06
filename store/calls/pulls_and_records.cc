// Recording pulls, garbage collection, whole records.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/empty_list.h"
#include "store/base/image_name.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/disk/key.h"
#include "store/images/forget.h"
#include "store/images/images.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull.h"
#include "store/images/pull_error.h"
#include "store/images/pull_row.h"
#include "store/images/retire.h"
#include "store/runtimes/runtime_handlers.h"
#include "waybill/values.h"

namespace waybill {

using internal::FoundHandler, internal::ImageRow, internal::Images, internal::Lookup,
    internal::Payload, internal::ReaderPool, internal::StoreTxn, internal::Table;

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

constexpr std::int64_t kLastGoodUntil = 253'402'300'799;  // of the year 9999

Result<void> CheckTerms(const ProofTerms& terms) {
  if (!HasWord(terms.checker)) {
    return Error{ErrorCode::kInvalidArgument, "there is no checker of a proof with the number " +
                                                  std::to_string(static_cast<int>(terms.checker)) +
                                                  "; nothing was changed"};
  }
  // 0 is stored for "not said".
  const bool is_time = !terms.good_until || (terms.good_until->seconds > 0 &&
                                             terms.good_until->seconds <= kLastGoodUntil);
  if (is_time) return {};
  return Error{ErrorCode::kInvalidArgument,
               "the time until which the credential is good is not one of the years 1970 to 9999; "
               "nothing was changed",
               "leave it out if the credential does not say"};
}

Result<void> CheckKnown(const StoreTxn& txn, const ImageCopy& copy, const FoundHandler& handler) {
  return handler.known ? Result<void>() : internal::UnknownHandler(txn, copy.runtime_handler);
}

// For a pull that ends. An unknown handler is accepted if its pull was begun: the registry may have
// been replaced meanwhile.
Result<void> CheckBegun(const StoreTxn& txn, const internal::InFlight& in_flight,
                        const ImageCopy& copy, const FoundHandler& handler) {
  if (handler.known || in_flight.Get(copy.image, copy.runtime_handler) > 0) return {};
  auto pulls = internal::FindOpenPulls(txn, copy.image, copy.runtime_handler);
  return pulls && pulls->empty() ? internal::UnknownHandler(txn, copy.runtime_handler)
                                 : Result<void>();
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
    return WriteImages(impl, [&](Images& images) -> Result<void> {
      auto handler = internal::FindHandler(images.txn(), copy.runtime_handler);
      return handler ? change(images, *handler) : handler.error();
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

std::optional<std::int64_t> ToMs(std::optional<std::int64_t> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1'000'000;
  return nanoseconds;
}

void TracePulled(internal::TraceWriter& trace, const ImageCopy& copy,
                 const std::optional<ImagePullCredentials>& credentials, const PullDetails& details,
                 std::optional<std::int64_t> took) noexcept try {
  internal::TraceWriter::Noted noted{.kind = TraceEvent::Kind::kPulled,
                                     .copy = copy,
                                     .bytes = details.listed ? details.listed->bytes : 0,
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

// kInvalidArgument also if the image does not parse: then no record is written, and its intent
// stays, as a kubelet's does. An unreadable record is replaced. If the manifest or the guest
// platform differs from the record's, it is another image: proofs for the old one are dropped.
// Mode::kStrict removes only the pull that is named; without a number, the newest running one of
// this string, or else the newest of unknown end, and credentials forgotten since the oldest of
// them began are not proven. Mode::kKubelet removes the intent when no count is left.
Result<void> EndWell(NodeStore::Impl& impl, const EndPull& call) {
  const ImageCopy copy = CopyOf(call);
  const PullId named{call.pull};
  const PullDetails& details = call.details;
  const ProofTerms terms{.checker = details.verified_by,
                         .good_until = details.valid_until,
                         .node_had_no_credentials = details.node_had_no_credentials};
  if (call.credentials && call.credentials->node_pods_accessible &&
      !(call.credentials->kubernetes_secrets.empty() &&
        call.credentials->kubernetes_service_accounts.empty())) {
    return Invalid("everyPod beside Secrets or service accounts",
                   "say which of them the pull used");
  }
  if (details.platform && details.manifest_digest.empty()) {
    return Invalid("a platform without the digest of its manifest", "give manifestDigest, too");
  }
  std::optional<PulledManifest> manifest;
  if (!details.manifest_digest.empty()) {
    manifest.emplace(details.manifest_digest, details.platform.value_or(Platform()));
  }
  std::optional<std::string_view> name;
  PullId ended;
  BootTime now;
  const auto check = [&](const ImageCopy&) -> Result<void> {
    if (auto r = CheckLength("image", copy.image, kMaxImageBytes); !r) return r;
    if (auto r = CheckHandler(copy.runtime_handler); !r) return r;
    if (auto r = CheckRef(copy); !r) return r;
    if (auto r = CheckTerms(terms); !r) return r;
    name = ImageName(copy.image);
    if (name) return {};
    return Error{
        ErrorCode::kInvalidArgument,
        "the image \"" + call.image + "\" does not parse; no record was written, its intent stays"};
  };
  const auto record = [&](Images& images, const FoundHandler& handler) -> Result<void> {
    TRY(CheckEnding(images.txn(), impl.in_flight, copy, handler, named));
    ended = PullThatEnds(images.txn(), copy, handler, named);
    now = impl.boot_clock();
    // An unknown handler is gone, so its platform is unknown: verify again.
    const std::optional<ImagePullCredentials> unknown;
    return internal::RecordPulled(images, impl.in_flight,
                                  {copy.image, *name, copy.image_ref, handler.stored, named,
                                   handler.known ? call.credentials : unknown, details.listed,
                                   manifest, handler.guest_platform, terms, impl.policy, now});
  };
  TRY(WriteCopy(impl, copy, check, record));
  const auto took = impl.pull_counts.End(ended, PullEnd::kSucceeded, PullErrorClass::kUnknown, now);
  if (impl.trace) TracePulled(*impl.trace, copy, call.credentials, details, took);
  return {};
}

// Mode::kStrict chooses the pull as EndWell does, removes it if nothing was transferred, and
// otherwise marks it failed or unknown. Mode::kKubelet removes the intent when no count is left.
Result<void> EndBadly(NodeStore::Impl& impl, const EndPull& call) {
  const ImageCopy copy = CopyOf(call);
  const PullId named{call.pull};
  PullId ended;
  BootTime now;
  const auto record = [&](Images& images, const FoundHandler& handler) -> Result<void> {
    StoreTxn& txn = images.txn();
    TRY(CheckEnding(txn, impl.in_flight, copy, handler, named));
    ended = PullThatEnds(txn, copy, handler, named);
    now = impl.boot_clock();
    return internal::RecordFailed(txn, impl.in_flight, impl.rules,
                                  {copy.image, handler.stored, named, call.outcome, now,
                                   impl.opened_at, impl.last_token.load()});
  };
  TRY(WriteCopy(impl, copy, CheckPull, record));
  const auto error_class = FromWord<PullErrorClass>(call.details.error, "class of errors");
  const bool is_unknown =
      call.outcome != PullOutcome::kFailed && call.outcome != PullOutcome::kNothing;
  const auto took =
      impl.pull_counts.End(ended, is_unknown ? PullEnd::kUnknown : PullEnd::kFailed,
                           error_class ? *error_class : ClassifyPullError(call.details.error), now);
  if (impl.trace && !is_unknown) {
    impl.trace->Add({.kind = TraceEvent::Kind::kPullFailed, .copy = copy, .took_ms = ToMs(took)});
  }
  return {};
}

}  // namespace

namespace door {

// kLimitExceeded also above kMaxInFlightImages. Mode::kStrict: each call makes a pull of its own.
// Mode::kKubelet: an image has one intent, whose number every call returns.
Result<BeginPull::Answer> Do(NodeStore& store, const BeginPull& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  const ImageCopy copy = CopyOf(call);
  PullId id;
  TRY(WriteCopy(impl, copy, CheckPull,
                [&](Images& images, const FoundHandler& handler) -> Result<void> {
                  TRY(CheckKnown(images.txn(), copy, handler));
                  if (call.unless_running) {
                    return internal::StoreIntent(images.txn(), copy.image, handler.stored,
                                                 impl.rules, impl.boot_clock());
                  }
                  id = TRY(internal::RecordIntent(images.txn(), impl.in_flight, impl.rules,
                                                  copy.image, handler.stored, impl.boot_clock()));
                  return {};
                }));
  if (call.unless_running) return BeginPull::Answer();
  impl.pull_counts.Begin(id, impl.boot_clock());
  if (impl.trace) impl.trace->Add({.kind = TraceEvent::Kind::kPullBegun, .copy = copy});
  return BeginPull::Answer{id.value};
}

Result<EndPull::Answer> Do(NodeStore& store, const EndPull& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  return Done(call.outcome == PullOutcome::kPulled ? EndWell(impl, call) : EndBadly(impl, call));
}

}  // namespace door

namespace {

// The images of a list, their handlers by the names that records have.
Result<void> ToPrune(const StoreTxn& txn, const std::vector<ListedImage>& listed,
                     internal::OnNode& on_node) {
  auto handlers = TRY(internal::ReadRuntimeHandlers(txn));
  for (const ListedImage& image : listed) {
    std::optional<std::string> handler;
    if (!image.runtime_handler.empty()) {
      handler = internal::StoredName(handlers, image.runtime_handler);
    }
    TRY(on_node.Add(image.id, image.repo_digests, handler));
  }
  return {};
}

// An empty list may come from a runtime that starts up.
Result<void> CheckNotEmpty(const Images& images, bool prunes_preloaded) {
  const internal::Held held = TRY(internal::CountHeld(images));
  const std::uint64_t preloaded = prunes_preloaded ? held.preloaded : 0;
  if (held.records + preloaded == 0) return {};
  std::string holds = "holds " + internal::HowMany(held.records, "record");
  if (preloaded > 0) holds += " and " + internal::HowMany(preloaded, "preloaded image");
  return internal::EmptyList("the list of images on the node is", holds, "no record was removed");
}

Result<PruneReport> PruneTo(NodeStore::Impl& impl, const std::vector<ListedImage>& listed,
                            internal::RetireLimit limit, const std::optional<ListToken>& token,
                            const ChangeOptions& options) {
  // All in one transaction; in parts if a full store has too few pages left for that.
  for (internal::RetirePart part;;) {
    const auto prune = [&](Images& images) -> Result<internal::RetiredPart> {
      StoreTxn& txn = images.txn();
      if (token) TRY(internal::CheckToken(txn, *token, Hint::kBeginList));
      const bool prunes_preloaded = limit.by_stamp && images.learns_aliases();
      if (listed.empty() && !options.allow_empty) TRY(CheckNotEmpty(images, prunes_preloaded));
      internal::OnNode on_node(images);
      TRY(ToPrune(txn, listed, on_node));
      auto retired = TRY(internal::RetireRecords(images, on_node, limit, part));
      if (retired.never_listed && images.learns_aliases()) {
        TRY(internal::OpenPullOfAnything(txn, impl.boot_clock()));
      }
      if (retired.next) return retired;
      if (prunes_preloaded) {
        const auto preloaded =
            TRY(internal::RetirePreloaded(images, on_node, limit, false, part.most));
        retired.report.preloaded_removed += preloaded.entries;
        // The records are done: the next part is of what was preloaded alone.
        if (preloaded.more) retired.next = internal::Key16::Last();
        txn.state().last_list = std::max(txn.state().last_list, limit.token);
        if (TRY(impl.MustKeepTime(txn))) txn.Touch();
        if (token && !options.dry_run) impl.NoteList(*token);
      }
      // In parts only a full store is pruned.
      if (part.first == internal::Key16() && !retired.next) TRY(internal::KeepWithinBound(images));
      return retired;
    };
    const auto retired = WriteImages(impl, prune, options);
    if (!retired) {
      // A full store has no room to remember anything: it forgets, so that pulls can be recorded.
      if (retired.error().code == ErrorCode::kStoreFull && limit.remember.count() > 0) {
        limit.remember = std::chrono::seconds(0);
        continue;
      }
      if (!TakeSmallerSteps(retired.error(), part.most)) return retired.error();
      continue;
    }
    if (!retired->next) return retired->report;
    part.first = *retired->next;
    part.before = retired->report;
  }
}

}  // namespace

namespace door {

// By a token: deletes each record whose image is not listed, unless it was written or confirmed
// after the token was drawn; Mode::kStrict: what is preloaded likewise. Judges nothing. Deleting a
// record whose image no list ever had leaves an open pull of anything (Mode::kStrict), since the
// image may be listed under another ref; so does DeleteImage. An image that is listed under one
// handler keeps its record there and loses those under others, except the last record that says
// that the image was pulled: that one loses its credentials instead.
// By a time: the kubelet's form, by clocks, whose times it cuts to the second.
Result<PruneBefore::Answer> Do(NodeStore& store, const PruneBefore& call, const Progress&) {
  if (call.before.has_value() == call.token.has_value()) {
    return Invalid("give either a time or a token", "BeginList draws a token");
  }
  NodeStore::Impl& impl = store.impl();
  if (call.before && impl.rules == Mode::kStrict) {
    return Invalid("in mode `strict` no record goes by the time of a clock",
                   "give a token: BeginList draws it before the images are listed");
  }
  const internal::RetireLimit limit{.by_stamp = call.token.has_value(),
                                    .token = call.token.value_or(ListToken()).commit,
                                    .until = call.before.value_or(Timestamp()),
                                    .remember = impl.Remember()};
  return PruneTo(impl, call.images, limit, call.token, OptionsOf(call));
}

}  // namespace door

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

}  // namespace

Result<ImagePulledRecord> NodeStore::GetRecord(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<ImagePulledRecord> {
    if (copy.image_ref.empty() && !copy.image.empty()) return EmptyRef();
    const std::string what = "the record of \"" + std::string(copy.image_ref) + "\"";
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, what);
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    const internal::Question question = impl_->AskAbout(copy, impl_->policy);
    auto found = internal::FindRow(snapshot, question, *handler);
    // Damage counts only if a fresh snapshot has it, too.
    if (found.lookup == Lookup::kDamaged && snapshot.Refresh()) {
      found = internal::FindRow(snapshot, question, *handler);
    }
    if (found.lookup == Lookup::kDamaged) return impl_->Unreadable(what);
    if (found.lookup == Lookup::kFound && internal::ImageView(found.row).is_recorded()) {
      auto row = internal::DecodeImage(found.row);
      if (!row) return impl_->Unreadable(what);
      const internal::Clocks now = impl_->ClocksIn(snapshot);
      internal::LeaveWhatCounts(snapshot, *impl_->PolicyIn(snapshot), impl_->AgingIn(snapshot),
                                *row->pulled);
      return internal::RecordOf(*row, now, impl_->clock());
    }
    return Error{ErrorCode::kNotFound,
                 "there is no record of \"" + std::string(copy.image_ref) + "\" " +
                     (handler->empty() ? "" : "for " + std::string(*handler) + " ") + "in " +
                     impl_->directory.string()};
  });
}

Result<std::vector<ImagePulledRecord>> NodeStore::Impl::ListRecordsIn(
    const ReaderPool::Lease& snapshot) const {
  auto rows = TRY(ListIn(*this, snapshot, Table::kImages, "the records", internal::DecodeImage));
  std::erase_if(rows, [](const ImageRow& row) { return !row.pulled; });
  const internal::Clocks now = ClocksIn(snapshot);
  const auto by = PolicyIn(snapshot);
  std::vector<ImagePulledRecord> records;
  for (ImageRow& row : rows) {
    internal::LeaveWhatCounts(snapshot, *by, AgingIn(snapshot), *row.pulled);
    records.push_back(internal::RecordOf(row, now, clock()));
  }
  return records;
}

Result<std::vector<ImagePulledRecord>> NodeStore::ListRecords() const {
  return Guarded([&] { return impl_->ListRecordsIn(impl_->Read()); });
}

namespace door {

// A credential that counts in the stored record keeps its proof. One that matches such a credential
// by hash or coordinates gets that one's proof (but a forgotten hash gets none by its coordinates).
// Any other is proven by the running pull of the image name, on `terms`. Credentials forgotten
// since that pull began, or forgotten at all if none runs, are left out; the stored Secret of the
// same coordinates stays. Clears the ref's quarantine entry.
Result<PutImage::Answer> Do(NodeStore& store, const PutImage& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  const ImagePulledRecord& record = call.record;
  const ProofTerms& terms = call.terms;
  const ImageCopy of_record = {.image_ref = record.image_ref,
                               .runtime_handler = record.runtime_handler};
  const auto check = [&](const ImageCopy& copy) -> Result<void> {
    if (auto r = CheckRef(copy); !r) return r;
    if (auto r = CheckTerms(terms); !r) return r;
    return CheckHandler(copy.runtime_handler);
  };
  std::optional<ImagePulledRecord> before_put;
  const auto put = [&](Images& images, const FoundHandler& handler) -> Result<void> {
    const auto home = TRY(images.Home(record.image_ref));
    ImageRow row = TRY(images.FindOrMake(home, handler.stored));
    if (!handler.known && !row.pulled)
      return internal::UnknownHandler(images.txn(), record.runtime_handler);
    before_put.reset();
    if (impl.trace && row.pulled) {
      before_put = internal::RecordOf(row, images.txn().clocks(), images.txn().now());
    }
    internal::PulledPart part{.last_updated = record.last_updated,
                              .entries = record.credential_mapping,
                              .closed_because = record.closed_because,
                              .closed_by = internal::WordOfOperator(row),
                              .manifest_digest = record.manifest_digest,
                              .platform = record.platform,
                              .guest_platform = handler.guest_platform};
    if (part.closed_by == internal::ClosedBy::kNobody && !part.closed_because.empty()) {
      part.closed_by = internal::ClosedBy::kOther;
    }
    if (!handler.known) part.guest_platform = row.pulled->guest_platform;
    // Of what the caller gives, not of what is left of it.
    ImageRow given{.subject = home, .pulled = part};
    TRY(internal::CheckRowLimits(given));
    const ImageRow before = row;
    TRY(internal::GiveProofs(images, before, terms, impl.policy, part));
    // Replaced by what the caller puts, under whatever alias it was.
    row = internal::Present(std::move(row));
    row.absent = 0;
    row.ref = record.image_ref;
    if (images.learns_aliases()) internal::AddAlias(row, record.image_ref);
    row.pulled = std::move(part);
    TRY(images.Put(std::move(row), Images::Confirms::kYes));
    return images.ClearUnreadable(record.image_ref);
  };
  TRY(WriteCopy(impl, of_record, check, put));
  if (impl.trace) impl.trace->AddRecord(before_put ? &*before_put : nullptr, record);
  return Nothing();
}

Result<DeleteImage::Answer> Do(NodeStore& store, const DeleteImage& call, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  const ImageCopy copy = CopyOf(call);
  const auto erase = [&](Images& images, const FoundHandler& handler) -> Result<void> {
    const auto home = TRY(images.Home(copy.image_ref));
    auto row = images.Find(home, handler.stored);
    if (!row && row.error().code != ErrorCode::kDamaged) return row.error();
    if (row && (!*row || !(*row)->pulled)) return {};
    bool was_listed = false;
    if (row) {
      const auto was_known = TRY(images.WasListed((*row)->Ref()));
      was_listed = was_known || (*row)->listed;
      TRY(images.Unrecord(**std::move(row)));
    } else {
      TRY(images.Put(ImageRow{.subject = home, .runtime_handler = handler.stored},
                     Images::Confirms::kNo));
    }
    internal::NoteEvidenceRemoved(images.txn());
    // What it was about may be listed under another ref.
    return was_listed || !images.learns_aliases()
               ? Result<void>()
               : internal::OpenPullOfAnything(images.txn(), impl.boot_clock());
  };
  return Done(WriteCopy(impl, copy, CheckRef, erase));
}

Result<ListImages::Answer> Do(NodeStore& store, const ListImages& call, const Progress&) {
  ListImages::Answer answer;
  if (call.image_ref.empty()) {
    answer.records = TRY(store.ListRecords());
    std::ranges::sort(answer.records, {}, [](const ImagePulledRecord& record) {
      return std::tie(record.image_ref, record.runtime_handler);
    });
    answer.preloaded = TRY(store.ListLedger());
    answer.quarantined = TRY(store.ListQuarantine());
  } else {
    auto record = store.GetRecord(CopyOf(call));
    if (!record && record.error().code != ErrorCode::kNotFound) return record.error();
    if (record) answer.records.push_back(*std::move(record));
  }
  if (call.hashes) return answer;
  for (ImagePulledRecord& record : answer.records) {
    for (auto& [name, credentials] : record.credential_mapping) {
      for (ImagePullSecret& secret : credentials.kubernetes_secrets) {
        secret.credential_hash.clear();
      }
    }
  }
  return answer;
}

}  // namespace door

Result<bool> NodeStore::HasIntent(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<bool> {
    TRY(CheckIntent(copy));
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the intents");
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    const auto find = [&] {
      return snapshot.FindPull(internal::IntentKey(copy.image, PullId{}, snapshot.seed()),
                               [&](Payload payload) {
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

Result<std::vector<QuarantinedFile>> NodeStore::ListQuarantine() const {
  return ListTable(*impl_, Table::kQuarantine, "the quarantine entries",
                   internal::DecodeQuarantineValue);
}

Result<std::vector<ImagePreloadedRecord>> NodeStore::ListPreloaded() const {
  return ListTable(*impl_, Table::kPreloaded, "the preloaded records",
                   internal::DecodePreloadedValue);
}

}  // namespace waybill
