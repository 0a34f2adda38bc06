// StreamingStore: the requests (exec, attach, port-forward) that a runtime's streaming server
// prepared, each under a token that opens one stream, once.
//
// Since KEP-1558 the kubelet alone proxies streams: it asks the runtime to prepare one (CRI calls
// Exec, Attach, PortForward), gets a URL with a token in it, and connects to that. The server
// answers with http://127.0.0.1:PORT/exec/TOKEN, and consumes the token first of all; without a
// request it answers 404.
//
// A runtime is another process than the kubelet, so this store has a directory of its own: a
// NodeStore's is refused, and a NodeStore refuses this one.
//
// The store keeps the SHA-256 of a token, never the token, and the request, sealed with a key that
// only the token gives (schema/v1/streaming.fbs). So the disk holds neither readable command lines
// nor anything that opens a stream.
//
// All member functions except Close and the destructor may be called from any thread at any time. A
// store must not be used in the child of a fork.

#ifndef WAYBILL_STORE_CALLS_STREAMING_STORE_H_
#define WAYBILL_STORE_CALLS_STREAMING_STORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/opening/live_store.h"
#include "store/streams/streaming_row.h"
#include "waybill/limits.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

namespace internal {
const Product& StreamingProduct();
}  // namespace internal

// A name for a token in logs, which opens nothing: the first 16 hex digits of its SHA-256. Takes
// any text. Empty: libcrypto failed.
std::string StreamTokenId(std::string_view token);

struct StreamingOptions {
  // The store's own directory, as NodeStoreOptions::directory. On tmpfs (/run) commits cost least.
  std::filesystem::path directory = {};
  bool create_if_missing = true;
  // As for a NodeStore (options.h). Only a witness reveals that an older copy was put back between
  // two openings. That matters if tokens are kept: a used one would open a stream again.
  Witness witness;
  // By default a restart makes all tokens void, since their URLs died with the streaming server.
  // This keeps those that are still open, for a server that comes back under the same address.
  // Tokens of another boot are void all the same, and so are those of a store that was copied,
  // rolled back, restored or rebuilt, lost its commit.mark, or is distrustful.
  bool keeps_tokens = false;
  // A command that shares a server's work: one prepares, another consumes. Keeps the tokens that a
  // server with keeps_tokens would keep.
  bool continues = false;
  // How long a token is good, by CLOCK_BOOTTIME, which nobody can set: 1 s to 1 h. A token that is
  // kept over a restart keeps the time that it was prepared with.
  std::chrono::nanoseconds time_to_live = std::chrono::seconds(60);
  // Tokens that are open at the same time: 1 to kMaxOpenStreams.
  std::size_t max_open = 1000;
  BootClock boot_clock = SystemBootClock;
  Clock clock = SystemClock;
  // As in NodeStoreOptions.
  bool flushes_twice = false;
  std::uint64_t map_bytes = 0;
};

// Since this store was opened. Each Prepare and Consume counts once.
struct StreamingCounters {
  std::uint64_t prepared = 0;
  std::uint64_t prepare_invalid = 0;  // kInvalidArgument, and above a bound of limits.h
  std::uint64_t prepare_full = 0;     // max_open tokens were open already
  std::uint64_t prepare_failed = 0;   // any other error
  std::uint64_t consumed = 0;
  std::uint64_t refused_unknown = 0;  // kNotFound: never prepared, used before, or void
  std::uint64_t refused_expired = 0;  // kNotFound: expired
  std::uint64_t refused_kind = 0;     // kNotFound: of another kind
  std::uint64_t consume_failed = 0;   // any other error
  std::uint64_t voided = 0;           // StreamingReport::voided
  std::uint64_t open = 0;             // now; those that expired since the last Prepare among them

  // Every series, with zeros.
  std::vector<MetricFamily> Families() const;
};

class StreamingStore : private internal::LiveStore {
 public:
  // Opens as the only owner. Errors and what they leave: NodeStore::Open. kInvalidArgument also: an
  // option out of range, or the directory has a node's store. kDamaged: nothing is left to show
  // that this is a streaming store, so it may be a node's. Nothing was changed; if it was a
  // streaming store, the directory can be removed. Other damage is not an error: the database is
  // set aside, as for a NodeStore, and all its tokens are void. Idempotent: after a crash or an
  // error at any point, open again. Distrust ends when all tokens are void, since nothing is left
  // that could be stale.
  static Result<std::unique_ptr<StreamingStore>> Open(StreamingOptions options);
  // Opens to read, beside a live owner or without one. Changes nothing: Prepare and Consume are
  // kNotOwner. Errors: NodeStore::Observe; kInvalidArgument also: the directory has a node's store.
  // Once the owner has replaced its files (a restart after damage), calls return kUnavailable:
  // observe again. `needs_slot`: as in ObserveOptions.
  static Result<std::unique_ptr<StreamingStore>> Observe(const std::filesystem::path& directory,
                                                         BootClock boot_clock = SystemBootClock,
                                                         bool needs_slot = true);

  // Closes. No other call may be running.
  ~StreamingStore() { static_cast<void>(Close()); }
  StreamingStore(const StreamingStore&) = delete;
  StreamingStore& operator=(const StreamingStore&) = delete;

  // As NodeStore::Close. Open tokens stay on the disk; StreamingOptions::keeps_tokens says what the
  // next opening does with them.
  Result<void> Close() noexcept;

  // What opening found and did. Constant; empty for an observer.
  const StreamingReport& report() const { return report_; }

  // Stores the request, on disk when this returns, and returns its token: 32 lower-case hex digits,
  // 128 random bits from the kernel. Nobody can get it again. Errors, which leave the store as it
  // was: those of CheckStreamRequest; kLimitExceeded with Error::retry_after: as many tokens as
  // StreamingOptions::max_open are open, and the first of them expires then (gRPC
  // ResourceExhausted, HTTP 429); kIo: no randomness; kNotOwner, kClosed, kStoreFull, kDiskFull,
  // kIo, kOwned as in "Recording a pull". kInternal also: the boot clock says an impossible time.
  // kOutcomeUnknown: the request may be on disk, but nobody has its token.
  Result<std::string> Prepare(const StreamRequest& request);

  // Uses the token up, and returns its request. On disk when this returns: whatever crashes, and
  // whenever, no token opens a second stream. Of several callers one gets the request. kNotFound,
  // with one and the same text: the token was never prepared, was used, is void, has expired or is
  // of another kind. A refusal writes nothing, so a token of another kind stays good for its own.
  // (The kubelet's in-memory cache uses such a token up.) kDamaged: the row can't be read; the
  // token opens nothing. kNotOwner, kClosed, kStoreFull, kDiskFull, kIo, kOwned: the token is still
  // good. kOutcomeUnknown: it may be used up or not; do not use it again.
  Result<StreamRequest> Consume(std::string_view token, StreamKind kind);

  // Lists the open tokens, the oldest first. kDamaged: a row can't be read. kUnavailable, kClosed.
  Result<std::vector<OpenStream>> List();

  // Never fails. For an observer all but `open` are 0.
  StreamingCounters GetCounters();

  // Does what NodeStore::Verify does.
  Result<VerifyReport> Verify(const Progress& progress = {});

 private:
  // A row: when it expires, and its key.
  using Expiry = std::pair<std::int64_t, internal::Key16>;
  using Counter = std::uint64_t StreamingCounters::*;

  explicit StreamingStore(StreamingOptions options)
      : LiveStore(options.directory), options_(std::move(options)) {}

  Result<void> FinishOpening();
  // Deletes the rows of tokens that are void, and notes when the others expire.
  Result<void> VoidTokens(internal::StoreTxn& txn);
  Result<void> Write(internal::Committer::Change change);
  Result<std::string> PrepareUncounted(const StreamRequest& request);
  // `refused` is the counter of a kNotFound.
  Result<StreamRequest> ConsumeUncounted(std::string_view text, StreamKind kind, Counter& refused);
  void Count(Counter counter);
  Error Full(std::int64_t now);
  // False: without the rows that expired before `now`, as many are open as may be.
  bool FindRoom(std::int64_t now, std::vector<Expiry>& expired);
  const internal::StoreUuid& uuid() const { return owned->database.identity.uuid; }

  const StreamingOptions options_;
  StreamingReport report_;
  std::mutex mutex_;
  StreamingCounters counters_;  // but for `open`. Guarded by mutex_; likewise the next one
  std::set<Expiry> expiries_;   // of every row on the disk, but for changes under way
};

}  // namespace waybill

#endif  // WAYBILL_STORE_CALLS_STREAMING_STORE_H_
