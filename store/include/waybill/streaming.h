// StreamingStore: the requests (exec, attach, port-forward) that a runtime's streaming server
// prepared, each under a token that opens one stream, once.
//
// Since KEP-1558 the kubelet alone proxies streams: it asks the runtime to prepare one (CRI calls
// Exec, Attach, PortForward), gets a URL with a token in it, and connects to that.
//
//   auto store = StreamingStore::Open({.directory = "/var/lib/shim/waybill",
//                                      .witness = Witness::None()});
//   auto token = (*store)->Prepare({.kind = StreamKind::kExec, .container_id = id,
//                                   .command = {"sh"}, .std_in = true, .std_out = true});
//   … answer the CRI call with http://127.0.0.1:PORT/exec/TOKEN …
//   auto request = (*store)->Consume(token_of_url, StreamKind::kExec);  // first of all
//   if (!request) … 404 …
//
// A runtime is another process than the kubelet, so this store has a directory of its own: a
// NodeStore's is refused, and a NodeStore refuses this one.
//
// What is kept is the SHA-256 of a token, never the token, and the request sealed with a key that
// only the token gives (schema/v7/streaming.fbs). So neither a command line nor what opens a stream
// is at rest.
//
// All member functions except Close and the destructor may be called from any thread at any time. A
// store must not be used in the child of a fork.

#ifndef WAYBILL_STREAMING_H_
#define WAYBILL_STREAMING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/limits.h"
#include "waybill/maintenance.h"
#include "waybill/metrics.h"
#include "waybill/options.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/streaming_request.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// What names a token in logs without opening anything: the first 16 hex digits of its SHA-256. Of
// any text. Empty: libcrypto failed.
std::string StreamTokenId(std::string_view token);

struct StreamingOptions {
  // The store's own directory, as OpenOptions::directory. On tmpfs (/run) commits cost least.
  std::filesystem::path directory = {};
  bool create_if_missing = true;
  // As for a NodeStore (options.h). Only a witness tells that an older copy was put back between
  // two openings, which matters if tokens are kept: a used one would open again.
  Witness witness;
  // A streaming server that restarts makes all tokens void, since their URLs died with it. This
  // keeps those that are still open, for a server that comes back under the same address.
  // Tokens of another boot, of a store that was rolled back, restored or rebuilt or lost its
  // commit.mark, and of a distrustful one are void all the same.
  bool keeps_tokens = false;
  // How long a token is good, by CLOCK_BOOTTIME, which no one sets: 1 s to 1 h. Tokens that are
  // kept live as long as was said when they were prepared.
  std::chrono::nanoseconds time_to_live = std::chrono::seconds(60);
  // Tokens that are open at the same time: 1 to kMaxOpenStreams.
  std::size_t max_open = 1000;
  BootClock boot_clock = SystemBootClock;
  Clock clock = SystemClock;
  // As in OpenOptions.
  bool migrate = true;
  bool skip_unreadable = false;
  bool flushes_twice = false;
  std::uint64_t map_bytes = 0;
};

// What opening did.
struct StreamingReport {
  RecoveryReport recovery = {};  // of the database; what is about images in it is empty
  std::uint64_t voided = 0;      // tokens that this opening made void; expired ones are not counted
  // Why all were made void; empty: they were kept, but for those that are of another boot or can't
  // be read.
  std::string void_reason = {};
  std::uint64_t open = 0;  // tokens that are open now
};

// A token that waits for its client. What it opens is sealed.
struct OpenStream {
  std::string id = {};  // StreamTokenId
  StreamKind kind = StreamKind::kExec;
  Timestamp prepared = {};                 // by the wall clock
  std::chrono::nanoseconds expires_in{0};  // more than 0
};

// Since this store was opened. Each Prepare and Consume counts once.
struct StreamingCounters {
  std::uint64_t prepared = 0;
  std::uint64_t prepare_invalid = 0;  // kInvalidArgument, and above a bound of limits.h
  std::uint64_t prepare_full = 0;     // as many were open as may be
  std::uint64_t prepare_failed = 0;   // any other error
  std::uint64_t consumed = 0;
  std::uint64_t refused_unknown = 0;  // never prepared, used before, or void; likewise kNotFound:
  std::uint64_t refused_expired = 0;
  std::uint64_t refused_kind = 0;    // the token is of another kind
  std::uint64_t consume_failed = 0;  // any other error
  std::uint64_t voided = 0;          // StreamingReport::voided
  std::uint64_t open = 0;            // now; those that expired since the last Prepare among them

  // As metrics, every series with zeros (waybill/metrics.h): waybill_streaming_prepares_total and
  // waybill_streaming_consumes_total by outcome, waybill_streaming_voided_tokens,
  // waybill_streaming_open_tokens.
  std::vector<MetricFamily> Families() const;
};

class StreamingStore {
 public:
  // Opens as the only owner. Errors and what they leave: NodeStore::Open. kInvalidArgument also: an
  // option out of range, or the directory has a node's store. kDamaged: nothing is left that says
  // that it is a store of streams, so it may be a node's; nothing was changed, and if it was of
  // streams, the directory can be removed. Other damage is no error: the database is set aside, as
  // for a NodeStore, and all its tokens are void. Idempotent: after a crash or an error at any
  // point, open again. Distrust ends when all tokens are void, since nothing is left that could be
  // stale.
  static Result<std::unique_ptr<StreamingStore>> Open(StreamingOptions options);

  // The same for a command that does a part of what a server does: one prepares, another consumes.
  // It makes no token void that a server would keep (StreamingOptions::keeps_tokens, which it
  // ignores).
  static Result<std::unique_ptr<StreamingStore>> Continue(StreamingOptions options);

  // Opens to read, beside a live owner or without one. Changes nothing: Prepare and Consume are
  // kNotOwner. Errors: NodeStore::Observe; kInvalidArgument also: the directory has a node's store.
  // Once the owner replaced its files (a restart after damage), calls are kUnavailable: observe
  // again.
  static Result<std::unique_ptr<StreamingStore>> Observe(const std::filesystem::path& directory,
                                                         BootClock boot_clock = SystemBootClock);

  // Closes. No other call may be running.
  ~StreamingStore();
  StreamingStore(const StreamingStore&) = delete;
  StreamingStore& operator=(const StreamingStore&) = delete;

  // As NodeStore::Close. Open tokens stay on the disk; what the next opening does with them is said
  // above.
  Result<void> Close();

  // What opening found and did. Constant; empty for an observer.
  const StreamingReport& report() const;

  // Stores the request, on disk when this returns, and returns its token: 32 lower-case hex digits,
  // 128 random bits of the kernel's. Nobody can get it again. Errors, which leave the store as it
  // was: CheckStreamingRequest; kLimitExceeded with Error::retry_after: as many tokens are open as
  // may be, and the first of them expires then (gRPC ResourceExhausted, HTTP 429); kIo: no
  // randomness; kNotOwner, kClosed, kStoreFull, kDiskFull, kIo, kOwned as in "Recording a pull"
  // (node_store.h). kInternal also: the boot clock says an impossible time. kOutcomeUnknown: the
  // request may be on disk, but nobody has its token.
  Result<std::string> Prepare(const StreamingRequest& request);

  // Uses the token up, and returns its request. On disk when this returns: whatever dies when, no
  // token opens a second stream. Of several callers one gets it. kNotFound, with one and the same
  // text: the token was never prepared, was used, is void, has expired or is of another kind. No
  // refusal writes anything, so a token of another kind stays good for its own. The kubelet's
  // in-memory cache uses such a token up. kDamaged: the row can't be read; the token opens nothing.
  // kNotOwner, kClosed, kStoreFull, kDiskFull, kIo, kOwned: the token is still good. It is not to
  // be used after kOutcomeUnknown: it may be used up or not.
  Result<StreamingRequest> Consume(std::string_view token, StreamKind kind);

  // Those that have not expired, the oldest first. kDamaged: a row can't be read. kUnavailable,
  // kClosed.
  Result<std::vector<OpenStream>> List() const;

  // Never fails. Of an observer all are 0 but `open`.
  StreamingCounters GetCounters() const;

  // NodeStore::Verify.
  Result<VerifyReport> Verify() const;

  class [[gnu::visibility("hidden")]] Impl;  // opaque

 private:
  explicit StreamingStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill

#endif  // WAYBILL_STREAMING_H_
