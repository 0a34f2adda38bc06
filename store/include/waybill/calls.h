// The calls. A call is a struct: its members are the parameters, Answer is what comes back.
//
//   store->Call(Explain{.image_ref = "sha256:…"})                    in the process of the store
//   owner.Call(Explain{.image_ref = "sha256:…"})                     in any other: the same
//   {"method": "dev.waybill.Explain", "parameters": {"imageRef": …}} in any language: the same
//
// R: reads; an observer may. W: changes the store; owner only, on disk when it returns. L: needs no
// store (Library::Call). Not through the socket: what is marked so. With dry_run a change is made,
// reported and undone. Errors of all: kInvalidArgument, kLimitExceeded, kClosed, kOutOfMemory,
// kInternal; of R: kDamaged, kUnavailable; of W: kNotOwner, kOwned, kStoreFull, kDiskFull, kIo,
// kConflict, kOutcomeUnknown. After an error nothing was changed, except that kOutcomeUnknown says.

#ifndef WAYBILL_CALLS_H_
#define WAYBILL_CALLS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "waybill/values.h"

namespace [[gnu::visibility("default")]] waybill {

struct Nothing {};

// --- Decisions -----------------------------------------------------------------------------------

// What MustPull answers.
struct PullDecision {
  bool pull = true;
  std::string result = {};  // the kubelet's label: "credentialRecordFound"
  std::string reason = {};  // "secretHashMatches"
  std::string why = {};     // the same in one sentence; for the node's log, never for the pod
};

// R. Must this pull be attempted (KEP-2535)? Store::MustPull is the same without JSON. Never fails:
// what can't be read, verified or understood is "pull".
struct MustPull {
  std::string image = {};      // as the pod wrote it
  std::string image_ref = {};  // what the runtime returned for it; empty: not on the node
  std::string runtime_handler = {};
  std::vector<ImagePullSecret> secrets = {};  // the pod's imagePullSecrets that match the image
  std::optional<ImagePullServiceAccount> service_account = {};
  using Answer = PullDecision;
};

// R. The kubelet's outer question, with the container's imagePullPolicy: pull, use, or refuse.
struct EnsureImage {
  PullPolicy pull_policy = PullPolicy::kIfNotPresent;
  MustPull question = {};  // its members, in JSON
  struct Answer {
    std::string action = {};   // "Pull", "UsePresent", "InvalidImageName", "ErrImageNeverPull"
    std::string message = {};  // what the pod may see
    std::optional<PullDecision> decision = {};
  };
};

// The kubelet's verification policy, as a plain value (VerificationPolicy is the checked form).
struct Policy {
  Verification verification = Verification::kNeverVerifyPreloadedImages;
  std::vector<std::string> allowlist = {};  // image names, or prefixes that end in "/*"
  bool allowlist_preloaded_only = false;    // KEP-2535's text; the kubelet's code opens any image
  // Image names, or prefixes that end in "/*", whose proofs count only if the registry itself
  // checked them; "*": all.
  std::vector<std::string> registry_only = {};
  std::vector<std::string> any_proof = {};  // exceptions; of two patterns the longer one counts
};

// R. Why is the image open or closed, for whom, and what would change that? With Secrets or a
// service account also what MustPull would answer; nothing is counted or written back.
struct Explain {
  std::string image = {};
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::vector<std::string> names = {};  // that the runtime lists it by
  std::optional<std::vector<ImagePullSecret>> secrets = {};
  std::optional<ImagePullServiceAccount> service_account = {};
  // Another one than the store's. What it would give is no decision: "what if".
  std::optional<Policy> policy = {};
  struct Answer {
    std::optional<PullDecision> decision = {};  // if credentials were given
    bool what_if = false;                       // by another policy than the store's
    Explanation explanation = {};               // its members, in JSON
  };
};

// --- Pulls ---------------------------------------------------------------------------------------

// What else is known of a pull's end.
struct PullDetails {
  VerifiedBy verified_by = VerifiedBy::kUnknown;
  std::optional<Timestamp> valid_until = {};  // of a token: its `exp`
  bool node_had_no_credentials = false;       // as ProofTerms
  std::string manifest_digest = {};           // of an index, the one that was pulled
  std::optional<Platform> platform = {};
  std::optional<ListedImage> listed = {};  // the runtime's entry, for the image's aliases
  // What the runtime said, or its kind: "auth", "notFound", "unavailable", "other". For metrics.
  std::string error = {};
};

// W. A pull begins: call it before each pull, and EndPull after it. The image need not parse.
struct BeginPull {
  std::string image = {};
  std::string runtime_handler = {};
  // Stores the intent only if no pull of it runs, and does not count it as under way in this
  // process, as the kubelet's PullRecordsAccessor does.
  bool unless_running = false;
  struct Answer {
    std::uint64_t pull = 0;  // 0: of unless_running
  };
};

// W. A pull ended. Pulled: the credentials are added to what is known of image_ref, and none means
// that they are not known: nobody gets in by them. Another process names the pull that it began;
// kConflict: the owner's own process began it.
struct EndPull {
  std::string image = {};
  std::string image_ref = {};  // what the runtime returned after the pull
  std::string runtime_handler = {};
  std::uint64_t pull = 0;  // 0, in the owner's process: the newest of this string
  PullOutcome outcome = PullOutcome::kUnknown;
  std::optional<ImagePullCredentials> credentials = {};
  PullDetails details = {};  // its members, in JSON
  using Answer = Nothing;
};

// R. The pulls that are not resolved, the oldest first.
struct ListPulls {
  std::optional<std::string> image = {};  // none: all
  std::string runtime_handler = {};       // of image
  struct Answer {
    std::vector<UnresolvedPull> pulls = {};
  };
};

// W. The caller's word that pulls brought nothing, and will bring nothing: one by its number, or
// all of an image string that do not run in this process. The reason goes into the history; only in
// mode kubelet may it be left out. kInvalidArgument: neither is named. kNotFound: there is no such
// pull. kConflict: it runs in this process.
struct DropPulls {
  std::uint64_t pull = 0;
  std::optional<std::string> image = {};
  std::string runtime_handler = {};
  std::string reason = {};
  bool dry_run = false;
  struct Answer {
    std::uint64_t dropped = 0;
  };
};

// --- Images --------------------------------------------------------------------------------------

// W. Draws a token. Call it before the images, pods or Secrets are listed.
struct BeginList {
  struct Answer {
    ListToken token = {};
  };
};

// W. Tells the store what the runtime has. Images that nobody knows are classified once: open if no
// unresolved pull could have brought them, closed otherwise. What is known of images that a
// complete list lacks is retained for 30 days that the node runs, and counts again if the image
// comes back without a recorded pull. A list without a token closes, and does nothing else.
struct ClassifyImages {
  ImageList list = {};       // its members, in JSON
  bool allow_empty = false;  // also: the list has none of the known images
  bool dry_run = false;
  using Answer = ClassifyReport;
};

// R. What the store knows of images; of one, only its records.
struct ListImages {
  std::string image_ref = {};        // any ID or digest of it; empty: all
  std::string runtime_handler = {};  // of image_ref
  bool hashes = false;               // with those of credentials; otherwise they are left out
  struct Answer {
    std::vector<ImagePulledRecord> records = {};
    std::vector<PreloadedImage> preloaded = {};
    std::vector<QuarantinedFile> quarantined = {};
  };
};

// W. An operator's word that every pod may use the image.
struct AllowImage {
  ListedImage image = {};
  std::string source = "operator";  // or "preloaded-list", …
  std::string reason = {};
  bool only_unconfirmed = false;  // otherwise nothing is changed
  // Also one that was pulled with credentials, or nobody knows with what; else kConflict.
  bool pulled_too = false;
  bool dry_run = false;
  struct Answer {
    bool changed = false;
  };
};

// W. The contrary: it came by a pull, or nobody knows how. Only proofs open it from now on.
struct DenyImage {
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string reason = {};
  bool only_unconfirmed = false;
  bool dry_run = false;
  struct Answer {
    bool changed = false;
  };
};

// W. Replaces the record of one image, as the kubelet's PullRecordsAccessor does. Proofs that are
// known keep their time; new ones are proven by the running pull of their image name, and no later
// than the record's own time.
struct PutImage {
  ImagePulledRecord record = {};
  ProofTerms terms = {};  // its members, in JSON
  using Answer = Nothing;
};

// W. Deletes the record of one image, if there is one. Quarantine stays.
struct DeleteImage {
  std::string image_ref = {};
  std::string runtime_handler = {};
  using Answer = Nothing;
};

// W. Deletes records of images that are not listed: those that are older than the token, or in mode
// kubelet that were last updated before then, as the kubelet's PruneUnknownRecords does. Exactly
// one of the two. In mode strict ClassifyImages is the better call.
struct PruneBefore {
  std::vector<ListedImage> images = {};
  std::optional<Timestamp> before = {};
  std::optional<ListToken> token = {};
  bool allow_empty = false;
  bool dry_run = false;
  using Answer = PruneReport;
};

// --- Revocation ----------------------------------------------------------------------------------

// W. Credentials stop opening images, at once and for good: neither a pull that began before, nor
// an import, a restored backup or a rotated Secret brings them back. A later pull proves anew. Kept
// until the node ran for 30 days and every kubelet of then has ended, also if the store did not
// know them (`images` is 0 then: RevokeReport::records).
struct Revoke {
  Revocation what = {};  // its members, in JSON, but for those that the store sets
  bool dry_run = false;
  using Answer = RevokeReport;
};

// W. Revokes each credential that the list of existing Secrets and service accounts lacks, if it
// was proven by a pull that began before the token. The list is that of the whole cluster, made
// after the token was drawn; a name without a UID stands for each.
struct RevokeMissing {
  ExistingCredentials existing = {};  // its members, in JSON
  ListToken token = {};
  bool more = false;  // another part follows with this token; nothing is revoked before the last
  std::uint64_t parts_before = 0;  // how many parts with this token came before
  bool allow_empty = false;
  bool dry_run = false;
  using Answer = RevokeMissingReport;
};

// R
struct ListRevocations {
  bool hashes = false;  // otherwise they are left out
  struct Answer {
    std::vector<Revocation> revocations = {};
  };
};

// --- Runtime handlers (KEP-4216) -----------------------------------------------------------------

// R
struct ListRuntimes {
  struct Answer {
    std::vector<RuntimeHandler> handlers = {};  // none: they were never told
  };
};

// W. Replaces the list of handlers. Images of a handler whose guest platform changed must be
// verified again. `off`: runtime classes are turned off, and all copies become the default's, to be
// verified again. kConflict: pulls that are under way use a handler that would change.
struct SetRuntimes {
  std::vector<RuntimeHandler> handlers = {};
  std::string status = {};  // instead of handlers: the text of `crictl info`
  bool off = false;
  bool allow_empty = false;
  bool dry_run = false;
  using Answer = RuntimesReport;
};

// --- Pods in user namespaces (KEP-127) -----------------------------------------------------------

// W; R for a pod that has a mapping. The user namespace for the pod's sandbox and mounts: always
// the same, and on disk before it is returned. kInvalidArgument: the handler can't do user
// namespaces, or the handlers were never told (SetRuntimes comes first). kConflict: user namespaces
// are off, or the pod, or pods of unknown ranges, are in quarantine. kLimitExceeded: the pool is
// full.
struct ClaimUserNamespace {
  std::string pod_uid = {};
  std::optional<bool> host_users = {};  // pod.spec.hostUsers
  std::string runtime_handler = {};
  std::uint32_t length = 0;  // that is required; 0: any
  struct Answer {
    std::optional<IdMapping> mapping = {};  // of UIDs and of GIDs; none: the node's user namespace
  };
};

// W. Releases the mapping of a pod that is gone; `lost`: the ranges of unknown pods, an operator's
// word that every live pod is listed.
struct ReleaseUserNamespace {
  std::string pod_uid = {};
  bool lost = false;
  bool dry_run = false;
  struct Answer {
    bool released = false;
  };
};

// W. An operator's word that a pod in quarantine lives with this range.
struct AssignUserNamespace {
  std::string pod_uid = {};
  std::uint64_t host_id = 0;
  std::uint64_t length = 0;
  using Answer = Nothing;
};

// R
struct ListUserNamespaces {
  std::string pod_uid = {};  // empty: all
  struct Answer {
    std::vector<PodMapping> mappings = {};
    std::vector<QuarantinedPod> quarantined = {};
    PoolUse use = {};
  };
};

// W. Releases the mappings of pods in neither list: those that the node should run, and those that
// the runtime runs, listed in this order after the token was drawn.
struct CleanUpUserNamespaces {
  std::vector<std::string> existing = {};
  std::vector<std::string> running = {};
  ListToken token = {};
  bool allow_empty = false;
  bool dry_run = false;
  using Answer = CleanUpReport;
};

// --- The store -----------------------------------------------------------------------------------

// Host IDs for pods in user namespaces.
struct Pool {
  bool enabled = true;
  IdPool ids = {};  // its members, in JSON
};

// What an owner decides by. The store keeps mode, policy, pool, short names and the maximum age of
// the owner that opened it last, and every observer goes by them.
struct Settings {
  Mode mode = Mode::kStrict;
  Policy policy = {};
  std::uint64_t max_age_seconds = 0;  // how long a proof counts; 0: for ever, or as remembered
  Pool pool = {};
  bool short_names_anywhere = true;  // false: the runtime completes them with docker.io only
  std::uint64_t map_bytes = 0;       // the bound of data.mdb; 0: as the store remembers
  std::filesystem::path trace_file =
      {};                      // where pulls and uses are written, for sizing; empty: nowhere
  bool flushes_twice = false;  // for disks that acknowledge what they lose (docs/limits.md)
};

// R
struct GetStatus {
  bool brief = false;  // without history and opening
  struct Answer {
    std::string store_uuid = {};
    std::uint32_t schema_version = 0;
    std::uint64_t commit = 0;
    std::int64_t owner_pid = 0;  // 0: an observer answers
    Settings settings = {};      // of whoever answers
    bool degraded = false;
    std::vector<DegradedEvent> history = {};  // oldest first
    StoreCounts counts = {};
    std::optional<OpeningReport> opening = {};    // of this owner
    std::optional<StreamingReport> streams = {};  // of a store of streams, instead
  };
};

// R. Never fails
struct GetMetrics {
  struct Answer {
    std::string text = {};  // Prometheus' text format
  };
};

// W. Waits until the credentials that decisions matched are written back.
struct Flush {
  using Answer = Nothing;
};

// W. Pulls may be unrecorded from before now: until the next complete list the store is degraded,
// and that list closes each image that nobody knows.
struct NoteUnrecordedPeriod {
  std::string reason = {};
  using Answer = Nothing;
};

// W. An operator's word that what was lost is accepted: the store is no longer degraded. Images on
// the node that nobody knows are closed, or with allow_all open to every pod.
struct AcceptLoss {
  std::string reason = {};
  std::optional<std::vector<ListedImage>> images = {};  // none: the next list does it
  bool allow_all = false;
  bool allow_empty = false;
  bool dry_run = false;
  using Answer = ClassifyReport;
};

// R. Walks all pages and reads all values. kInterrupted
struct Verify {
  using Answer = VerifyReport;
};

// W, or R with `file`. A checked copy on disk: in backup/, the last three are kept; or, not through
// the socket, a new file outside the store, by its absolute path.
struct MakeBackup {
  std::filesystem::path file = {};
  using Answer = Backup;
};

// R; not through the socket. Writes the kubelet's own files, and pods/<uid>/userns; the kubelet
// must be stopped.
struct ExportKubeletFiles {
  std::filesystem::path kubelet_directory = {};
  KubeletApiVersion api_version = KubeletApiVersion::kV1Beta1;
  std::optional<std::vector<ListedImage>> images = {};  // in mode strict they must be given
  bool allow_empty = false;
  using Answer = ExportReport;
};

// A file below image_manager/.
struct MissingFile {
  std::string path = {};  // "pulled/sha256-…"
  std::string content = {};
};

// R; not through the socket. What keeps closed, for a kubelet without waybill that is started in
// the place of one with waybill inside, what that one pulled: a record without credentials of each
// image, and the intent of each unresolved pull. Another kubelet's files stay as they are.
struct ListKubeletFiles {
  std::filesystem::path kubelet_directory = {};
  // The runtime's complete list, which ClassifyImages took. Without it no record is needless in
  // mode strict.
  std::optional<std::vector<ListedImage>> images = {};
  struct Answer {
    std::vector<MissingFile> missing = {};   // to be written
    std::vector<std::string> needless = {};  // waybill's own; to be removed once none is missing
  };
};

// --- Without a store (L; not through the socket) -------------------------------------------------

// Takes a store that nobody has open to another schema version, after a backup. kConflict: that
// would lose something, and accept_loss is false.
struct Migrate {
  std::filesystem::path directory = {};
  std::uint32_t to = 0;  // 0: the newest
  bool accept_loss = false;
  bool dry_run = false;
  using Answer = MigrationReport;
};

struct ListBackups {
  std::filesystem::path directory = {};  // the store's
  struct Answer {
    std::vector<Backup> backups = {};  // newest first
  };
};

// Replaces a store by a backup. It is degraded then; credentials that changed since count no more.
struct Restore {
  std::filesystem::path directory = {};
  std::filesystem::path backup = {};
  bool dry_run = false;
  using Answer = RestoreReport;
};

// Who checks the credentials of a pull, by the runtime's configuration. What is not understood is
// unknown, never the registry.
struct WhoChecks {
  std::string image = {};
  std::string runtime_handler = {};
  RuntimeAnswers runtime = {};  // its members, in JSON
  using Answer = PullSources;
};

// Which manifest of an index a runtime on this platform pulls (KEP-4216). kNotFound: none.
struct ChooseManifest {
  std::string index = {};  // its text
  Platform host = {};
  std::optional<Platform> guest = {};
  using Answer = ManifestDescriptor;
};

// By the grammar of distribution/reference. kInvalidArgument: it does not parse
struct ParseImage {
  std::string image = {};
  struct Answer {
    std::string name = {};
    std::string domain = {};
    std::string path = {};
    std::string tag = {};
    std::string digest = {};
    std::string full = {};  // with registry and tag; empty: ambiguous
  };
};

// May the kubelet connect to this address of a streaming server, or follow this redirect
// (KEP-1558)? By default only to a loopback address, and no redirect. No message repeats a path.
struct CheckStreamUrl {
  std::string url = {};
  std::string redirect_from = {};  // url answers a request to this
  StreamUrlPolicy policy = {};     // its members, in JSON
  struct Answer {
    std::string refusal = {};  // "notAllowed"; empty: connect to host and port, and ask for path
    std::string message = {};
    std::string scheme = {};
    std::string host = {};
    std::uint16_t port = 0;
    std::string path = {};  // holds the token: do not log it
  };
};

// How exec, attach and port-forward go for these releases and settings (KEP-1558).
struct PlanStreams {
  std::string api_server = {};  // "1.36"
  std::string kubelet = {};
  std::vector<std::string> api_server_flags = {};
  std::vector<std::string> kubelet_flags = {};
  using Answer = StreamPlan;
};

// --- Streams: of a store that Streams::Open opened; not through the socket -----------------------

// W. Keeps a request under a token that opens it once: 32 hex digits, which nobody can get again.
// kLimitExceeded with Error::retry_after: too many are open.
struct PrepareStream {
  StreamRequest request = {};  // its members, in JSON
  struct Answer {
    std::string token = {};
  };
};

// W. Uses the token up. kNotFound, in one and the same text: it was used, is void, expired, of
// another kind, or was never prepared.
struct ConsumeStream {
  std::string token = {};
  StreamKind kind = StreamKind::kExec;
  using Answer = StreamRequest;
};

// R. The tokens that are open, the oldest first
struct ListStreams {
  struct Answer {
    std::vector<OpenStream> streams = {};
  };
};

}  // namespace waybill

#endif  // WAYBILL_CALLS_H_
