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
#include "waybill/credential_hash.h"
#include "waybill/owner.h"
#include "waybill/rate_limit.h"
#include "waybill/result.h"

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
  bool continues_pulls = false;  // pulls of the process before are this one's
  bool allow_untested_lmdb = false;
  bool allow_empty = false;  // empty images and runtimes are meant
  Progress progress = {};    // false stops: kInterrupted
  Clocks clocks = {};        // for tests, as evidence
  std::optional<EvidenceOptions> evidence = {};
};

// --- Decisions -----------------------------------------------------------------------------------

// Gets the pod's credentials if a decision depends on them, on its thread, at most once. No lock is
// held, and no old page is kept alive. An error makes the answer "pull". What it returns must stay
// until the decision returns.
using FetchCredentials = std::function<Result<PodCredentials>()>;

// --- The store -----------------------------------------------------------------------------------

class Store {
 public:
  // Opens as the only owner: checks each page, recovers what a crash left, imports, classifies. A
  // damaged, lost or older store is no error: it is set aside or degraded (GetStatus says how).
  // After an error open again; kOwned, kUnsafePath, kNewerSchema, kOlderSchema, kInvalidArgument,
  // kNotFound (create is false) changed nothing; kDiskFull, kIo, kStoreFull, kInterrupted keep what
  // was recovered so far.
  static Result<std::unique_ptr<Store>> Open(OpenOptions options);

  // Opens to decide and to read, beside an owner or without one. While an owner decides by stricter
  // settings than these, each decision is "pull". Calls that change are kNotOwner. kNotFound;
  // kDamaged, kOlderSchema: an owner must open it first.
  static Result<std::unique_ptr<Store>> Observe(const std::filesystem::path& directory,
                                                const Settings& settings = {},
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
  // credential that matches only by hash or only by name is queued to be written back (Flush). A
  // CredentialSource (decision.h) serves callers that can't be called back: DeferredCredentials.
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

}  // namespace waybill

#endif  // WAYBILL_STORE_H_
