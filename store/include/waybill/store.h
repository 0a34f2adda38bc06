// A node's store: which image was pulled with whose credentials, which pulls are under way, and
// which host IDs belong to which pod.
//
//   auto store = waybill::Store::Open({.directory = "/var/lib/kubelet/waybill",
//                                      .loss_marker = "/var/lib/kubelet/image_manager/waybill",
//                                      .images = runtime_images});
//   if (!store) return fail(store.error().ToString());
//   if ((*store)->MustPull(copy, credentials).pull) {
//     auto pull = (*store)->BeginPull(copy);             // on disk before the pull begins
//     … pull …
//     copy.image_ref = pulled_ref;
//     auto ended = (*store)->EndPull(copy, *pull, PullOutcome::kPulled, pulled_with);
//   }
//
// What returns success has reached the disk. Any thread may call anything at any time, Close too;
// but Close not from FetchCredentials or Progress, for which it would wait. A store must not be
// used in the child of a fork.

#ifndef WAYBILL_STORE_H_
#define WAYBILL_STORE_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/calls.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace [[gnu::visibility("default")]] waybill {

// --- Opening -------------------------------------------------------------------------------------

// Values for OpenOptions::loss_marker beside an absolute path. Remembered: for tools that open a
// store that exists. None: a wiped or older store goes unnoticed.
inline constexpr const char* kRememberedLossMarker = "remembered";
inline constexpr const char* kNoLossMarker = "none";

struct Clocks {
  Clock wall = SystemClock;
  BootClock boot = SystemBootClock;
};

struct OpenOptions {
  std::filesystem::path directory = {};  // the store's own, 0700; its parent must exist
  // A file outside the store that shows if the store is lost or an older copy. Must be chosen.
  std::string loss_marker = {};
  std::filesystem::path kubelet_directory = {};         // to take over records and ID mappings from
  std::optional<std::vector<ListedImage>> images = {};  // that the runtime has; none: unknown
  std::optional<std::vector<RuntimeHandler>> runtimes = {};  // none: as the store has them
  Settings settings = {};
  // At a first start images that nobody knows count as preloaded, unconfirmed. Or they are closed,
  // but for those of an installer's list.
  bool first_start_closes = false;
  std::optional<std::vector<ListedImage>> preloaded = {};
  Gap unrecorded = Gap::kDetect;  // whether a kubelet without waybill may have pulled
  bool create = true;
  bool migrate = true;           // take an older schema to the newest, after a backup
  bool skip_unreadable = false;  // what the disk refuses to read counts as damaged
  // Pulls of the process before are this one's. Another mode than the store's is kInvalidArgument;
  // the other settings become the store's, as at each opening.
  bool continues_pulls = false;
  bool allow_untested_lmdb = false;
  bool allow_empty = false;  // empty images and runtimes are meant
  Progress progress = {};    // false stops: kInterrupted
  Clocks clocks = {};        // for tests
};

// --- Decisions -----------------------------------------------------------------------------------

// Gets the pod's credentials if a decision depends on them, on its thread, at most once. No lock is
// held, and no old page is kept alive. An error makes the answer "pull". What it returns must stay
// until the decision returns.
using FetchCredentials = std::function<Result<PodCredentials>()>;

// --- Serving, and asking the owner ---------------------------------------------------------------

// For Store::Serve. Out of range: kInvalidArgument.
struct ServeOptions {
  // How long a client may take to send its request, and again to take its answer: 1 ms to 1 hour.
  // Then its connection is closed.
  std::chrono::milliseconds patience{10'000};
  // Connections at the same time: 1 to 1,024. One process gets at most a quarter of them, but at
  // least one. If all are taken, the client that has been idle for longest is disconnected.
  std::size_t connections = 32;
};

// --- The store -----------------------------------------------------------------------------------

class Store {
 public:
  // Opens as the only owner: checks each page, recovers what a crash left, imports, classifies. A
  // damaged, lost or older store is no error: it is set aside or degraded (GetStatus says how).
  // After an error open again; kOwned, kUnsafePath, kNewerSchema, kOlderSchema, kInvalidArgument,
  // kNotFound (create is false) changed nothing; kDiskFull, kIo, kStoreFull, kInterrupted keep what
  // was recovered so far.
  static Result<std::unique_ptr<Store>> Open(OpenOptions options);

  // Opens to decide and to read, beside an owner or without one, by the settings that the last
  // owner chose. Calls that change are kNotOwner. kNotFound; kDamaged, kOlderSchema: an owner must
  // open it first.
  static Result<std::unique_ptr<Store>> Observe(const std::filesystem::path& directory,
                                                const Clocks& clocks = {});

  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Waits for running calls, writes back, releases the lock. Later decisions are "pull", other
  // calls kClosed. An error is about what was written back, or the loss marker; the store is closed
  // anyway.
  Result<void> Close();

  // Answers other processes of root and this user through owner.sock in the store's directory,
  // until Close. None of them can delay a decision. kConflict: it serves already; kUnsafePath, kIo.
  Result<void> Serve(const ServeOptions& options = {});

  // Must this pull be attempted (KEP-2535)? Never fails, waits for no write, takes no lock that
  // another thread holds, and allocates nothing in an owner unless credentials are fetched late. A
  // credential that matches only by hash or only by name is queued to be written back (Flush).
  // DeferredCredentials serve callers that can't be called back.
  Decision MustPull(const ImageCopy& copy, const PodCredentials& credentials);
  Decision MustPull(const ImageCopy& copy, const FetchCredentials& fetch);
  Decision MustPull(const ImageCopy& copy, CredentialSource& credentials);

  // The same as the calls of these names, for those that every puller needs.
  Result<PullId> BeginPull(const ImageCopy& copy);
  Result<void> EndPull(const ImageCopy& copy, PullId pull, PullOutcome outcome,
                       const std::optional<ImagePullCredentials>& credentials = {},
                       const PullDetails& details = {});
  Result<UserNamespace> ClaimUserNamespace(const UserNamespaceRequest& request);

  // Any call of calls.h. Instantiated in the library for these, and no other.
  template <typename C>
  Result<typename C::Answer> Call(const C& call);
  // The same by name, with the parameters and the answer as JSON: CallJson("Explain",
  // R"({"imageRef": …})"). `progress`: of Verify and of MakeBackup into a file.
  Result<std::string> CallJson(std::string_view name, std::string_view parameters,
                               const Progress& progress = {});

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The calls that need no store.
struct Library {
  template <typename C>
  static Result<typename C::Answer> Call(const C& call, const Progress& progress = {});
  static Result<std::string> CallJson(std::string_view name, std::string_view parameters,
                                      const Progress& progress = {});
};

// Asks the owner of a store, in another process, through owner.sock in the store's directory, which
// speaks varlink (https://varlink.org). Each call makes a connection of its own, so the client goes
// on after the owner's restart. Any thread may call. Errors beside those of the call:
//   kNotFound         no owner serves
//   kUnavailable      the owner is busy, closes, or did not take the request: try again
//   kLimitExceeded    the request has more than kMaxOwnerMessageBytes
//   kUnsafePath       the directory or owner.sock is not private to this user, or a user other than
//                     this and root answers
//   kInvalidArgument  the owner is of another version, which does not know the call
//   kIo               the socket
// After each of these nothing was changed.
//   kOutcomeUnknown   the request was sent, and no answer came within `patience` (1 ms to 1 day):
//                     look at the store. Not for calls that read: kUnavailable
class Owner {
 public:
  explicit Owner(std::filesystem::path directory,
                 std::chrono::milliseconds patience = std::chrono::minutes(10));
  template <typename C>
  Result<typename C::Answer> Call(const C& call) const;
  Result<std::string> CallJson(std::string_view name, std::string_view parameters) const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::chrono::milliseconds patience_;
};

// The interface in varlink's words, with each call, member and error: dev.waybill.varlink. Ends
// with a zero byte.
std::string_view InterfaceText();

// --- Streams -------------------------------------------------------------------------------------

struct StreamOptions {
  std::filesystem::path directory = {};
  std::string loss_marker = {};
  bool keeps_tokens = false;  // otherwise a restart makes all tokens void
  bool continues = false;     // a command that shares a server's work
  std::uint64_t time_to_live_ms = 60'000;
  std::uint64_t max_open = 1000;
  Clocks clocks = {};  // for tests
};

// The requests (exec, attach, port-forward) of a runtime's streaming server, each under a token
// that opens one stream, once (KEP-1558). A store of its own; it takes PrepareStream,
// ConsumeStream, ListStreams, GetStatus, GetMetrics and Verify. Errors as of Store.
class Streams {
 public:
  static Result<std::unique_ptr<Streams>> Open(StreamOptions options);
  static Result<std::unique_ptr<Streams>> Observe(const std::filesystem::path& directory);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  Result<void> Close();
  template <typename C>
  Result<typename C::Answer> Call(const C& call);
  Result<std::string> CallJson(std::string_view name, std::string_view parameters);

 private:
  struct Impl;
  explicit Streams(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// How fast bytes may pass through one proxied connection: MaxConnectionBytesPerSec, which KEP-1558
// ("Risks and Mitigations") adds to the kubelet, as the API server has it.

struct RateLimitOptions {
  // 0: no limit, as in the API server's --max-connection-bytes-per-sec.
  std::uint64_t bytes_per_second = 0;
  // How many bytes may pass at once after a pause. 0: what passes in a tenth of a second, at least
  // one byte. A burst below the size of the caller's buffer only cuts what it moves at a time.
  std::uint64_t burst_bytes = 0;
};

// Use one for each connection; both directions may share it, or have one each. Not thread-safe: the
// caller locks. Nothing allocates, throws or fails; every argument is allowed.
//
// Each call is given the time, in nanoseconds of a monotonic clock (CLOCK_MONOTONIC) whose zero
// does not matter. The elapsed time is the sum of its steps forward. If the clock goes back, that
// step gives nothing, and time counts from there on, so that nobody waits until the clock has
// caught up.
//
// Promise: after any calls, at most burst + rate * elapsed bytes have passed. A caller that always
// takes what is available gets all of that except for less than one byte, however often it asks,
// unless it lets the bucket fill up.
class RateLimit {
 public:
  // Begins with a full burst.
  RateLimit(const RateLimitOptions& options, std::int64_t now_ns);

  // Up to `wanted` bytes that may pass now, and are counted as passed. 0: wait.
  std::uint64_t Take(std::uint64_t wanted, std::int64_t now_ns);

  // Gives back bytes of the last Take that did not pass, for instance because a read returned
  // fewer. The bucket never holds more than the burst.
  void GiveBack(std::uint64_t bytes);

  // How many nanoseconds from `now_ns` on until Take(wanted) gives all of `wanted`, or a full burst
  // if that is less; 0: now. At most INT64_MAX (292 years).
  std::int64_t Wait(std::uint64_t wanted, std::int64_t now_ns);

  // As configured, with the default burst filled in. Without a limit, 0 and 0.
  std::uint64_t bytes_per_second() const { return bytes_per_second_; }
  std::uint64_t burst_bytes() const { return burst_bytes_; }

 private:
  void Refill(std::int64_t now_ns);

  std::uint64_t bytes_per_second_;
  std::uint64_t burst_bytes_;
  // What may pass: whole bytes, and billionths of one, below 1,000,000,000. A full bucket has no
  // fraction.
  std::uint64_t bytes_;
  std::uint64_t billionths_ = 0;
  std::int64_t last_ns_;
};

}  // namespace waybill

#endif  // WAYBILL_STORE_H_
