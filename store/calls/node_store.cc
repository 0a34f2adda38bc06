// Opening, closing, and what the other files of this folder share.

#include "store/calls/node_store.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "migrations/kubelet_files/kubelet_directory.h"
#include "migrations/steps/migrate.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/options.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/disk/trust.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/learn.h"
#include "store/images/observe.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/pull_row.h"
#include "store/opening/finish_pulls.h"
#include "store/opening/product.h"
#include "store/opening/stale.h"
#include "store/pods/pool.h"
#include "store/runtimes/runtime_handlers.h"
#include "waybill/values.h"

namespace waybill {

using internal::Committer, internal::Images, internal::ReaderPool, internal::StoreTxn,
    internal::Table;

namespace {

// LMDB has kMaxReaders slots for all processes. An observer takes more as it needs them.
constexpr std::size_t kObserverSlots = 4;
constexpr std::size_t kMaxGapImages = 1000;

// NodeStoreOptions::allow_empty. Where what an empty list lacks is retained, it loses nothing.
Result<void> CheckNotEmpty(const NodeStoreOptions& options, const Images& images, bool after_gap) {
  if (options.allow_empty || !options.images_on_node || !options.images_on_node->empty()) return {};
  if (images.learns_aliases() && options.evidence.remember.count() > 0) return {};
  const auto held = TRY(internal::CountHeld(images));
  const std::uint64_t intents = images.txn().state().digest(Table::kIntents).count;
  if (held.records + intents + held.preloaded == 0 && !after_gap) return {};
  std::string holds = "has to close those that were pulled unrecorded";
  if (held.records + intents + held.preloaded > 0) {
    holds = "holds " + internal::HowMany(held.records, "record") + " and " +
            internal::HowMany(intents, "intent");
    if (held.preloaded > 0) {
      holds += " and " + internal::HowMany(held.preloaded, "preloaded image");
    }
  }
  return internal::EmptyList("the list of images on the node is", holds, "nothing was replayed");
}

Result<void> CheckAge(const std::string& what, std::chrono::seconds age,
                      std::chrono::seconds least) {
  if (age >= least && age <= kMaxAge) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      what + " of " + std::to_string(age.count()) + " seconds is out of range; nothing was changed",
      "use " + std::to_string(least.count()) + " seconds to 10 years"};
}

// Mode::kKubelet: gives each image without a record under any handler one without credentials, and
// takes the gap back; other reasons stay.
Result<void> CloseGapByList(Images& images, const std::vector<ListedImage>& listed,
                            const std::vector<RuntimeHandler>& handlers, OpeningReport& report) {
  StoreTxn& txn = images.txn();
  for (const ListedImage& image : listed) {
    if (TRY(images.AnyRecorded(images.SubjectOf(image.id)))) continue;
    auto closed = TRY(images.Close(image.id, internal::StoredName(handlers, image.runtime_handler),
                                   "images may have been pulled that nobody recorded",
                                   internal::ClosedBy::kOther));
    if (!closed) continue;
    ++report.gap_closed;
    if (report.gap_images.size() == kMaxGapImages) continue;
    report.gap_images.push_back(!image.repo_tags.empty()      ? image.repo_tags.front()
                                : !image.repo_digests.empty() ? image.repo_digests.front()
                                                              : image.id);
  }
  report.gap_reason = internal::WithoutAdvice(report.gap_reason);
  auto in_force = TRY(internal::GapInForce(txn));
  return in_force.empty() ? Result<void>() : internal::TakeBackDistrust(txn, in_force);
}

// A full store opens all the same: what could not be written keeps images closed.
bool GoesOnWhenFull(const Result<void>& done, const std::string& consequence,
                    OpeningReport& report) {
  if (done) return true;
  if (done.error().code != ErrorCode::kStoreFull) return false;
  report.warnings.push_back("the store is full, so " + consequence);
  return true;
}

// What of judging the list other fields of the report tell, too.
void TakeOpeningReport(const ClassifyReport& observed, OpeningReport& report) {
  if (!report.after_gap) return;
  report.gap_reason = internal::WithoutAdvice(report.gap_reason);
  report.gap_closed = observed.closed;
  for (const ClassifiedImage& image : observed.judged) {
    if (!image.preloaded) report.gap_images.push_back(image.name);
  }
}

// Why images may have been pulled that nobody recorded; empty: nothing says so.
Result<internal::Distrust> FindGap(const StoreTxn& txn, const NodeStoreOptions& options,
                                   const std::string& newly_written) {
  const bool closed = options.rules == Mode::kStrict;
  if (options.gap != Gap::kNo) {
    auto in_force = TRY(internal::GapInForce(txn));
    if (!in_force.empty()) return in_force;
    if (options.gap == Gap::kYes) return internal::GapBecause("requested with --after-gap");
    if (!newly_written.empty()) return internal::GapOfFile(newly_written);
  }
  const bool closes = closed && txn.state().awaits_first_list;
  return closes && options.first_start == FirstStart::kClose
             ? internal::GapBecause("the first start closes what nobody recorded")
             : internal::Distrust();
}

// Whoever goes on with what others do does not change the rules of the store.
Result<void> EnterMode(Images& images, const NodeStoreOptions& options, bool created) {
  StoreTxn& txn = images.txn();
  const bool is_kubelet = options.rules == Mode::kKubelet;
  if (txn.state().kubelet_rules == is_kubelet) return {};
  if (options.continues_pulls && !created) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string("the store is used in mode `") + (is_kubelet ? "strict" : "kubelet") +
                     "`; nothing was changed",
                 "go on in that mode; a restart in another one changes it, and everything that is "
                 "not known by then is closed afterwards"};
  }
  // Whoever presumed what is preloaded recorded no evidence of it.
  if (!is_kubelet && options.gap != Gap::kNo) {
    TRY(internal::NoteGap(txn,
                          internal::GapBecause("the store was used under the rules `kubelet`")));
  }
  txn.state().kubelet_rules = is_kubelet;
  txn.Touch();
  return internal::ChangeMode(images);
}

UserNamespaceOptions PoolOf(const Settings& settings) {
  return {.enabled = settings.pool.enabled, .pool = settings.pool.ids};
}

}  // namespace

Result<std::unique_ptr<NodeStore::Impl>> NodeStore::Impl::OpenOwner(NodeStoreOptions options) {
  if (options.max_age && options.max_age->count() != 0) {
    TRY(CheckAge("a maximum age", *options.max_age, kMinAge));
  }
  TRY(CheckAge("a memory of revocations", options.revocations_kept, std::chrono::hours(24)));
  if (options.runtime_handlers) {
    TRY(internal::CheckRuntimeHandlers(*options.runtime_handlers));
  }
  if (options.user_namespaces.enabled) {
    TRY(CheckIdPool(options.user_namespaces.pool));
  }
  // A missing directory would pass for one without pods.
  if (!options.pods_directory.empty()) {
    auto there = TRY(internal::Exists(options.pods_directory));
    if (!there) {
      return Error{ErrorCode::kNotFound,
                   "there is no directory of pods " + options.pods_directory.string() +
                       "; nothing was changed",
                   "by convention it is pods/ in the kubelet directory"};
    }
  }
  std::unique_ptr<Impl> impl(new Impl(options));
  impl->is_owner_ = true;
  impl->owned = TRY(internal::OpenNewest(options, internal::NodeProduct(), impl->report));
  if (!options.chooses && !impl->report.created) {
    const internal::State& state = impl->owned->state;
    options.rules = state.kubelet_rules ? Mode::kKubelet : Mode::kStrict;
    impl->rules = options.rules;
    const auto chosen = internal::Chosen::Of(impl->owned->database.identity.settings);
    impl->policy = chosen.policy;
    impl->user_namespaces = PoolOf(chosen.settings);
  }
  TRY(impl->FinishOpening(options));
  impl->OpenTrace(options);
  return impl;
}

void NodeStore::Impl::OpenTrace(const NodeStoreOptions& options) {
  if (options.trace.path.empty()) return;
  // There it would keep a lost store from being made anew.
  if (internal::IsBelow(options.trace.path, directory)) {
    report.warnings.push_back("no trace is written: " + options.trace.path.string() +
                              " lies in the store's directory; name a file elsewhere");
    return;
  }
  auto opened = internal::TraceWriter::Open(options.trace, options.clock);
  if (!opened) {
    report.warnings.push_back("no trace is written: " + opened.error().ToString());
    return;
  }
  trace = *std::move(opened);
  trace->Add({.kind = TraceEvent::Kind::kStart});
  if (options.images_on_node) trace->AddList(*options.images_on_node);
}

Result<void> NodeStore::Impl::FinishOpening(const NodeStoreOptions& options) {
  Committer::Hooks hooks;
  hooks.clock = options.clock;
  hooks.boot_clock = options.boot_clock;
  hooks.undo = &undo;
  hooks.before_commit = [this](StoreTxn& txn) {
    txn.state().last_list = std::max(txn.state().last_list, last_list.commit);
    return Result<void>();
  };
  hooks.committed = [this](std::uint64_t) { aliases.Publish(); };
  MakeCommitter(std::move(hooks), boot_clock, options.flushes_twice);

  // Before anything is imported; Replay checks again afterwards.
  TRY(WriteImages(*this, [&](Images& images) {
    return CheckNotEmpty(options, images, options.gap == Gap::kYes);
  }));
  // So that nothing is looked for, or imported, where the former mode had it.
  // Until all is done nobody goes by the new mode and the former policy.
  const bool changes_mode = committer->state().kubelet_rules != (rules == Mode::kKubelet);
  TRY(WriteImages(*this, [&](Images& images) -> Result<void> {
    TRY(EnterMode(images, options, report.created));
    return changes_mode ? images.txn().PutSettings(internal::kStrictestSettings) : Result<void>();
  }));
  if (changes_mode) owned->database.identity.settings = internal::kStrictestSettings;
  if (auto r = OpenRevocations(options); !r) return r;
  // Before any step that may fail: the next opening may name no directory.
  if (auto r = OpenUserNamespaces(options); !r) return r;
  if (options.runtime_handlers) {
    report.runtimes = TRY(WriteImages(*this, [&](Images& images) {
      return internal::ReplaceHandlers(images, *options.runtime_handlers, options.allow_empty);
    }));
  }
  if (!options.kubelet_directory.empty()) TRY(TakeOver(options));
  // A command says nothing of the kubelet that may run.
  if (!options.continues_pulls) {
    TRY(DropOldRevocations(
        options.kubelet_directory.empty() ? options.kubelet_files : options.kubelet_directory,
        options.revocations_kept));
  }
  if (auto r = Replay(options); !r) return r;
  if (auto r = CountPulls(report.intents_left); !r) return r;

  // Last, so that an opening that fails has loosened nothing.
  if (options.chooses || report.created) TRY(KeepSettings());
  const internal::State state = committer->state();
  NoteToken(state.commit_sequence);
  opened_at = state.commit_sequence;
  TRY(WriteImages(*this, [&](const Images& images) -> Result<void> {
    const auto held = TRY(internal::CountHeld(images));
    report.records = held.records;
    return {};
  }));
  report.quarantine_entries = state.digest(Table::kQuarantine).count;
  report.commit_sequence = state.commit_sequence;
  report.distrustful = state.distrustful;
  if (owned->witness) TRY(owned->witness->Sync());
  opened_when = clock();
  write_backs =
      std::make_unique<internal::WriteBackQueue>(*committer, aliases, rules, write_back_counts);
  rows_at_once = std::max<std::size_t>(options.rows_at_once, 1);
  if (const auto finished = FinishRevocations(); !finished) {
    report.warnings.push_back(finished.error().message);
  }
  return Announce(Table::kImages);
}

Result<void> NodeStore::Impl::TakeOver(const NodeStoreOptions& options) {
  const std::filesystem::path witness = internal::WitnessIn(options.kubelet_directory);
  const bool before =
      !report.created && (committer->state().digest(Table::kKubeletFiles).count > 0 ||
                          internal::IsSameFile(owned->witness_path_before, witness));
  // Where the witness came there now, that was the take-over.
  const bool by_witness = internal::IsSameFile(owned->database.identity.witness_path, witness);
  return internal::ImportKubeletDirectory(
      *committer, aliases, options.kubelet_directory,
      {.rules = rules,
       .taken_over_before = before && internal::DetectsGap(options),
       .created = report.created,
       .first = !report.created && !before && !by_witness && internal::DetectsGap(options),
       .on_error = internal::OnReadErrorIn(options),
       .now = boot_clock(),
       .images_on_node = options.images_on_node ? &*options.images_on_node : nullptr},
      options.import_progress, report.import);
}

Result<void> NodeStore::Impl::CountPulls(std::uint64_t& count) {
  count = TRY(WriteAndGet(*this, internal::CountOpenPulls));
  return {};
}

// A commit copies the pages that it changes, and a full store has no room for all of them at once.
Result<void> NodeStore::Impl::EndRunningPulls() {
  auto at_most = std::max<std::uint64_t>(committer->state().digest(Table::kIntents).count, 1);
  for (;;) {
    auto ended = WriteAndGet(*this, [&](StoreTxn& txn) {
      return internal::EndRunningPulls(txn, boot_clock(), at_most);
    });
    if (ended) {
      if (*ended < at_most) return {};
    } else if (ended.error().code != ErrorCode::kStoreFull || at_most == 1) {
      return ended.error();
    } else {
      at_most /= 2;
    }
  }
}

Result<void> NodeStore::Impl::Replay(const NodeStoreOptions& options) {
  report.replay_skipped = !options.images_on_node.has_value();
  if (auto r = CountPulls(report.intents_found); !r) return r;
  const OpeningReport before = report;
  auto replayed = WriteImages(*this, [&](Images& images) -> Result<void> {
    StoreTxn& txn = images.txn();
    report = before;  // the change may run twice
    auto gap = TRY(FindGap(txn, options, report.import.newly_written));
    report.gap_reason = gap.reason;
    report.after_gap = !gap.empty();
    TRY(CheckNotEmpty(options, images, report.after_gap));
    // Noted first: what closes a gap takes it back.
    if (report.after_gap) {
      TRY(internal::NoteGap(txn, {DegradedKind::kGap, report.gap_reason}));
    }
    if (rules == Mode::kStrict || !options.images_on_node) return {};
    auto handlers = TRY(internal::ReadRuntimeHandlers(txn));
    std::vector<ListedImage> listed = *options.images_on_node;
    for (ListedImage& image : listed) {
      // No record can have such a name. Without it, the image may belong to any handler.
      if (image.runtime_handler.size() > kMaxRuntimeHandlerBytes) image.runtime_handler.clear();
    }
    auto done = internal::ReplayIntents(images, listed, internal::NameOfDefault(handlers), report);
    if (!done || !report.after_gap) return done;
    return CloseGapByList(images, listed, handlers, report);
  });
  if (!replayed || rules == Mode::kKubelet) return replayed;
  if (!options.continues_pulls && options.ends_running_pulls) {
    auto ended = EndRunningPulls();
    if (!GoesOnWhenFull(ended, "pulls of an earlier process count as running", report)) {
      return ended;
    }
  }
  const OpeningReport before_list = report;
  auto judged = WriteImages(*this, [&](Images& images) {
    report = before_list;
    return ObserveAtOpening(images, options);
  });
  if (judged) return judged;
  report = before_list;
  return GoesOnWhenFull(judged, "the list of images was not judged", report) ? Result<void>()
                                                                             : judged;
}

Result<void> NodeStore::Impl::ObserveAtOpening(Images& images, const NodeStoreOptions& options) {
  StoreTxn& txn = images.txn();
  const internal::Observing observing{.options = evidence,
                                      .now = boot_clock(),
                                      .allow_empty = options.allow_empty,
                                      .preloaded = preloaded ? &*preloaded : nullptr};
  if (options.images_on_node) {
    report.first_start = txn.state().awaits_first_list && !txn.state().distrustful;
    ImageList list;
    list.images = *options.images_on_node;
    list.complete = true;
    auto judged = TRY(internal::ObserveList(images, list, observing));
    TakeOpeningReport(judged, report);
    report.observed = std::move(judged);
  }
  if (report.import.preloaded == 0) return {};
  auto entered = internal::JudgeObservedPreloaded(images, observing);
  return entered ? Result<void>() : entered.error();
}

Result<std::unique_ptr<NodeStore::Impl>> NodeStore::Impl::OpenObserver(
    const ObserveOptions& options) {
  NodeStoreOptions known{.directory = options.directory, .witness = Witness::None()};
  known.clock = options.clock;
  known.boot_clock = options.boot_clock;
  std::unique_ptr<Impl> impl(new Impl(known));
  impl->demands_ = {options.asks_witness, options.needs_slot};
  impl->shows_all_proofs_ = options.shows_all_proofs;
  TRY(impl->OpenFiles());
  // Before the first reading: that may let these files go, if an owner replaces them meanwhile.
  impl->report.copy_of = internal::OriginalOf(impl->observed->identity, impl->directory).string();
  Settings settings;
  if (const ReaderPool::Lease snapshot = impl->Read()) {
    settings = impl->ChosenIn(snapshot)->settings;
  }
  impl->user_namespaces = PoolOf(settings);
  impl->evidence.short_names = options.short_names.value_or(
      settings.short_names_anywhere ? ShortNames::kAnywhere : ShortNames::kDockerHub);
  return impl;
}

Result<void> NodeStore::Impl::OpenFiles() {
  auto opened =
      TRY(internal::OpenAsObserver(directory, internal::NodeProduct(), demands_, seen_unowned_));
  observed.emplace(std::move(opened));
  chosen_.store({});
  readers.Attach(*observed->env, observed->handles, observed->identity.hash_seed,
                 ReaderPool::Keep::kNothing, kObserverSlots, Table::kImages);
  return {};
}

NodeStore::Impl::~Impl() { static_cast<void>(Close()); }

Result<void> NodeStore::Impl::Close() noexcept {
  StopServing();  // before all else: what clients asked for may run
  closed_ = true;
  Result<void> result;
  if (write_backs) result = Guarded([this] { return write_backs->Flush(); });
  // The object stays: a decision may be about to note something.
  if (trace) trace->Stop();
  write_backs.reset();
  auto let_go = LetGo();
  return result ? let_go : result;
}

bool NodeStore::Impl::FilesAreCurrent() {
  const std::shared_lock lock(observed_mutex, std::try_to_lock);
  return lock.owns_lock() && observed && observed->IsCurrent();
}

bool NodeStore::Impl::OwnsStill() {
  if (committer->failed()) return false;
  return owned->database.files->LookedThisTick() || committer->CheckOwnership();
}

bool NodeStore::Impl::Reopen() {
  const std::unique_lock lock(observed_mutex, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  // What was read before may be torn: Close says so.
  if (observed && observed->without_slot.valid()) return false;
  if (observed) observed->files->ExtendLockFile();
  readers.Detach();
  observed.reset();
  return OpenFiles().has_value();
}

ReaderPool::Lease NodeStore::Impl::Read() {
  if (closed_) return {};
  if (is_owner_) return OwnsStill() ? readers.Acquire() : ReaderPool::Lease();
  if (FilesAreCurrent()) {
    // If the owner has enlarged the map since, LMDB needs the file reopened.
    if (ReaderPool::Lease lease = readers.Acquire()) return lease;
  }
  return Reopen() ? readers.Acquire() : ReaderPool::Lease();
}

Result<void> NodeStore::Impl::Write(Committer::Change change) noexcept {
  return Guarded([&]() -> Result<void> {
    if (!committer) return NotOwner();
    if (StoreTxn* const joined = Joined::Of(*this)) return change(*joined);
    // A credential that was queued before must not be merged into what this change writes.
    if (write_backs && write_backs->busy()) write_backs->WaitForAll();
    return committer->Run(
        [&](StoreTxn& txn) -> Result<void> { return Guarded([&] { return change(txn); }); });
  });
}

Result<void> NodeStore::Impl::Write(Committer::Change change,
                                    const ChangeOptions& options) noexcept {
  if (!options.dry_run) return Write(change);
  // What is undone would be the whole commit.
  if (Joined::Of(*this) != nullptr) {
    return Error{ErrorCode::kInvalidArgument, "a dry run is no part of a commit"};
  }
  bool succeeded = false;
  auto written = Write([&](StoreTxn& txn) -> Result<void> {
    succeeded = false;  // the change may run twice
    if (auto r = change(txn); !r) return r;
    succeeded = true;
    // A change that fails is undone, in memory too.
    return Error{ErrorCode::kInterrupted, "it was a dry run"};
  });
  if (succeeded && !written && written.error().code == ErrorCode::kInterrupted) return {};
  return written;
}

Result<void> CheckImageRef(std::string_view image_ref) {
  if (!image_ref.empty()) return CheckLength("image ref", image_ref, kMaxImageRefBytes);
  return Error{ErrorCode::kInvalidArgument, "the image ref is empty; nothing was changed",
               "name the image by its ID or a repo digest"};
}

NodeStore::NodeStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Requests of clients call this object, so they end while it is whole.
NodeStore::~NodeStore() {
  if (impl_) impl_->StopServing();
}
NodeStore::NodeStore(NodeStore&& other) noexcept = default;

Result<std::unique_ptr<NodeStore>> NodeStore::Open(NodeStoreOptions options) {
  return Guarded([&]() -> Result<std::unique_ptr<NodeStore>> {
    auto impl = TRY(Impl::OpenOwner(std::move(options)));
    std::unique_ptr<NodeStore> store(new NodeStore(std::move(impl)));
    OpeningReport& report = store->impl_->report;
    if (report.distrustful) {
      auto trust = store->GetTrust();
      if (trust) report.distrust_reason = internal::LastReasonOf(trust->journal);
    }
    return store;
  });
}

Result<std::unique_ptr<NodeStore>> NodeStore::Observe(ObserveOptions options) {
  return Guarded([&]() -> Result<std::unique_ptr<NodeStore>> {
    auto impl = TRY(Impl::OpenObserver(options));
    return std::unique_ptr<NodeStore>(new NodeStore(std::move(impl)));
  });
}

Result<void> NodeStore::Close() { return impl_->Close(); }
const OpeningReport& NodeStore::recovery_report() const { return impl_->report; }

}  // namespace waybill
