// StreamingStore: opening, preparing, consuming.
//
// What makes a token open once: Consume deletes its row in the same transaction that reads it, and
// returns the request only after that is committed. What makes it open never again: rows are
// neither carried over nor put back by anything, and an opening that can't be sure that the store
// is the newest deletes them all.

#include "store/streaming/streaming_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "migrations/steps/migrate.h"
#include "store/base/caught.h"
#include "store/base/empty_list.h"
#include "store/base/hex.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/engine/database/committer.h"
#include "store/engine/database/reader_pool.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/unfinished_commit.h"
#include "store/engine/recovery/verify.h"
#include "store/engine/trust/trust.h"
#include "store/streaming/sealed_request.h"
#include "store/streaming/streaming_product.h"
#include "store/streaming/streaming_table.h"
#include "waybill/values.h"

namespace waybill {

using internal::Committer, internal::Key16, internal::Lookup, internal::Payload,
    internal::ReaderPool, internal::StoreTxn, internal::StreamingRow, internal::StreamToken,
    internal::Table;

namespace {

constexpr std::chrono::nanoseconds kShortestLife = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds kLongestLife = std::chrono::hours(1);

Result<void> CheckStreamingOptions(const StreamingOptions& options) {
  if (options.time_to_live < kShortestLife || options.time_to_live > kLongestLife) {
    return Error{ErrorCode::kInvalidArgument,
                 "a time to live of " +
                     std::to_string(
                         std::chrono::duration_cast<std::chrono::milliseconds>(options.time_to_live)
                             .count()) +
                     " ms is out of range; nothing was changed",
                 "use 1 second to 1 hour"};
  }
  if (options.max_open == 0 || options.max_open > kMaxOpenStreams) {
    return Error{ErrorCode::kInvalidArgument,
                 std::to_string(options.max_open) +
                     " open streaming requests is out of range; nothing was changed",
                 "use 1 to " + std::to_string(kMaxOpenStreams)};
  }
  return {};
}

// Whether it may still open a stream. A time that lies ahead is of another boot, or made up.
bool IsOpen(const StreamingRow& row, const BootTime& now) {
  return row.boot == now.boot_id && row.prepared <= now.nanoseconds &&
         now.nanoseconds <= row.expires;
}

}  // namespace

class StreamingStore::Impl {
 public:
  enum class Start : std::uint8_t { kRestart, kContinue };
  static Result<std::unique_ptr<Impl>> OpenOwner(StreamingOptions options, Start start);
  static Result<std::unique_ptr<Impl>> OpenObserver(const std::filesystem::path& directory,
                                                    BootClock boot_clock, bool needs_slot);
  ~Impl() { static_cast<void>(Close()); }
  Result<void> Close() noexcept;

  Result<std::string> Prepare(const StreamRequest& request);
  Result<StreamRequest> Consume(std::string_view token, StreamKind kind);
  Result<std::vector<OpenStream>> List();
  StreamingCounters Count();
  Result<VerifyReport> Verify(const Progress& progress);

  StreamingReport report;

 private:
  enum Counter : std::uint8_t {
    kPrepared,
    kPrepareInvalid,
    kPrepareFull,
    kPrepareFailed,
    kConsumed,
    kRefusedUnknown,
    kRefusedExpired,
    kRefusedKind,
    kConsumeFailed,
    kCounters,
  };
  // A row: when it expires, and its key.
  using Expiry = std::pair<std::int64_t, Key16>;

  explicit Impl(StreamingOptions options)
      : options_(std::move(options)), directory_(options_.directory) {}

  Result<void> FinishOpening(Start start);
  // Deletes the rows of tokens that are void, and notes when the others expire.
  Result<void> VoidTokens(Start start, StoreTxn& txn);
  Result<void> Write(Committer::Change change);
  Result<std::string> PrepareUncounted(const StreamRequest& request);
  // `refused` is the counter of a kNotFound.
  Result<StreamRequest> ConsumeUncounted(std::string_view text, StreamKind kind, Counter& refused);
  // Why the row is refused, if it is.
  std::optional<Counter> Refusal(const StreamingRow& row, const internal::Sha256Digest& token,
                                 StreamKind kind, const BootTime& now) const;
  Error NotFound() const;
  Error NotOwner() const;
  Error Closed() const;
  Error Unreadable(const ReaderPool::Lease& none) const;
  Error Full(std::int64_t now);
  // False: without the rows that expired before `now`, as many are open as may be.
  bool FindRoom(std::int64_t now, std::vector<Expiry>& expired);
  const internal::StoreUuid& uuid() const { return owned_->database.identity.uuid; }

  const StreamingOptions options_;
  const std::filesystem::path directory_;
  ReaderPool readers_;
  std::array<std::atomic<std::uint64_t>, kCounters> counters_{};

  // Owner only, else empty.
  std::optional<internal::OwnedStore> owned_;
  std::unique_ptr<internal::CommitMark> mark_;
  std::unique_ptr<Committer> committer_;
  std::mutex expiries_mutex_;
  // Of every row on the disk, but for changes under way. Guarded by expiries_mutex_.
  std::set<Expiry> expiries_;

  std::optional<internal::OpenedDatabase> observed_;
  bool closed_ = false;
};

Result<std::unique_ptr<StreamingStore::Impl>> StreamingStore::Impl::OpenOwner(
    StreamingOptions options, Start start) {
  TRY(CheckStreamingOptions(options));
  NodeStoreOptions open{.directory = options.directory,
                        .create_if_missing = options.create_if_missing,
                        .witness = options.witness};
  open.boot_clock = options.boot_clock;
  open.clock = options.clock;
  open.migrate = options.migrate;
  open.skip_unreadable = options.skip_unreadable;
  open.flushes_twice = options.flushes_twice;
  open.map_bytes = options.map_bytes;
  open.gap = Gap::kNo;
  open.continues_pulls = start == Start::kContinue;
  std::unique_ptr<Impl> impl(new Impl(std::move(options)));
  impl->owned_ =
      TRY(internal::OpenNewest(open, internal::StreamingProduct(), impl->report.recovery));
  TRY(impl->FinishOpening(start));
  return impl;
}

Result<void> StreamingStore::Impl::FinishOpening(Start start) {
  internal::OpenedDatabase& opened = owned_->database;
  // Before a mark is made: the next opening would believe it, and keep what this one did not get to
  // make void.
  if (!owned_->had_mark) {
    NodeStoreOptions opening{.directory = directory_, .witness = options_.witness};
    opening.clock = options_.clock;
    TRY(internal::CommitAtOpening(opening, *owned_,
                                  [&](StoreTxn& txn) { return VoidTokens(start, txn); }));
  }
  Committer::Hooks hooks;
  hooks.clock = options_.clock;
  hooks.still_owned = [&opened](Committer::When when) {
    return internal::CheckStillOwned(opened, when);
  };
  hooks.committed = [this](std::uint64_t sequence) {
    readers_.DropOldSnapshots();
    if (owned_->witness) owned_->witness->Advance(sequence);
  };
  mark_ = internal::MarkFor(directory_, owned_->line, options_.boot_clock, options_.flushes_twice);
  hooks.mark = mark_.get();
  committer_ = std::make_unique<Committer>(*opened.env, opened.handles, opened.identity,
                                           owned_->state, std::move(hooks));
  if (owned_->had_mark) {
    TRY(committer_->Run([&](StoreTxn& txn) { return VoidTokens(start, txn); }));
  }
  const internal::State state = committer_->state();
  // From the first token on. Without it, the next opening makes them void.
  if (!mark_->is_lost()) {
    static_cast<void>(mark_->Begin(state.commit_sequence, state.commit_sequence).has_value());
  }
  report.recovery.commit_sequence = state.commit_sequence;
  report.recovery.distrustful = state.distrustful;
  if (owned_->witness) TRY(owned_->witness->Sync());
  readers_.Attach(*opened.env, opened.handles, opened.identity.hash_seed,
                  ReaderPool::Keep::kUntilNextCommit, ReaderPool::kSlots, Table::kStreamingTokens);
  return owned_->lock.AnnounceRecovered(opened.database_id, std::nullopt);
}

Result<void> StreamingStore::Impl::VoidTokens(Start start, StoreTxn& txn) {
  const BootTime now = options_.boot_clock();
  report.voided = 0;  // the change may run twice
  report.void_reason.clear();
  std::set<Expiry> kept;
  const bool was_distrustful = txn.state().distrustful;
  if (was_distrustful) {
    auto reasons = TRY(internal::ReasonsOfDistrust(txn));
    report.void_reason = reasons.empty() ? "the store is distrustful" : reasons.front().reason;
    for (const internal::Distrust& why : reasons) TRY(internal::TakeBackDistrust(txn, why));
    // Its journal can't be read.
    if (txn.state().distrustful) {
      TRY(internal::SetTrust(txn, "every streaming token is void"));
    }
  } else if (now.boot_id == BootTime().boot_id) {
    report.void_reason = "the system does not say which boot this is";
  } else if (start == Start::kRestart && !options_.keeps_tokens) {
    report.void_reason = "the streaming server restarted";
  } else if (!report.recovery.copy_of.empty()) {
    report.void_reason = "the store is a copy of the one in " + report.recovery.copy_of;
  } else if (!owned_->had_mark) {
    report.void_reason = "commit.mark is gone, so the store may be an older copy";
  }
  std::vector<Key16> gone;
  TRY(txn.ForEach(Table::kStreamingTokens, [&](const Key16& key, Payload payload) -> Result<bool> {
    const auto row = payload.empty() ? std::nullopt : internal::DecodeStreamingRow(payload);
    const bool is_open = row && IsOpen(*row, now);
    if (is_open && report.void_reason.empty()) {
      kept.emplace(row->expires, key);
      return true;
    }
    gone.push_back(key);
    const bool has_expired = row && row->boot == now.boot_id && row->expires < now.nanoseconds;
    if (!has_expired) ++report.voided;
    return true;
  }));
  for (const Key16& key : gone) TRY(txn.Delete(Table::kStreamingTokens, key));
  report.open = kept.size();
  const std::lock_guard lock(expiries_mutex_);
  expiries_ = std::move(kept);
  return {};
}

Result<std::unique_ptr<StreamingStore::Impl>> StreamingStore::Impl::OpenObserver(
    const std::filesystem::path& directory, BootClock boot_clock, bool needs_slot) {
  std::unique_ptr<Impl> impl(
      new Impl({.directory = directory, .witness = Witness::None(), .boot_clock = boot_clock}));
  internal::SeenUnowned unused;
  auto opened = TRY(internal::OpenAsObserver(directory, internal::StreamingProduct(),
                                             {.needs_slot = needs_slot}, unused));
  impl->observed_.emplace(std::move(opened));
  const internal::OpenedDatabase& database = *impl->observed_;
  impl->readers_.Attach(*database.env, database.handles, database.identity.hash_seed,
                        ReaderPool::Keep::kNothing, 1, Table::kStreamingTokens);
  return impl;
}

Result<void> StreamingStore::Impl::Close() noexcept {
  if (closed_) return {};
  closed_ = true;
  if (owned_) owned_->database.files->ExtendLockFile();
  if (observed_) observed_->files->ExtendLockFile();
  readers_.Detach();
  Result<void> result;
  if (observed_) result = observed_->CheckUnchanged();
  if (owned_) result = internal::SettleAtClose(*owned_, committer_.get(), mark_.get());
  committer_.reset();
  mark_.reset();
  owned_.reset();
  observed_.reset();
  return result;
}

Result<void> StreamingStore::Impl::Write(Committer::Change change) {
  // What is thrown fails this change, not others in its transaction.
  return committer_->Run([&](StoreTxn& txn) -> Result<void> {
    return internal::Guarded([&] { return change(txn); });
  });
}

// --- Preparing -----------------------------------------------------------------------------------

bool StreamingStore::Impl::FindRoom(std::int64_t now, std::vector<Expiry>& expired) {
  const std::lock_guard lock(expiries_mutex_);
  for (const Expiry& one : expiries_) {
    if (one.first >= now) break;
    expired.push_back(one);
  }
  return expiries_.size() - expired.size() < options_.max_open;
}

Error StreamingStore::Impl::Full(std::int64_t now) {
  const std::lock_guard lock(expiries_mutex_);
  auto first = expiries_.begin();
  while (first != expiries_.end() && first->first < now) ++first;
  const auto live = static_cast<std::size_t>(std::distance(first, expiries_.end()));
  Error error{ErrorCode::kLimitExceeded,
              internal::HowMany(live, "streaming request") + " in " + directory_.string() +
                  " wait for their clients, and " + std::to_string(options_.max_open) +
                  " may; nothing was changed",
              "try again when the first of them has expired, or allow more"};
  // With fewer allowed than before, several must expire. With none too many, others were faster.
  const std::size_t too_many = live >= options_.max_open ? live - options_.max_open : 0;
  if (live > 0) std::advance(first, too_many);
  const std::int64_t wait = live > 0 ? first->first - now + 1 : kShortestLife.count();
  error.retry_after = std::chrono::nanoseconds(wait);
  return error;
}

Result<std::string> StreamingStore::Impl::PrepareUncounted(const StreamRequest& request) {
  if (closed_) return Closed();
  if (!committer_) return NotOwner();
  TRY(CheckStreamRequest(request));
  const BootTime now = options_.boot_clock();
  constexpr std::int64_t kLastTime =
      std::numeric_limits<std::int64_t>::max() - kLongestLife.count();
  if (now.nanoseconds < 0 || now.nanoseconds > kLastTime) {
    return Error{ErrorCode::kInternal,
                 "the boot clock says an impossible time; nothing was changed"};
  }
  std::vector<Expiry> expired;
  if (!FindRoom(now.nanoseconds, expired)) return Full(now.nanoseconds);
  auto token = TRY(StreamToken::Draw());
  std::string text = token.ToString();  // moved out below: then memory may not run out
  auto digest = internal::Sha256(text);
  if (!digest) return digest.error();
  StreamingRow row;
  row.token_sha256 = *digest;
  row.kind = request.kind;
  row.boot = now.boot_id;
  row.prepared = now.nanoseconds;
  row.expires = now.nanoseconds + options_.time_to_live.count();
  row.prepared_at = options_.clock();
  auto sealed = TRY(internal::SealRequest(token, uuid(), row, request));
  row.sealed = sealed;  // which it only refers to
  const std::vector<std::uint8_t> payload = internal::EncodeStreamingRow(row);
  const Key16 key = internal::StreamingKey(*digest);
  std::set<Expiry> mine = {{row.expires, key}};  // afterwards memory may run out
  TRY(Write([&](StoreTxn& txn) -> Result<void> {
    for (const Expiry& one : expired) TRY(txn.Delete(Table::kStreamingTokens, one.second));
    if (txn.state().digest(Table::kStreamingTokens).count >= options_.max_open) {
      return Full(now.nanoseconds);
    }
    if (TRY(txn.PutNew(Table::kStreamingTokens, key, payload))) return {};
    return Error{ErrorCode::kConflict, "another token has the same key; nothing was changed",
                 "try again: the next one has another"};
  }));
  const std::lock_guard lock(expiries_mutex_);
  for (const Expiry& one : expired) expiries_.erase(one);
  expiries_.merge(mine);
  return text;
}

Result<std::string> StreamingStore::Impl::Prepare(const StreamRequest& request) {
  auto token = PrepareUncounted(request);
  Counter counter = kPrepared;
  if (!token) {
    const Error& error = token.error();
    counter = error.retry_after.count() > 0 ? kPrepareFull
              : error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kLimitExceeded
                  ? kPrepareInvalid
                  : kPrepareFailed;
  }
  counters_[counter].fetch_add(1, std::memory_order_relaxed);
  return token;
}

// --- Consuming -----------------------------------------------------------------------------------

Error StreamingStore::Impl::NotFound() const {
  return {ErrorCode::kNotFound, "no stream waits under this token; nothing was changed",
          "ask for the stream again: a token opens one, once, and not for long"};
}

std::optional<StreamingStore::Impl::Counter> StreamingStore::Impl::Refusal(
    const StreamingRow& row, const internal::Sha256Digest& token, StreamKind kind,
    const BootTime& now) const {
  if (row.token_sha256 != token) return kRefusedUnknown;
  if (!IsOpen(row, now)) return kRefusedExpired;
  if (row.kind != kind) return kRefusedKind;
  return std::nullopt;
}

Result<StreamRequest> StreamingStore::Impl::ConsumeUncounted(std::string_view text, StreamKind kind,
                                                             Counter& refused) {
  if (closed_) return Closed();
  if (!committer_) return NotOwner();
  const auto token = StreamToken::Parse(text);
  if (!token) return NotFound();
  auto digest = TRY(internal::Sha256(text));
  const Key16 key = internal::StreamingKey(digest);
  const BootTime now = options_.boot_clock();
  const auto damaged = [&] {
    return Error{ErrorCode::kDamaged,
                 "what is stored of the streaming token " + StreamTokenId(text) + " in " +
                     directory_.string() + " can't be read; nothing was changed",
                 "ask for the stream again; the next opening removes it"};
  };
  // What is refused does not wait for the disk. What can't be read here may be read below.
  if (const ReaderPool::Lease snapshot = readers_.Acquire()) {
    Payload payload;
    const Lookup found = snapshot.Get(Table::kStreamingTokens, key, payload);
    if (found == Lookup::kAbsent) return NotFound();
    const auto row = found == Lookup::kFound ? internal::DecodeStreamingRow(payload) : std::nullopt;
    if (row) {
      if (const auto why = Refusal(*row, digest, kind, now)) {
        refused = *why;
        return NotFound();
      }
    }
  }
  std::optional<StreamRequest> request;
  Expiry expiry;
  TRY(Write([&](StoreTxn& txn) -> Result<void> {
    auto payload = txn.Get(Table::kStreamingTokens, key);
    if (!payload) {
      return payload.error().code == ErrorCode::kDamaged ? damaged() : payload.error();
    }
    if (!*payload) return NotFound();
    const auto row = internal::DecodeStreamingRow(**payload);
    if (!row) return damaged();
    if (const auto why = Refusal(*row, digest, kind, now)) {
      refused = *why;
      return NotFound();
    }
    auto unsealed = TRY(internal::UnsealRequest(*token, uuid(), *row));
    expiry = {row->expires, key};
    TRY(txn.Delete(Table::kStreamingTokens, key));
    request = std::move(unsealed);
    return {};
  }));
  {
    const std::lock_guard lock(expiries_mutex_);
    expiries_.erase(expiry);
  }
  return *std::move(request);
}

Result<StreamRequest> StreamingStore::Impl::Consume(std::string_view text, StreamKind kind) {
  Counter refused = kRefusedUnknown;
  auto request = ConsumeUncounted(text, kind, refused);
  const Counter counter = request                                        ? kConsumed
                          : request.error().code == ErrorCode::kNotFound ? refused
                                                                         : kConsumeFailed;
  counters_[counter].fetch_add(1, std::memory_order_relaxed);
  return request;
}

// --- Looking -------------------------------------------------------------------------------------

Error StreamingStore::Impl::Closed() const {
  return {ErrorCode::kClosed, "the store in " + directory_.string() + " was closed",
          "open it again"};
}

Error StreamingStore::Impl::NotOwner() const {
  return {ErrorCode::kNotOwner,
          directory_.string() + " is not open for writing; nothing was changed",
          "open it as the owner"};
}

Error StreamingStore::Impl::Unreadable(const ReaderPool::Lease& none) const {
  if (closed_) return Closed();
  if (committer_ && committer_->failed()) return committer_->WhyFailed();
  if (none.has_snapshot()) {
    return {ErrorCode::kDamaged,
            "the streaming requests in " + directory_.string() + " can't be read",
            {},
            Hint::kVerify};
  }
  return {ErrorCode::kUnavailable,
          "the streaming requests in " + directory_.string() + " can't be read at this moment",
          "try again"};
}

Result<std::vector<OpenStream>> StreamingStore::Impl::List() {
  const BootTime now = options_.boot_clock();
  if (observed_ && !observed_->IsCurrent()) return Unreadable({});
  const ReaderPool::Lease snapshot = readers_.Acquire();
  if (!snapshot) return Unreadable(snapshot);
  std::vector<std::pair<std::int64_t, OpenStream>> open;
  bool is_sound = true;
  const bool walked =
      snapshot.ForEach(internal::SpecOf(Table::kStreamingTokens), [&](Payload payload) {
        const auto row = payload.empty() ? std::nullopt : internal::DecodeStreamingRow(payload);
        is_sound = is_sound && row;
        if (!row || !IsOpen(*row, now)) return;
        open.push_back({row->prepared,
                        {.id = internal::TokenIdOf(row->token_sha256),
                         .kind = row->kind,
                         .prepared = row->prepared_at,
                         .expires_in_ms = static_cast<std::uint64_t>(
                             (row->expires - now.nanoseconds + 999'999) / 1'000'000)}});
      });
  if (!walked || !is_sound || !snapshot.CountIsTrue(Table::kStreamingTokens)) {
    return Unreadable(snapshot);
  }
  std::stable_sort(open.begin(), open.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<OpenStream> streams;
  streams.reserve(open.size());
  for (auto& [prepared, stream] : open) streams.push_back(std::move(stream));
  return streams;
}

StreamingCounters StreamingStore::Impl::Count() {
  const auto get = [this](Counter counter) {
    return counters_[counter].load(std::memory_order_relaxed);
  };
  StreamingCounters counters{.prepared = get(kPrepared),
                             .prepare_invalid = get(kPrepareInvalid),
                             .prepare_full = get(kPrepareFull),
                             .prepare_failed = get(kPrepareFailed),
                             .consumed = get(kConsumed),
                             .refused_unknown = get(kRefusedUnknown),
                             .refused_expired = get(kRefusedExpired),
                             .refused_kind = get(kRefusedKind),
                             .consume_failed = get(kConsumeFailed),
                             .voided = report.voided};
  if (const ReaderPool::Lease snapshot = readers_.Acquire()) {
    counters.open = snapshot.state().digest(Table::kStreamingTokens).count;
  }
  return counters;
}

Result<VerifyReport> StreamingStore::Impl::Verify(const Progress& progress) {
  const auto sequence = [this]() -> std::uint64_t {
    const ReaderPool::Lease snapshot = readers_.Acquire();
    return snapshot ? snapshot.state().commit_sequence : 0;
  };
  return internal::VerifyStore(directory_, committer_.get(), sequence, progress);
}

std::vector<MetricFamily> StreamingCounters::Families() const {
  const auto by_outcome = [](std::string name, std::string help,
                             std::initializer_list<std::pair<const char*, std::uint64_t>> counts) {
    MetricFamily family{std::move(name), "counter", std::move(help), {}};
    for (const auto& [outcome, count] : counts) {
      family.series.push_back({{{"outcome", outcome}}, static_cast<double>(count)});
    }
    return family;
  };
  return {by_outcome("waybill_streaming_prepares_total", "Streams asked for, by outcome.",
                     {{"prepared", prepared},
                      {"invalid", prepare_invalid},
                      {"full", prepare_full},
                      {"failed", prepare_failed}}),
          by_outcome("waybill_streaming_consumes_total", "Tokens presented, by outcome.",
                     {{"consumed", consumed},
                      {"unknown", refused_unknown},
                      {"expired", refused_expired},
                      {"other_kind", refused_kind},
                      {"failed", consume_failed}}),
          {"waybill_streaming_voided_tokens",
           "gauge",
           "Tokens that opening the store made void.",
           {{{}, static_cast<double>(voided)}}},
          {"waybill_streaming_open_tokens",
           "gauge",
           "Tokens that wait for their clients.",
           {{{}, static_cast<double>(open)}}}};
}

std::string StreamTokenId(std::string_view token) {
  const auto digest = internal::Sha256(token);
  return digest ? internal::TokenIdOf(*digest) : std::string();
}

// --- The public class ----------------------------------------------------------------------------

StreamingStore::StreamingStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StreamingStore::~StreamingStore() = default;

Result<std::unique_ptr<StreamingStore>> StreamingStore::Open(StreamingOptions options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<StreamingStore>> {
    auto impl = TRY(Impl::OpenOwner(std::move(options), Impl::Start::kRestart));
    return std::unique_ptr<StreamingStore>(new StreamingStore(std::move(impl)));
  });
}

Result<std::unique_ptr<StreamingStore>> StreamingStore::Continue(StreamingOptions options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<StreamingStore>> {
    auto impl = TRY(Impl::OpenOwner(std::move(options), Impl::Start::kContinue));
    return std::unique_ptr<StreamingStore>(new StreamingStore(std::move(impl)));
  });
}

Result<std::unique_ptr<StreamingStore>> StreamingStore::Observe(
    const std::filesystem::path& directory, BootClock boot_clock, bool needs_slot) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<StreamingStore>> {
    auto impl = TRY(Impl::OpenObserver(directory, std::move(boot_clock), needs_slot));
    return std::unique_ptr<StreamingStore>(new StreamingStore(std::move(impl)));
  });
}

Result<void> StreamingStore::Close() { return impl_->Close(); }
const StreamingReport& StreamingStore::report() const { return impl_->report; }

Result<std::string> StreamingStore::Prepare(const StreamRequest& request) {
  return internal::Guarded([&] { return impl_->Prepare(request); });
}

Result<StreamRequest> StreamingStore::Consume(std::string_view token, StreamKind kind) {
  return internal::Guarded([&] { return impl_->Consume(token, kind); });
}

Result<std::vector<OpenStream>> StreamingStore::List() const {
  return internal::Guarded([&] { return impl_->List(); });
}

StreamingCounters StreamingStore::GetCounters() const { return impl_->Count(); }

Result<VerifyReport> StreamingStore::Verify(const Progress& progress) const {
  return internal::Guarded([&] { return impl_->Verify(progress); });
}

}  // namespace waybill
