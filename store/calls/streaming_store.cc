// StreamingStore: opening, preparing, consuming.
//
// What makes a token open once: Consume deletes its row in the same transaction that reads it, and
// returns the request only after that is committed. What makes it open never again: rows are
// neither carried over nor put back by anything, and an opening that can't be sure that the store
// is the newest deletes them all.

#include "store/calls/streaming_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "migrations/steps/migrate.h"
#include "store/base/caught.h"
#include "store/base/empty_list.h"
#include "store/base/hex.h"
#include "store/base/random.h"
#include "store/base/try.h"
#include "store/disk/trust.h"
#include "store/opening/product.h"

namespace waybill {

using internal::Committer, internal::Key16, internal::Lookup, internal::Payload,
    internal::ReaderPool, internal::StoreTxn, internal::StreamingRow, internal::StreamToken,
    internal::Table;

namespace {

constexpr std::string_view kRequests = "the streaming requests";
constexpr std::chrono::nanoseconds kShortestLife = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds kLongestLife = std::chrono::hours(1);

Result<void> CheckStreamingOptions(const StreamingOptions& options) {
  const auto out_of_range = [](const std::string& what, const std::string& range) {
    return Error{ErrorCode::kInvalidArgument, what + " is out of range; nothing was changed",
                 "use 1 " + range};
  };
  using std::chrono::milliseconds;
  if (options.time_to_live < kShortestLife || options.time_to_live > kLongestLife) {
    const auto ms = std::chrono::duration_cast<milliseconds>(options.time_to_live).count();
    return out_of_range("a time to live of " + std::to_string(ms) + " ms", "second to 1 hour");
  }
  if (options.max_open == 0 || options.max_open > kMaxOpenStreams) {
    return out_of_range(std::to_string(options.max_open) + " open streaming requests",
                        "to " + std::to_string(kMaxOpenStreams));
  }
  return {};
}

// Whether it may still open a stream. A time that lies ahead is of another boot, or made up.
bool IsOpen(const StreamingRow& row, const BootTime& now) {
  return row.boot == now.boot_id && row.prepared <= now.nanoseconds &&
         now.nanoseconds <= row.expires;
}

// What a token that is refused is counted as; nullptr: it opens its stream.
std::uint64_t StreamingCounters::*Refusal(const StreamingRow& row,
                                          const internal::Sha256Digest& token, StreamKind kind,
                                          const BootTime& now) {
  if (row.token_sha256 != token) return &StreamingCounters::refused_unknown;
  if (!IsOpen(row, now)) return &StreamingCounters::refused_expired;
  if (row.kind != kind) return &StreamingCounters::refused_kind;
  return nullptr;
}

Error NotFound() {
  return {ErrorCode::kNotFound, "no stream waits under this token; nothing was changed",
          "ask for the stream again: a token opens one, once, and not for long"};
}

constexpr internal::ProductWords kWords = {"streaming requests", "a store of streaming requests",
                                           "a node's store, which takes no streaming requests",
                                           "give streaming requests a directory of their own"};

// Whatever is lost, no token is worth keeping: an older copy has some that opened a stream since.
class StreamingProduct final : public internal::Product {
 public:
  internal::Purpose purpose() const override { return internal::Purpose::kStreaming; }
  const internal::ProductWords& words() const override { return kWords; }
};

}  // namespace

const internal::Product& internal::StreamingProduct() {
  static const waybill::StreamingProduct product;
  return product;
}

Result<std::unique_ptr<StreamingStore>> StreamingStore::Open(StreamingOptions options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<StreamingStore>> {
    TRY(CheckStreamingOptions(options));
    NodeStoreOptions open{.directory = options.directory,
                          .create_if_missing = options.create_if_missing,
                          .witness = options.witness};
    open.boot_clock = options.boot_clock;
    open.clock = options.clock;
    open.flushes_twice = options.flushes_twice;
    open.map_bytes = options.map_bytes;
    open.gap = Gap::kNo;
    open.continues_pulls = options.continues;
    std::unique_ptr<StreamingStore> store(new StreamingStore(std::move(options)));
    store->owned =
        TRY(internal::OpenNewest(open, internal::StreamingProduct(), store->report_.recovery));
    TRY(store->FinishOpening());
    return store;
  });
}

Result<void> StreamingStore::FinishOpening() {
  // Before a mark is made: the next opening would believe it, and keep what this one did not get to
  // make void.
  if (!owned->had_mark) {
    NodeStoreOptions opening{.directory = options_.directory, .witness = options_.witness};
    opening.clock = options_.clock;
    TRY(internal::CommitAtOpening(opening, *owned, [&](StoreTxn& txn) { return VoidTokens(txn); }));
  }
  Committer::Hooks hooks;
  hooks.clock = options_.clock;
  MakeCommitter(std::move(hooks), options_.boot_clock, options_.flushes_twice);
  if (owned->had_mark) {
    TRY(committer->Run([&](StoreTxn& txn) { return VoidTokens(txn); }));
  }
  const internal::State state = committer->state();
  // From the first token on. Without it, the next opening makes them void.
  if (!mark->is_lost()) {
    static_cast<void>(mark->Begin(state.commit_sequence, state.commit_sequence).has_value());
  }
  report_.recovery.commit_sequence = state.commit_sequence;
  report_.recovery.distrustful = state.distrustful;
  if (owned->witness) TRY(owned->witness->Sync());
  return Announce(Table::kStreamingTokens);
}

Result<void> StreamingStore::VoidTokens(StoreTxn& txn) {
  const BootTime now = options_.boot_clock();
  report_.voided = 0;  // the change may run twice
  report_.void_reason.clear();
  std::set<Expiry> kept;
  if (txn.state().distrustful) {
    auto reasons = TRY(internal::ReasonsOfDistrust(txn));
    report_.void_reason = reasons.empty() ? "the store is distrustful" : reasons.front().reason;
    for (const internal::Distrust& why : reasons) TRY(internal::TakeBackDistrust(txn, why));
    // Its journal can't be read.
    if (txn.state().distrustful) {
      TRY(internal::SetTrust(txn, "every streaming token is void"));
    }
  } else if (now.boot_id == BootTime().boot_id) {
    report_.void_reason = "the system does not say which boot this is";
  } else if (!options_.keeps_tokens && !options_.continues) {
    report_.void_reason = "the streaming server restarted";
  } else if (!report_.recovery.copy_of.empty()) {
    report_.void_reason = "the store is a copy of the one in " + report_.recovery.copy_of;
  } else if (!owned->had_mark) {
    report_.void_reason = "commit.mark is gone, so the store may be an older copy";
  }
  std::vector<Key16> gone;
  TRY(txn.ForEach(Table::kStreamingTokens, [&](const Key16& key, Payload payload) -> Result<bool> {
    const auto row = payload.empty() ? std::nullopt : internal::DecodeStreamingRow(payload);
    const bool is_open = row && IsOpen(*row, now);
    if (is_open && report_.void_reason.empty()) {
      kept.emplace(row->expires, key);
      return true;
    }
    gone.push_back(key);
    const bool has_expired = row && row->boot == now.boot_id && row->expires < now.nanoseconds;
    if (!has_expired) ++report_.voided;
    return true;
  }));
  for (const Key16& key : gone) TRY(txn.Delete(Table::kStreamingTokens, key));
  report_.open = kept.size();
  const std::lock_guard lock(mutex_);
  expiries_ = std::move(kept);
  return {};
}

Result<std::unique_ptr<StreamingStore>> StreamingStore::Observe(
    const std::filesystem::path& directory, BootClock boot_clock, bool needs_slot) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<StreamingStore>> {
    std::unique_ptr<StreamingStore> store(new StreamingStore(
        {.directory = directory, .witness = Witness::None(), .boot_clock = std::move(boot_clock)}));
    std::optional<internal::Inspection> unused;
    store->observed = TRY(internal::OpenAsObserver(directory, internal::StreamingProduct(),
                                                   {.needs_slot = needs_slot}, unused));
    const internal::OpenedDatabase& database = *store->observed;
    store->readers.Attach(*database.env, database.handles, database.identity.hash_seed,
                          ReaderPool::Keep::kNothing, 1, Table::kStreamingTokens);
    return store;
  });
}

Result<void> StreamingStore::Close() noexcept { return closed_ ? Result<void>() : LetGo(); }

Result<void> StreamingStore::Write(Committer::Change change) {
  // What is thrown fails this change, not others in its transaction.
  return committer->Run([&](StoreTxn& txn) -> Result<void> {
    return internal::Guarded([&] { return change(txn); });
  });
}

void StreamingStore::Count(Counter counter) {
  const std::lock_guard lock(mutex_);
  ++(counters_.*counter);
}

// --- Preparing -----------------------------------------------------------------------------------

bool StreamingStore::FindRoom(std::int64_t now, std::vector<Expiry>& expired) {
  const std::lock_guard lock(mutex_);
  expired.assign(expiries_.begin(), expiries_.lower_bound({now, {}}));
  return expiries_.size() - expired.size() < options_.max_open;
}

Error StreamingStore::Full(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  auto first = expiries_.lower_bound({now, {}});
  const auto live = static_cast<std::size_t>(std::distance(first, expiries_.end()));
  Error error{ErrorCode::kLimitExceeded,
              internal::HowMany(live, "streaming request") + " in " + options_.directory.string() +
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

Result<std::string> StreamingStore::PrepareUncounted(const StreamRequest& request) {
  if (!committer) return NotOwner();
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
  StreamToken token{};
  if (!internal::Randomise(token.data(), token.size())) {
    return Error{ErrorCode::kIo, "the system gave no random numbers; no token was made"};
  }
  std::string text = internal::HexEncode(token);  // moved out below: then memory may not run out
  const internal::Sha256Digest digest = TRY(internal::Sha256(text));
  StreamingRow row;
  row.token_sha256 = digest;
  row.kind = request.kind;
  row.boot = now.boot_id;
  row.prepared = now.nanoseconds;
  row.expires = now.nanoseconds + options_.time_to_live.count();
  row.prepared_at = options_.clock();
  auto sealed = TRY(internal::SealRequest(token, uuid(), row, request));
  row.sealed = sealed;  // which it only refers to
  const std::vector<std::uint8_t> payload = internal::EncodeStreamingRow(row);
  const Key16 key = internal::StreamingKey(digest);
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
  const std::lock_guard lock(mutex_);
  for (const Expiry& one : expired) expiries_.erase(one);
  expiries_.merge(mine);
  return text;
}

Result<std::string> StreamingStore::Prepare(const StreamRequest& request) {
  auto token = internal::Guarded([&] { return PrepareUncounted(request); });
  if (token) {
    Count(&StreamingCounters::prepared);
  } else if (token.error().retry_after.count() > 0) {
    Count(&StreamingCounters::prepare_full);
  } else {
    const ErrorCode code = token.error().code;
    Count(code == ErrorCode::kInvalidArgument || code == ErrorCode::kLimitExceeded
              ? &StreamingCounters::prepare_invalid
              : &StreamingCounters::prepare_failed);
  }
  return token;
}

// --- Consuming -----------------------------------------------------------------------------------

Result<StreamRequest> StreamingStore::ConsumeUncounted(std::string_view text, StreamKind kind,
                                                       Counter& refused) {
  if (!committer) return NotOwner();
  StreamToken token{};
  if (!internal::HexDecode(text, token)) return NotFound();
  auto digest = TRY(internal::Sha256(text));
  const Key16 key = internal::StreamingKey(digest);
  const BootTime now = options_.boot_clock();
  const auto damaged = [&] {
    return Error{ErrorCode::kDamaged,
                 "what is stored of the streaming token " + StreamTokenId(text) + " in " +
                     options_.directory.string() + " can't be read; nothing was changed",
                 "ask for the stream again; the next opening removes it"};
  };
  // What is refused does not wait for the disk. What can't be read here may be read below.
  if (const ReaderPool::Lease snapshot = readers.Acquire()) {
    Payload payload;
    const Lookup found = snapshot.Get(Table::kStreamingTokens, key, payload);
    if (found == Lookup::kAbsent) return NotFound();
    const auto row = found == Lookup::kFound ? internal::DecodeStreamingRow(payload) : std::nullopt;
    if (row) {
      if (const Counter why = Refusal(*row, digest, kind, now)) {
        refused = why;
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
    if (const Counter why = Refusal(*row, digest, kind, now)) {
      refused = why;
      return NotFound();
    }
    auto unsealed = TRY(internal::UnsealRequest(token, uuid(), *row));
    expiry = {row->expires, key};
    TRY(txn.Delete(Table::kStreamingTokens, key));
    request = std::move(unsealed);
    return {};
  }));
  const std::lock_guard lock(mutex_);
  expiries_.erase(expiry);
  return *std::move(request);
}

Result<StreamRequest> StreamingStore::Consume(std::string_view token, StreamKind kind) {
  Counter refused = &StreamingCounters::refused_unknown;
  auto request = internal::Guarded([&] { return ConsumeUncounted(token, kind, refused); });
  Count(request                                        ? &StreamingCounters::consumed
        : request.error().code == ErrorCode::kNotFound ? refused
                                                       : &StreamingCounters::consume_failed);
  return request;
}

// --- Looking -------------------------------------------------------------------------------------

Result<std::vector<OpenStream>> StreamingStore::List() {
  return internal::Guarded([&]() -> Result<std::vector<OpenStream>> {
    const BootTime now = options_.boot_clock();
    if (observed && !observed->IsCurrent()) return NoSnapshot({}, kRequests);
    const ReaderPool::Lease snapshot = readers.Acquire();
    if (!snapshot) return NoSnapshot(snapshot, kRequests);
    std::multimap<std::int64_t, OpenStream> open;  // by the time when they were prepared
    bool is_sound = true;
    const bool walked =
        snapshot.ForEach(internal::SpecOf(Table::kStreamingTokens), [&](Payload payload) {
          const auto row = payload.empty() ? std::nullopt : internal::DecodeStreamingRow(payload);
          is_sound = is_sound && row;
          if (!row || !IsOpen(*row, now)) return;
          open.emplace(row->prepared,
                       OpenStream{.id = internal::TokenIdOf(row->token_sha256),
                                  .kind = row->kind,
                                  .prepared = row->prepared_at,
                                  .expires_in_ms = static_cast<std::uint64_t>(
                                      (row->expires - now.nanoseconds + 999'999) / 1'000'000)});
        });
    if (!walked || !is_sound || !snapshot.CountIsTrue(Table::kStreamingTokens)) {
      return Unreadable(kRequests);
    }
    std::vector<OpenStream> streams;
    for (auto& [prepared, stream] : open) streams.push_back(std::move(stream));
    return streams;
  });
}

StreamingCounters StreamingStore::GetCounters() {
  const std::lock_guard lock(mutex_);
  StreamingCounters counters = counters_;
  counters.voided = report_.voided;
  if (const ReaderPool::Lease snapshot = readers.Acquire()) {
    counters.open = snapshot.state().digest(Table::kStreamingTokens).count;
  }
  return counters;
}

Result<VerifyReport> StreamingStore::Verify(const Progress& progress) {
  const auto sequence = [this]() -> std::uint64_t {
    const ReaderPool::Lease snapshot = readers.Acquire();
    return snapshot ? snapshot.state().commit_sequence : 0;
  };
  return internal::Guarded([&] { return LiveStore::Verify(sequence, progress); });
}

std::vector<MetricFamily> StreamingCounters::Families() const {
  const auto family = [](std::string name, std::string type, std::string help,
                         std::initializer_list<std::pair<const char*, std::uint64_t>> counts) {
    MetricFamily made{std::move(name), std::move(type), std::move(help), {}};
    for (const auto& [outcome, count] : counts) {
      MetricFamily::Series& series = made.series.emplace_back();
      series.value = static_cast<double>(count);
      if (outcome != nullptr) series.labels = {{"outcome", outcome}};
    }
    return made;
  };
  return {family("waybill_streaming_prepares_total", "counter", "Streams asked for, by outcome.",
                 {{"prepared", prepared},
                  {"invalid", prepare_invalid},
                  {"full", prepare_full},
                  {"failed", prepare_failed}}),
          family("waybill_streaming_consumes_total", "counter", "Tokens presented, by outcome.",
                 {{"consumed", consumed},
                  {"unknown", refused_unknown},
                  {"expired", refused_expired},
                  {"other_kind", refused_kind},
                  {"failed", consume_failed}}),
          family("waybill_streaming_voided_tokens", "gauge",
                 "Tokens that opening the store made void.", {{nullptr, voided}}),
          family("waybill_streaming_open_tokens", "gauge", "Tokens that wait for their clients.",
                 {{nullptr, open}})};
}

std::string StreamTokenId(std::string_view token) {
  const auto digest = internal::Sha256(token);
  return digest ? internal::TokenIdOf(*digest) : std::string();
}

}  // namespace waybill
