// Evidence: why an image is open under Rules::kClosed. Either a credential was proven for it, or it
// is in the ledger of images that came to the node without the kubelet (or, since a first start,
// are presumed to). An open pull may still bring an image, or may have brought one that nobody
// recorded. While it is open, an image that may be what it brought does not enter the ledger
// (NodeStore::ObserveImages).

#ifndef WAYBILL_EVIDENCE_H_
#define WAYBILL_EVIDENCE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/revocation.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// The time since the machine booted. Must be callable from any thread.
using BootClock = std::function<BootTime()>;
BootTime SystemBootClock();

// What an image string without a registry host may name on this node.
enum class ShortNames : std::uint8_t {
  kAnywhere,   // the runtime may complete it, or have an alias for it (CRI-O)
  kDockerHub,  // the runtime completes it with docker.io only (containerd)
};
std::string_view ShortNamesName(ShortNames short_names);  // "anywhere", "docker.io"
Result<ShortNames> ParseShortNames(std::string_view name);

// Each time is 0 seconds to 10 years.
struct EvidenceOptions {
  // How long a pull stays open after it ended, since its image may still arrive. Both are measured
  // by CLOCK_BOOTTIME, from the end of the pull to the token of a complete list.
  std::chrono::seconds grace{120};    // after a failure that the runtime reported
  std::chrono::seconds window{7200};  // after an unknown end; a reboot ends it, too
  ShortNames short_names = ShortNames::kAnywhere;
  // How long the store remembers what it knew of an image that is gone (NodeStore::ObserveImages),
  // in time that the node ran. 0: not at all.
  std::chrono::seconds remember{30 * 24 * 3600};
};

// What state an open pull is in. The numbers are stored.
enum class PullState : std::uint8_t {
  kRunning = 1,
  kFailed = 2,   // the runtime reported an error, but something may have been transferred
  kUnknown = 3,  // cancelled, timed out, connection lost, or the process that pulled ended
  // No pull: more images were gone than are remembered (kMaxRemembered), and it stands for those
  // that were dropped, as one of anything. It ends when the node has run for as long as
  // EvidenceOptions::remember since the last of them.
  kDropped = 4,
};
// "running", "failed", "unknown", "dropped"; "" for a number of a later version.
std::string_view PullStateName(PullState state);

// A pull that may still bring an image, or may have brought one that nobody recorded.
struct UnresolvedPull {
  PullId id = {};
  bool anything = false;  // stands for pulls that can't be named: it may have brought any image
  // It stands for several pulls of one string that ended alike, with the last end. The success of a
  // single pull does not remove it.
  bool several = false;
  std::string image = {};  // the container's image string as the pod wrote it; it need not parse
  std::string runtime_handler = {};  // empty: the default handler
  PullState state = PullState::kRunning;
  Timestamp began = {};
  std::optional<Timestamp> ended = {};  // nullopt: it is running
  BootTime ended_at = {};               // the same moment, by the boot clock
  std::uint64_t stamp = 0;              // the commit in which it began
  // Used inside the store; `nothing_at` is 0 in every pull that is listed.
  std::uint64_t nothing_at = 0;
  std::uint64_t dropped_ran = 0;  // kDropped: how long the node had run by then

  friend bool operator==(const UnresolvedPull&, const UnresolvedPull&) = default;
};

// How a pull that did not succeed ended. Rules::kKubelet treats all alike.
enum class PullFailure : std::uint8_t {
  kFailed,              // the runtime reports an error; something may have been transferred
  kUnknown,             // time-out, cancelled, connection lost: the image may still arrive
  kNothingTransferred,  // the runtime reported an error, was asked afterwards, and said that the
                        // image is not there
};

// What kind of error a pull ended with, for metrics alone. Numbers do not change.
enum class PullErrorClass : std::uint8_t {
  kUnknown,      // nobody said
  kAuth,         // the registry refused the credentials, or wants some: 401, 403
  kNotFound,     // it has no such image: 404
  kUnavailable,  // it can't be reached, or does not serve now: time-outs, 429, 5xx
  kOther,        // an error of none of these kinds
};
// "unknown", "auth", "notFound", "unavailable", "other".
std::string_view PullErrorClassName(PullErrorClass error_class);
Result<PullErrorClass> ParsePullErrorClass(std::string_view name);
// Reads the text of an error of containerd, CRI-O, a CRI client or a kubelet; of an empty text
// nothing is known. Metrics go by it, and no decision: registries choose some of these words. Never
// fails; thread-safe.
PullErrorClass ClassifyPullError(std::string_view text);

// How a pull did not succeed, and why.
struct PullError {
  PullFailure failure = PullFailure::kFailed;
  PullErrorClass error_class = PullErrorClass::kUnknown;
  PullId pull = {};  // 0: it is not named
};

// Which names the pull could have given an image: "r.example/x:1", "r.example/x@…", or "anything".
std::vector<std::string> NamesGivenBy(const UnresolvedPull& pull, ShortNames short_names);

// What a first start makes of images that have neither record nor open pull. Nobody can tell
// whether a kubelet pulled them before it kept records (KEP-2535, "What happens if we reenable the
// feature").
enum class FirstStart : std::uint8_t {
  kPresume,  // they enter the ledger as presumed: open, as a kubelet presumes
  kClose,    // they get records without credentials, as after a gap
};
std::string_view FirstStartName(FirstStart first_start);  // "presume", "close"
Result<FirstStart> ParseFirstStart(std::string_view name);

// PreloadedImage::source of an image that a first start presumes preloaded. An image that the
// runtime pins, or that an operator's list names, has another source.
inline constexpr std::string_view kPresumedSource = "presumed";

// An image that is known or presumed to have come to the node without the kubelet. While it is on
// the node, it is open to all pods, under every name.
struct PreloadedImage {
  std::string image_ref = {};
  std::string runtime_handler = {};     // empty: the default handler's copy
  std::vector<std::string> names = {};  // at that time, sorted
  // How it is known: "listed", "imported" (ListedImage::imported), "pinned", "preloaded-list",
  // "observed-preloaded", "adopted", "operator", or what the caller named. kPresumedSource: nobody
  // knows, so it is presumed.
  std::string source = {};
  std::string reason = {};  // an operator's; may be empty
  Timestamp since = {};
  std::uint64_t stamp = 0;  // the commit that wrote it
  // Since when the image has been gone from the node. The entry is then only remembered, and opens
  // nothing. Whole seconds.
  std::optional<Timestamp> absent_since = {};
  std::uint64_t absent_ran = 0;  // used inside the store: how long the node had run by then

  friend bool operator==(const PreloadedImage&, const PreloadedImage&) = default;
};

inline bool IsPresumed(const PreloadedImage& entry) { return entry.source == kPresumedSource; }

// An operator's word on an image that is presumed preloaded.
enum class Settled : std::uint8_t {
  kPreloaded,  // it is known from now on, source "operator"
  kClosed,     // it leaves the ledger; without a record it gets one without credentials
};

// Says how old a list of images or pods is at most. It is drawn before the list is made
// (NodeStore::BeginList), so whatever the store learns later is newer than the token.
struct ListToken {
  std::uint64_t commit = 0;  // the commit sequence then
  BootTime drawn = {};
  std::uint64_t store = 0;  // which store drew it; any other refuses it

  friend bool operator==(const ListToken&, const ListToken&) = default;
};

// A list of images for NodeStore::ObserveImages.
struct ImageList {
  std::vector<ListedImage> images = {};
  // Drawn before the list was made (NodeStore::BeginList). nullopt: the list can't be placed in
  // time.
  std::optional<ListToken> token = {};
  bool complete = false;    // everything that the runtime has, unfiltered
  std::string source = {};  // who made the list; empty: the runtime
  // Pulls that ended by this moment can't bring an image that the list lacks: the runtime showed
  // that before it made the list. nullopt: the runtime was not asked.
  std::optional<BootTime> quiet_until = {};
  // Names that the runtime has, but that the list does not show yet. `quiet_until` does not end a
  // pull that could have given one of them.
  std::vector<std::string> names_to_come = {};
};

// What became of an image that was judged.
struct ClassifiedImage {
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string name = {};     // its first name, or its ref
  bool preloaded = false;    // it is in the ledger now; otherwise it is closed
  std::string because = {};  // one sentence, no full stop
};

// What a list of images did (NodeStore::ObserveImages).
struct ClassifyReport {
  std::uint64_t listed = 0;           // entries of the list
  std::uint64_t repeated = 0;         // of those, an image that was in the list already
  std::uint64_t not_names = 0;        // names that do not parse, and so do not count
  std::uint64_t known = 0;            // had a record or a ledger entry, or are in quarantine
  std::uint64_t preloaded = 0;        // entered the ledger
  std::uint64_t closed = 0;           // got a record without credentials
  std::uint64_t left = 0;             // neither: left to a later list, or the store judges nothing
  std::uint64_t united = 0;           // records under another spelling of the same image, now one
  std::uint64_t pulls_settled = 0;    // open pulls that can bring nothing any more
  std::uint64_t records_removed = 0;  // of images that are not listed
  std::uint64_t preloaded_removed = 0;           // ledger entries likewise
  std::vector<ClassifiedImage> judged = {};      // the first 1000 of each kind
  std::vector<std::string> shared_digests = {};  // of two images, so of neither; first 100
  // Why no image was judged; empty: images were judged.
  std::string not_judged_because = {};
};

// Whether a credential in a record still counts.
enum class CredentialStanding : std::uint8_t {
  kCounts,
  kTooOld,         // proven too long ago (AgeLimits), or past its own end (Proof::good_until)
  kForgotten,      // revoked, and not taken out yet
  kNotByRegistry,  // the policy counts only what the registry checked (Proofs)
  kUnknown,        // a later version's word
};
std::string_view CredentialStandingName(CredentialStanding standing);  // "counts", "tooOld", …

// What a record has under an image name: a Secret, a service account, or that every pod of the node
// may use it.
struct ExplainedCredential {
  // What an explained credential is.
  enum class Kind : std::uint8_t { kNodePods, kSecret, kServiceAccount };
  std::string image_name = {};
  Kind kind = Kind::kNodePods;
  CredentialName who = {};  // empty for kNodePods
  Proof proof = {};
  CredentialStanding standing = CredentialStanding::kUnknown;
};

// Why an image is open or closed, for a person (NodeStore::Explain). Holds no hash of a credential.
struct Explanation {
  std::optional<PreloadedImage> ledger_entry = {};
  bool recorded = false;                   // it has a record under this handler
  std::string closed_because = {};         // the record's; empty: a pull made it, or there is none
  std::vector<UnresolvedPull> pulls = {};  // could have brought an image of this name; newest first
  bool in_quarantine = false;
  bool distrustful = false;
  std::string text = {};  // what closes the image, in one sentence; empty: nothing does
  std::string hint = {};  // what would open it
  // The record as it is stored, but with an empty mapping: `credentials` has its content.
  std::optional<ImagePulledRecord> record = {};
  std::vector<ExplainedCredential> credentials = {};
  std::vector<std::string> image_names = {};     // of the mapping, also without credentials
  bool unreadable = false;                       // the record, or a record of the same ref
  std::vector<std::string> spellings = {};       // of the image, as the store knows them, sorted
  std::vector<std::string> other_handlers = {};  // that have a record of it; "": the default
  std::vector<QuarantinedFile> quarantine = {};  // those that close it
  // What is remembered of an image that was preloaded, and is gone (PreloadedImage::absent_since).
  // It opens nothing.
  std::optional<PreloadedImage> gone_entry = {};
};

// What would have to change to reverse a decision with this reason, in one sentence without a full
// stop. `why` explains the same image.
enum class Reason : std::uint8_t;
std::string OtherAnswer(Reason reason, const Explanation& why);

}  // namespace waybill

#endif  // WAYBILL_EVIDENCE_H_
